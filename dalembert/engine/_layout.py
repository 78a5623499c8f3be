"""What the driver shares with Python: records with named fields, and the arrays of a run in named tuples.

A field of a record costs the driver as much as an array's entry at a constant place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

KERNELS = np.dtype([
    (name, np.int64)
    for name in (
        "predict", "prepare", "weigh", "factor", "iterate", "last", "finish", "look", "entries", "residual", "weigh_again",
        "clock", "tick",
    )
])  # fmt: skip
"""Addresses of kernels, 0 for those that a program does not have.

Only programs that eliminate at run time have `last`, only the others `prepare`, only those that may decide by a glance at their
constraints `look`, only those with a way out of a failing pivot order `entries` and `residual`, only those for several lanes
`weigh_again`, only those whose step sizes vary the last two.
"""

COUNTS = np.dtype([
    (name, np.int64)
    for name in (
        "steps_done", "saved", "iterations", "factorizations", "age", "mode", "sign", "periods", "substep", "pivoted",
        "pivoted_left", "patience", "followed", "rescued", "judged", "fresh", "rejected",
    )
])  # fmt: skip
"""Counters; `age` is that of the factors in steps, -1 if they are to be renewed, `periods` counts how often that was so.

`pivoted` steps were solved by dense elimination; so many as `pivoted_left` says will be before the fixed order is tried
again: as many as there were more of them than of steps in which it served, in a run or a stored part of it (`patience`).
`followed` steps were in doubt, and their solution followed from small h; `rescued` ones had another solution than was found, or
none was. `judged` is 1 when the pivot order is known not to be why the pending step does not end at round-off, `fresh` when
combinations of redundant constraints were chosen for it. `rejected` steps were made again because of their error.
"""

COUNTED = {
    "newton_iterations": "iterations",
    "factorizations": "factorizations",
    "rescued_steps": "rescued",
    "followed_steps": "followed",
    "pivoted_steps": "pivoted",
    "rejected_steps": "rejected",
}
"""What a run says about its cost, and the counters that hold it."""

NUMBERS = np.dtype(
    [(name, float) for name in ("rate", "tolerance", "cost_ratio", "period_cost", "fastest", "dense_ratio", "far")]
)
"""`rate` is the last step's rate of convergence; like `tolerance` and `fastest`, the best to believe in, it is squared.

`cost_ratio` says what a factorisation costs in iterations, `dense_ratio` the same for dense elimination. Corrections beyond
`far`, squared, too, make a step doubtful; it is infinite where none is."""

Records = np.ndarray | np.void
"""One record, or an array of them."""

KNOWN_AGES = 64
"""Up to which age of the factors it is remembered what a step cost."""

LAYOUT = np.dtype([
    (name, np.int64)
    for name in (
        "state", "n_state", "delta", "x", "n_x", "residual", "weights", "straight_line", "n_entries", "matrix",
        "last", "last_unknowns", "turn", "metric", "polish", "stage_multipliers", "n_stage", "dense",
        "entry_row", "entry_column", "power", "turns", "slots", "taken",
    )
])  # fmt: skip
"""Slots of a program's memory, sizes, and positions in its tables.

`matrix`, `last` and `turn` are descriptions of matrices that are eliminated at run time, -1 where there is none.
"""

NEVER, WHERE_CONSTRAINTS_DO, NOT_BY_COMBINATIONS = 0, 1, 2
"""Values of `turns`: the orientation of a followed step may not turn; it may, where constraints pass a position in which they
lose rank; it may, if that is not because combinations of redundant rows do, so only where these are fresh."""


class Substep(NamedTuple):
    """What one substep of a step works on."""

    kernels: np.ndarray
    layout: np.ndarray
    tables: np.ndarray
    memory: np.ndarray
    counts: np.ndarray
    numbers: np.ndarray
    known: np.ndarray
    """What a step cost with factors of each age."""
    guess: np.ndarray
    work: np.ndarray
    path: np.ndarray
    """Room for solutions that are followed (`_follow.follow`), one a row."""


class Steps(NamedTuple):
    """The same for a step that may be a composition: records have a row for each substep, other arrays lie end to end.

    Those of substep k begin at starts[0, k] in `memory`, at starts[1, k] in `tables` and at starts[2, k] in `guess`, `work` and
    the rows of `path`; offsets[k] says where in the step it begins. The first row of counts belongs to the run.
    """

    kernels: np.ndarray
    layouts: np.ndarray
    tables: np.ndarray
    memory: np.ndarray
    counts: np.ndarray
    numbers: np.ndarray
    known: np.ndarray
    guess: np.ndarray
    work: np.ndarray
    path: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray


class LaneSubstep(NamedTuple):
    """What one substep works on where several trajectories are computed at once; `bits` is the memory as integers."""

    kernels: np.ndarray
    layout: np.ndarray
    memory: np.ndarray
    bits: np.ndarray
    counts: np.ndarray
    numbers: np.ndarray
    known: np.ndarray
    guess: np.ndarray
    failed: np.ndarray
    lanes: int
    control: int
    """Where the numbers begin by which each lane decides (`compiler._lane_kernels.CONTROL`)."""


class LaneSteps(NamedTuple):
    """What all units share: programs, where things lie, room for guesses; `failed` says which lanes of a unit failed."""

    kernels: np.ndarray
    layouts: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray
    controls: np.ndarray
    guess: np.ndarray
    failed: np.ndarray
    lanes: int
    watch: int
    """The address of a kernel that is shown every state, or 0."""
    watch_plan: np.ndarray
    single: Steps
    """The same programs for one trajectory, and room to make a step of one lane with them."""


class Units(NamedTuple):
    """What each unit has for itself, one row a unit; without the first axis it is that of one unit.

    `targets` are the rows of the store that belong to its members, `alive` says which lanes have one.
    """

    memory: np.ndarray
    bits: np.ndarray
    counts: np.ndarray
    numbers: np.ndarray
    known: np.ndarray
    t0: np.ndarray
    h: np.ndarray
    alive: np.ndarray
    targets: np.ndarray
    watched: np.ndarray
    events: np.ndarray
    n_events: np.ndarray
    helped: np.ndarray
    """How many steps of each lane were followed alone, and of how many no solution had been found."""
