"""Which rows of redundant constraints are replaced by combinations: those of one joint of each loop, say (`_redundant.py`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dalembert.errors import InconsistentStart
from dalembert.systems._circuits import circuits, clusters, merged
from dalembert.systems._matrices import Matrix
from dalembert.systems._rank import part_dependencies
from dalembert.systems._redundant import CONNECTED, Combination, Dependencies, Group, independent_rows

Pattern = Sequence[frozenset[int]]
"""Which variables each row depends on."""

REGULAR = 0.1
"""The least eigenvalue of N_S^T N_S for which S is large enough."""


def combination_of(
    samples: Sequence[Dependencies], matrices: Sequence[Matrix], factors: np.ndarray, patterns: tuple[Pattern, Pattern]
) -> Combination:
    """Which rows to combine, from the dependencies in several states and G there; `patterns` say which variables rows have."""
    nonholonomic = []
    for component in _connected([sample.k for sample in samples]):
        parts = [_restricted(sample.k, component) for sample in samples]
        ties = np.max([np.abs(s.rates @ s.k[component].T) for s in samples], axis=(0, 2), initial=0.0)
        group = _group(parts, patterns[1], component, component, np.inf)  # all rows: see the head
        assert group is not None
        nonholonomic.append(replace(group, rates=tuple(np.flatnonzero(ties > CONNECTED).tolist())))
    return Combination(_loops(matrices, factors, patterns[0], samples[0].g), tuple(nonholonomic))


def _restricted(N: np.ndarray, rows: list[int]) -> np.ndarray:
    """A basis of dependencies for rows that no dependency connects with others."""
    left, values, _ = np.linalg.svd(N[rows], full_matrices=False)
    return left[:, values > CONNECTED]


def _connected(samples: list[np.ndarray]) -> list[list[int]]:
    """Rows that are connected by dependencies."""
    if not samples[0].shape[1]:
        return []
    connected = np.max([np.abs(N @ N.T) for N in samples], axis=0) > CONNECTED
    supports = [set(np.flatnonzero(row).tolist()) for row in connected if np.any(row)]
    return [sorted(part) for part in merged(supports)]


def _loops(matrices: Sequence[Matrix], factors: np.ndarray, pattern: Pattern, count: int) -> tuple[Group, ...]:
    """Groups of rows of g: one for each loop if it has rows of its own that suffice, else for loops together."""
    parts = clusters([set(circuit) for G in matrices for circuit in circuits(G).values()]) if count else []
    for attempt in (0, 1, 2):
        groups = []
        taken = Counter(row for part in parts for row in part)
        for part in map(sorted, parts):
            bases = [part_dependencies(G, part, factors) for G in matrices]
            alike = [N for N in bases if N.shape == bases[0].shape]
            groups.append(_group(alike, pattern, part, [row for row in part if taken[row] == 1], REGULAR))
        found = [group for group in groups if group is not None]
        if sum(group.redundant for group in found) == count and len(found) == len(groups):
            return tuple(found)
        parts = merged(parts) if attempt == 0 else [set().union(*parts)]
    raise InconsistentStart("no independent combinations of the redundant constraints were found: start elsewhere")


def _group(
    parts: list[np.ndarray], pattern: Pattern, component: list[int], own: list[int], least: float
) -> Group | None:  # fmt: skip
    """Those rows of its `own` that suffice: they add most to N_S^T N_S, and share variables; None if all do not suffice.

    Of several states, those in which N_S^T N_S is still small count most: where one row of a hinge vanishes, its other one does
    not.

    Nor are there any where nothing follows from other rows, as in a loop that another one includes.
    """
    redundant = parts[0].shape[1]
    if not redundant:
        return None
    weights = [1e-3 * np.eye(redundant) for _ in parts]
    used, chosen, allowed = set[int](), list[int](), [row in set(own) for row in component]
    while min(np.linalg.eigvalsh(W)[0] for W in weights) < least + 1e-3 and len(chosen) < len(own):
        gains = [np.log1p(np.einsum("ij,jk,ik->i", N, np.linalg.inv(W), N)) for N, W in zip(parts, weights, strict=True)]
        gain = np.sum(gains, axis=0) / [1 + len(pattern[row] - used) for row in component]
        gain[chosen] = -1.0
        best = int(np.argmax(np.where(allowed, gain, -2.0)))
        chosen.append(best)
        used |= pattern[component[best]]
        weights = [W + np.outer(N[best], N[best]) for N, W in zip(parts, weights, strict=True)]
    if len(own) < len(component) and min(np.linalg.eigvalsh(W)[0] for W in weights) < least:
        return None
    chosen = sorted({*chosen, *(k for k, row in enumerate(component) if allowed[k] and not pattern[row] - used)})
    rows = tuple(component[k] for k in chosen)
    return Group(tuple(component), rows, tuple(rows[k] for k in independent_rows(parts[0][chosen])))
