"""Python that reproduces what is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalembert.explorer._subject import Posed, Subject
from dalembert.methods import OneStepMethod
from dalembert.systems import IndexTwoDAE, MechanicalSystem


def snippet(
    subject: Subject, moved: Mapping[str, float], started: bool, posed: Posed, method: OneStepMethod, h: float, steps: int
) -> str:
    """A few lines that make the same run; `started` says whether initial values were changed.

    Example:
        >>> import dalembert as da
        >>> source = "problem = da.problems.pendulum({settings})"
        >>> subject = Subject("pendulum", da.problems.pendulum(), da.problems.pendulum, source=source)
        >>> print(snippet(subject, {"m": 2.0}, False, subject.pose({"m": 2.0}, {}), da.Rattle(), 0.1, 20))
        import dalembert as da
        <BLANKLINE>
        problem = da.problems.pendulum(m=2.0)
        run = da.simulate(problem, da.Rattle(), h=0.1, steps=20)
        run.plot("pendulum.png")

    """
    settings = subject.settings_at(moved)
    lines = ["import dalembert as da", ""]
    if subject.make is None:
        lines.append(subject.source)
    else:
        lines.append(subject.source.replace("{settings}", ", ".join(f"{name}={_written(v)}" for name, v in settings.items())))
    given = [f"h={h!r}", f"steps={steps}"]
    if subject.make is None and settings:
        given.insert(0, f"params={{{', '.join(f'{name!r}: {_written(v)}' for name, v in settings.items())}}}")
    if started or subject.initial or (subject.make is None and moved):
        given[:0] = _initial(posed)
    call = ", ".join(["problem", str(method), *given])
    if len(call) > 50:
        call = "\n    " + ",\n    ".join(["problem", str(method), *given]) + ",\n"
    return "\n".join([*lines, f"run = da.simulate({call})", f'run.plot("{subject.name}.png")'])


def _initial(posed: Posed) -> list[str]:
    """The initial state, to the last digit."""
    state = posed.state
    if isinstance(posed.system, MechanicalSystem):
        blocks = {"q0": state.q, "p0": state.p}
    else:
        blocks = {"y0": state.y} | ({"z0": state.z} if state.z.size else {})
        if not isinstance(posed.system, IndexTwoDAE) and state.lam.size:
            blocks["lam0"] = state.lam
    return [*([f"t0={state.t!r}"] if state.t else []), *(f"{name}={_written(values)}" for name, values in blocks.items())]


def _written(value: Any) -> str:
    return repr(np.asarray(value).tolist())
