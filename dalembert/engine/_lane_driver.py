"""Newton's iteration and the step loop for trajectories that are computed side by side, one in each lane of a vector.

A unit is what shares memory and counters: as many trajectories as there are lanes, every slot of memory holding one number a
lane. They take their steps together, with factors of the same age, and an iteration ends when the last of them has converged.
A lane whose step fails or is in doubt is followed alone from small h; if that fails too, it leaves the unit, and the others
make theirs again. Like the driver for one trajectory, this file knows no model.
"""

from __future__ import annotations

import numpy as np

from dalembert.compiler._lane_kernels import CONTROL, DIVERGES
from dalembert.compiler._stopping import MAX_ITERATIONS, MAX_REFRESHES
from dalembert.engine._compiled import compiled, internal
from dalembert.engine._driver import (
    DONE,
    GUESS_READY,
    PREDICT,
    UNSOLVED,
    add_increment,
)
from dalembert.engine._follow import follow
from dalembert.engine._iteration import (
    CORRECTION_SLOT,
    at,
    finish_step,
    first_rate,
    inlined,
    keep_factors,
    meet_constraints,
    substep_of,
)
from dalembert.engine._kernel_call import call_kernel
from dalembert.engine._lane_records import save_lanes, watch_lanes
from dalembert.engine._layout import LaneSubstep, Units

FULL, RUNNING = 2, 3
MOST_HELPS = 2
"""How often lanes of a step are followed alone before Python looks at it."""
MASK, ALIVE, SIGN, PREVIOUS, RATE, LAST_RATE, AGE_IN_STEP, ATTENTION, REFRESHES, LOST, WRONG, DOUBT = (
    CONTROL.index(name)
    for name in (
        "mask", "alive", "sign", "previous", "rate", "last_rate", "age", "attention", "refreshes", "lost", "wrong", "doubt",
    )
)  # fmt: skip


@inlined
def factorize_lanes(sub):
    """Renew the factors of all lanes."""
    call_kernel(sub.kernels.factor, sub.memory)
    sub.counts.factorizations += 1
    sub.counts.age = 0


@inlined
def any_lane(bits, first, lanes):
    """Whether a number is not zero in one of four or eight lanes."""
    some = bits[at(first)] | bits[at(first + 1)] | bits[at(first + 2)] | bits[at(first + 3)]
    if lanes == 8:
        some |= bits[at(first + 4)] | bits[at(first + 5)] | bits[at(first + 6)] | bits[at(first + 7)]
    return some != 0


@internal()
def attend(memory, iteration, lanes, control):
    """Mask the lanes for which there is no hope; True if one that goes on asks for new weights or factors."""
    asked = False
    for lane in range(control, control + lanes):
        attention, refreshes = memory[lane + ATTENTION * lanes], memory[lane + REFRESHES * lanes]
        if attention == DIVERGES or (attention != 0.0 and refreshes == MAX_REFRESHES):
            memory[lane + MASK * lanes], memory[lane + ATTENTION * lanes], memory[lane + LOST * lanes] = 0.0, 0.0, 1.0
        elif attention != 0.0:
            memory[lane + REFRESHES * lanes] += iteration > 1
            asked = True
    return asked


@inlined
def solve_lanes(sub):
    """`solve` of the driver, for all lanes in the mask: the number of iterations; lanes that fail are `lost`."""
    memory, bits, lanes, control = sub.memory, sub.bits, sub.lanes, sub.control
    mask, attention = control + MASK * lanes, control + ATTENTION * lanes
    for iteration in range(1, MAX_ITERATIONS + 1):
        call_kernel(sub.kernels.iterate, memory)
        sub.counts.iterations += 1
        if not any_lane(bits, mask, lanes):
            return iteration
        if any_lane(bits, attention, lanes) and attend(memory, iteration, lanes, control):
            if iteration == 1:
                call_kernel(sub.kernels.weigh_again, memory)
            else:
                factorize_lanes(sub)
    for lane in range(lanes):
        memory[at(control + LOST * lanes + lane)] = max(memory[control + LOST * lanes + lane], memory[mask + lane])
    return MAX_ITERATIONS


