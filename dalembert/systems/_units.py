"""Which coordinates of a system have the same unit, so that their sizes can be compared.

The size of a coordinate is its largest magnitude, but at least a thousandth of the largest one of its unit, because what stays
at zero cannot be right to many digits, and a millionth of the largest of all, because all of one unit may stay at zero.
"""

from __future__ import annotations

import re

from dalembert.systems._system import System

LEAST_SIZE, LEAST_OF_ALL = 1e-3, 1e-6
ANGLES = {"alpha", "beta", "gamma", "delta", "epsilon", "theta", "phi", "psi", "omega"}


def units(system: System) -> tuple[tuple[int, ...], ...]:
    """The coordinates of each unit, by the names that mechanisms and problems give them: lengths, angles, quaternions.

    Example:
        >>> import dalembert as da
        >>> units(da.problems.slider_crank().system)
        ((0, 1, 3, 4, 6, 7), (2, 5, 8))

    """
    (_, first), (_, second) = system.state_blocks
    count = first or second
    names = system.coordinate_names if len(system.coordinate_names) == count else ("",) * count
    found: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        found.setdefault(_unit(name), []).append(index)
    return tuple(map(tuple, found.values()))


def _unit(name: str) -> str:
    body, _, own = name.rpartition(".")
    if body and re.fullmatch(r"e[0-3]", own):
        return "quaternion"
    return "angle" if re.sub(r"[\d_']+$", "", own).lower() in ANGLES else ""
