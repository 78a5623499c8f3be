"""A run that is made again: what was decided about its start is not looked for again, and nothing of it is shared."""

from types import SimpleNamespace

import numpy as np
import pytest

import dalembert as da
from dalembert.compiler import _orders
from dalembert.runs._starts import initial_state
from dalembert.systems import _consistent, state_at
from dalembert.systems._states import States


def test_pivot_orders_are_looked_for_once(monkeypatch):
    problem, made = da.problems.double_pendulum(g=9.7), []
    looked = _orders._orders_for
    monkeypatch.setattr(_orders, "_orders_for", lambda *given: made.append(given[3]) or looked(*given))
    first, second = (da.simulate(problem, da.LobattoIIIAB(3), h=0.0123, steps=5) for _ in range(2))
    assert made and set(made) == {0.0123}
    count = len(made)
    da.simulate(problem, da.LobattoIIIAB(3), h=0.0123, steps=5)
    assert len(made) == count
    np.testing.assert_array_equal(first.states, second.states)
    da.simulate(problem, da.LobattoIIIAB(3), h=0.0124, steps=5)
    assert len(made) > count


@pytest.mark.parametrize(("earlier", "taken"), [(np.inf, "sampled"), (2e-6, "sampled"), (9e-7, "earlier")])
def test_of_pivot_orders_that_are_all_bad_the_best_is_taken(monkeypatch, earlier, taken):
    """Of the bicycle: that from its neighbourhood has 1e-7, that of the step itself 4e-4; the latter was taken."""
    errors = {"sampled": 1e-7, "here": 4e-4, "earlier": earlier}
    monkeypatch.setattr(_orders, "sampled_entries", lambda *_: "sampled")
    monkeypatch.setattr(_orders, "chosen_from", lambda _, samples, leading: samples)
    monkeypatch.setattr(_orders, "_order_at", lambda *_: "here")
    monkeypatch.setattr(_orders, "order_errors", lambda order, *_: np.array([errors[order]]))
    system, state = initial_state(da.problems.pendulum())
    found = _orders._own_order(
        SimpleNamespace(matrix=str, leading=None), "jacobian", States.of(system, state), 0, 0.1, np.zeros(1), ["earlier"]
    )
    assert found == taken


def test_a_start_that_was_checked_is_not_checked_again_and_shares_nothing(monkeypatch):
    problem = da.problems.double_pendulum()
    given = {"q0": problem.q0.copy(), "v0": np.zeros(4)}
    one = state_at(problem.system, **given)
    monkeypatch.setattr(_consistent, "check_start", lambda *_: pytest.fail("checked again"))
    other = state_at(problem.system, **given)
    for name in ("q", "p", "v", "lam", "theta"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name) is not getattr(other, name)
    right = other.q.copy()
    other.q[:] = np.nan
    np.testing.assert_array_equal(state_at(problem.system, **given).q, right)


def test_other_values_and_parameters_are_other_starts():
    problem = da.problems.double_pendulum()
    system, q0 = problem.system, problem.q0.copy()
    first = state_at(system, q0=q0, v0=np.zeros(4))
    name = next(iter(system.params))
    heavier = state_at(system, q0=q0, v0=np.zeros(4), params={name: 2 * float(system.params[name])})
    assert not np.array_equal(first.theta, heavier.theta)
    q0[0] += 0.1  # in place: off the constraints
    with pytest.raises(da.InconsistentStart):
        state_at(system, q0=q0, v0=np.zeros(4))