@internal()
def begin_again(memory, x, guess, lanes, control):
    """Put the lanes that are lost or in doubt, and no others, back to their guess."""
    for lane in range(lanes):
        here = control + lane
        again = memory[here + LOST * lanes] != 0.0 or memory[here + DOUBT * lanes] != 0.0
        memory[here + MASK * lanes] = 1.0 if again else 0.0
        if again:
            for k in range(lane, len(guess), lanes):
                memory[x + k] = guess[k]
            memory[here + PREVIOUS * lanes] = np.inf
            memory[here + RATE * lanes] = first_rate(memory[here + LAST_RATE * lanes])
            memory[here + AGE_IN_STEP * lanes] = memory[here + REFRESHES * lanes] = memory[here + LOST * lanes] = 0.0
            memory[here + DOUBT * lanes] = 0.0


@inlined
def solve_step_lanes(sub):
    """`solve_step` of the driver, for all lanes; False if one or more are `lost`."""
    memory, bits, counts, lanes, control = sub.memory, sub.bits, sub.counts, sub.lanes, sub.control
    lost = control + LOST * lanes
    reused = counts.age >= 0
    if not reused:
        factorize_lanes(sub)
    iterations = solve_lanes(sub)
    doubtful = sub.numbers.far < np.inf and any_lane(bits, control + DOUBT * lanes, lanes)
    if reused and (doubtful or any_lane(bits, lost, lanes)):
        begin_again(memory, sub.layout.x * lanes, sub.guess, lanes, control)
        factorize_lanes(sub)
        iterations = solve_lanes(sub)
    if any_lane(bits, lost, lanes):
        return False
    for _ in range(sub.layout.polish):
        for lane in range(lanes):
            memory[at(control + MASK * lanes + lane)] = memory[at(control + ALIVE * lanes + lane)]
            memory[at(control + AGE_IN_STEP * lanes + lane)] = 0.0  # nothing is learnt from this about rates
        call_kernel(sub.kernels.iterate, memory)
    if not keep_factors(-1, iterations, iterations, counts, sub.numbers, sub.known, sub.numbers.cost_ratio):
        counts.age = -1
    return True


@inlined
def make_step_lanes(sub):
    """`make_step` of the driver, for all lanes; False if one failed: `failed` says which.

    Then the guesses are in memory, and what was found is in `guess`.
    """
    memory, counts, lanes, guess = sub.memory, sub.counts, sub.lanes, sub.guess
    x, n_x = sub.layout.x * lanes, sub.layout.n_x * lanes
    if counts.mode == PREDICT:
        call_kernel(sub.kernels.predict, memory)
    call_kernel(sub.kernels.weigh, memory)
    for k in range(n_x):
        guess[at(k)] = memory[at(x + k)]
    verdict = sub.control + LOST * lanes
    if n_x == 0 or solve_step_lanes(sub):
        verdict = sub.control + WRONG * lanes
        call_kernel(sub.kernels.finish, memory)
        if sub.kernels.look != 0 and any_lane(sub.bits, verdict, lanes):
            call_kernel(sub.kernels.look, memory)
        if not any_lane(sub.bits, verdict, lanes):
            counts.mode = PREDICT
            return True
    for lane in range(lanes):
        sub.failed[lane] = memory[at(verdict + lane)]
    for k in range(n_x):  # what was found is kept where the guesses were
        memory[at(x + k)], guess[at(k)] = guess[at(k)], memory[at(x + k)]
    counts.age = -1
    counts.mode = GUESS_READY
    return False


@internal()
def holds(sub):
    """Whether a solution that was not in doubt is the step's, iterated further where it misses constraints at the end."""
    return (finish_step(sub) or meet_constraints(sub)) and not sub.memory[CORRECTION_SLOT] >= sub.numbers.far


