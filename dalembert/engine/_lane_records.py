"""What is kept of the states of lanes: rows of the store, and what a watch notices."""

from __future__ import annotations

from dalembert.engine._compiled import compiled
from dalembert.engine._iteration import at, inlined
from dalembert.engine._kernel_call import call_kernel

# the plan of a watch: slots of its memory
WATCH_STATE, WATCH_N_STATE, WATCH_FLAG, WATCH_EVENT, WATCH_EVENT_SIZE = range(5)


@compiled()
def watch_rows(watch, plan, watched, rows, before, t0, h, events):
    """Show the states after the steps `before` + 1, ... of one trajectory to a watch; how many events it noticed."""
    found, first = 0, plan[WATCH_STATE]
    for row in range(len(rows)):
        watched[0] = t0 + (before + 1 + row) * h
        for k in range(plan[WATCH_N_STATE]):
            watched[first + k] = rows[row, k]
        call_kernel(watch, watched)
        if plan[WATCH_EVENT_SIZE] and watched[plan[WATCH_FLAG]] != 0.0:
            for k in range(plan[WATCH_EVENT_SIZE]):
                events[found, k] = watched[plan[WATCH_EVENT] + k]
            found += 1
    return found


@inlined
def watch_lanes(steps, unit, state, step):
    """Show the states of all lanes to the watch; True if one of them has no more room for events."""
    lanes, plan, watched, events, n_events = steps.lanes, steps.watch_plan, unit.watched, unit.events, unit.n_events
    for lane in range(lanes):
        watched[at(lane)] = unit.t0[at(lane)] + step * unit.h[at(lane)]
    first = plan[WATCH_STATE] * lanes
    for k in range(plan[WATCH_N_STATE] * lanes):
        watched[at(first + k)] = unit.memory[at(state + k)]
    call_kernel(steps.watch, watched)
    full = False
    if plan[WATCH_EVENT_SIZE]:
        for lane in range(lanes):
            if watched[at(plan[WATCH_FLAG] * lanes + lane)] != 0.0 and unit.alive[at(lane)] != 0.0:
                row = n_events[lane]
                for k in range(plan[WATCH_EVENT_SIZE]):
                    events[lane, row, k] = watched[(plan[WATCH_EVENT] + k) * lanes + lane]
                n_events[lane] = row + 1
                full = full or row + 1 == events.shape[1]
    return full


@inlined
def save_lanes(steps, unit, store):
    """Store the state of every lane, and the stage multipliers of the last substep."""
    lanes, layouts, starts, memory = steps.lanes, steps.layouts, steps.starts, unit.memory
    last = len(layouts) - 1
    state, n_state = starts[0, 0] + layouts[0].state * lanes, layouts[0].n_state
    multipliers = starts[0, last] + (layouts[last].stage_multipliers + layouts[last].n_stage) * lanes  # the accepted ones
    row = unit.counts[0].saved
    for lane in range(lanes):
        if unit.alive[lane] != 0.0:
            target = unit.targets[lane]
            for k in range(n_state):
                store[target, row, k] = memory[at(state + k * lanes + lane)]
            for k in range(store.shape[2] - n_state):
                store[target, row, n_state + k] = memory[at(multipliers + k * lanes + lane)]
    unit.counts[0].saved = row + 1