@internal()
def help_lanes(steps, unit, k, first):
    """Follow the step of substep k from small h for the lanes that failed or are in doubt; False if that fails for one.

    What is found becomes the lane's guess. Steps count as `make_step` of the driver counts them.
    """
    single, lanes, failed, layout = steps.single, steps.lanes, steps.failed, steps.layouts[k]
    memory, n = unit.memory, layout.n_x
    control, found = first + steps.controls[k], steps.guess[steps.starts[1, k] : steps.starts[1, k + 1]]
    if single.numbers[k].far == np.inf:  # Python will look at what failed
        return False
    sub = substep_of(single, k)
    all_helped = n > 0
    for lane in range(lanes):
        if failed[lane] != 0.0 and n > 0:
            for slot in range(layout.slots):
                sub.memory[slot] = memory[first + slot * lanes + lane]
            for i in range(n):
                sub.guess[i] = sub.memory[layout.x + i]
                sub.memory[layout.x + i] = found[i * lanes + lane]
            sub.counts.sign = int(memory[control + SIGN * lanes + lane])
            followed, rescued = sub.counts.followed, sub.counts.rescued
            solved = memory[control + LOST * lanes + lane] == 0.0
            certain = solved and memory[control + DOUBT * lanes + lane] == 0.0
            if (certain and holds(sub)) or follow(sub, solved):
                for i in range(n):
                    memory[first + (layout.x + i) * lanes + lane] = sub.memory[layout.x + i]
                unit.helped[lane, 0] += sub.counts.followed - followed
                unit.helped[lane, 1] += sub.counts.rescued - rescued
                failed[lane] = 0.0
            else:
                all_helped = False
    return all_helped


@internal()
def advance_unit(steps, unit, store, last_step, save_every):
    """Steps of one unit, as `advance` of the driver makes them for one trajectory."""
    kernels, layouts, starts, offsets, controls, guess, failed, lanes, watch, _, _ = steps
    memory, counts = unit.memory, unit.counts[0]
    n_sub = len(offsets)
    state = starts[0, 0] + layouts[0].state * lanes
    until_saved = save_every - counts.steps_done % save_every
    while counts.steps_done < last_step:
        step = counts.steps_done
        for k in range(counts.substep, n_sub):
            layout, first, end = layouts[k], starts[0, k], starts[0, k + 1]
            sub = LaneSubstep(
                kernels[k], layout, memory[first:end], unit.bits[first:end], unit.counts[k], unit.numbers[k], unit.known[k],
                guess[starts[1, k] : starts[1, k + 1]], failed, lanes, controls[k],
            )  # fmt: skip
            if sub.kernels.clock != 0:
                call_kernel(sub.kernels.clock, sub.memory)
            else:
                for lane in range(lanes):
                    memory[at(first + lane)] = unit.t0[at(lane)] + (step + offsets[k]) * unit.h[at(lane)]
            helped = 0
            while not make_step_lanes(sub):  # lanes that are lost hide others, which are in doubt
                helped += 1
                if helped > MOST_HELPS or not help_lanes(steps, unit, k, first):
                    counts.substep = k
                    return UNSOLVED
            if sub.kernels.clock != 0:
                call_kernel(sub.kernels.tick, sub.memory)
            following = (k + 1) % n_sub
            target = starts[0, following] + layouts[following].state * lanes
            add_increment(memory, first + layout.state * lanes, first + layout.delta * lanes, target, layout.n_state * lanes)
            own, count = first + layout.stage_multipliers * lanes, layout.n_stage * lanes
            for i in range(count):  # a rejected step must not overwrite them
                memory[at(own + count + i)] = memory[at(own + i)]
        counts.substep = 0
        counts.steps_done = step + 1
        until_saved -= 1
        if until_saved == 0:
            until_saved = save_every
            save_lanes(steps, unit, store)
        if watch and watch_lanes(steps, unit, state, step + 1):
            return FULL
    return DONE


@compiled()
def advance_units(steps, units, status, store, last_step, save_every, budget):
    """Advance the units that are RUNNING by at most `budget` steps altogether; one that stops says so in `status`.

    The first that fails ends the call: `failed` says which of its lanes did.
    """
    for k in range(len(status)):
        if status[k] == RUNNING and budget > 0:
            unit = Units(
                units.memory[k], units.bits[k], units.counts[k], units.numbers[k], units.known[k], units.t0[k], units.h[k],
                units.alive[k], units.targets[k], units.watched[k], units.events[k], units.n_events[k], units.helped[k],
            )  # fmt: skip
            before = unit.counts[0].steps_done
            result = advance_unit(steps, unit, store, min(last_step, before + budget), save_every)
            budget -= unit.counts[0].steps_done - before
            if result != DONE or unit.counts[0].steps_done == last_step:
                status[k] = result
            if result == UNSOLVED:
                return
