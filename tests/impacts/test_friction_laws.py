"""Friction that is no multiple of the normal force, as in (4.2) of Jay and Simeon with its inequalities."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import dalembert as da

STEEL_ON_TEFLON = {"m": 0.2, "b": 0.01, "g": 9.81, "c_f": 0.1, "r_f": 0.85}


def law(N, c_f, r_f):
    return c_f * N ** (r_f - 1)


def surface():
    """A mass on or above y = b x^3; phi is no distance."""
    return da.Lagrangian(
        lambda q, v, m, g: m * (v @ v) / 2 - m * g * q[1],
        dim=2,
        unilateral=lambda q, b: q[1] - b * q[0] ** 3,
        friction=law,
        restitution=0.0,
        params=STEEL_ON_TEFLON,
    )


def sliding(sign, m, b, g, c_f, r_f):
    """The motion along the surface: x, the speed u along it, and the normal force."""

    def shape(x):
        slope = 3 * b * x**2
        return slope, np.sqrt(1 + slope**2)

    def normal(_, state):
        (x, u), (_, w) = state, shape(state[0])
        return m * (g / w + 6 * b * x / w**3 * u**2)

    def rates(t, state):
        slope, w = shape(state[0])
        return [state[1] / w, -g * slope / w - sign * c_f * abs(normal(t, state)) ** r_f / m]

    return shape, normal, rates


def until(rates, event, t, state):
    """The first zero of a function along a motion, by DOP853."""
    event.terminal = True
    found = solve_ivp(rates, (t, t + 10), state, "DOP853", events=event, rtol=1e-13, atol=1e-14)
    return found.t_events[0][0], found.y_events[0][0]


def expected(q, v, t_end, params):
    """A flight, a landing, a way up, the way back, and a flight.

    In the landing friction has the impulse c_f P if r_f = 1, and none if it is less: P^r dt^(1-r) -> 0.
    """
    b, g = params["b"], params["g"]
    landing = brentq(lambda t: q[1] + v[1] * t - g * t**2 / 2 - b * (q[0] + v[0] * t) ** 3, 1e-3, 1.0, xtol=1e-15, rtol=1e-15)
    shape, _, rates = sliding(1, **params)
    x, fall = q[0] + v[0] * landing, v[1] - g * landing
    slope, w = shape(x)
    along, onto = (v[0] + slope * fall) / w, (slope * v[0] - fall) / w
    along -= params["c_f"] * onto if params["r_f"] == 1 else 0.0
    top, (x, _) = until(rates, lambda _, state: state[1], landing, [x, along])
    _, normal, rates = sliding(-1, **params)
    off, (x, u) = until(rates, normal, top, [x, 0.0])
    slope, w = shape(x)
    left, flown = np.array([u / w, u * slope / w]), t_end - off
    position = np.array([x, b * x**3]) + left * flown - np.array([0, g / 2]) * flown**2
    momentum = params["m"] * (left - np.array([0, g * flown]))
    return np.array([landing, top, off]), np.concatenate([position, momentum])


@pytest.mark.parametrize(("r_f", "takes_off", "ends"), [(0.85, 2e-8, 3e-7), (1.0, 1e-10, 2e-9)])
def test_a_mass_lands_on_a_surface_slides_up_and_back_and_takes_off(r_f, takes_off, ends):
    params, start = STEEL_ON_TEFLON | {"r_f": r_f}, {"q0": [0.0, 1.0], "v0": [14.0, 0.0]}
    times, end = expected(start["q0"], start["v0"], 4.0, params)
    errors = []
    for h in (0.04, 0.02):
        run = da.simulate(surface(), da.CVA(da.Gauss(stages=3)), h=h, t1=4.0, params=params, **start)
        assert list(run.contacts.slides) == [1, -1] and len(run.impacts) == 1
        friction = params["c_f"] * run.impacts.impulse[0] * np.hypot(1, 0.03 * run.impacts.q[0, 0] ** 2) if r_f == 1 else 0.0
        assert abs(abs(run.impacts.friction[0]) - friction) < 1e-14
        assert abs(run.impacts.t[0] - times[0]) < 1e-14 and abs(run.contacts.end[1] - times[2]) < takes_off
        assert np.abs(run.states[-1] - end).max() < ends
        assert np.min(run.q[:, 1] - 0.01 * run.q[:, 0] ** 3) > -1e-12
        touched = run.contact_forces.normal[:, 0] > 0
        N = run.contact_forces.normal[touched, 0] * np.hypot(1, 0.03 * run.q[touched, 0] ** 2)
        np.testing.assert_allclose(np.abs(run.contact_forces.friction[touched, 0]), 0.1 * N**r_f, rtol=1e-9)
        errors.append(abs(run.contacts.end[0] - times[1]))
    assert abs(np.log2(errors[0] / errors[1]) - 6) < 0.2  # of the base, over the landing and up to where it turns back


def test_while_it_touches_the_motion_is_that_of_the_overdetermined_system():
    problem = da.problems.mass_on_surface()
    exact = da.simulate(problem, da.compose(da.SymplecticEuler(), 6), h=0.004, steps=250)
    params = dict(problem.system.params)
    run = da.simulate(surface(), da.CVA(da.Gauss(stages=3)), q0=problem.y0, v0=problem.z0, h=0.01, steps=100, params=params)
    np.testing.assert_allclose(run.q[-1], exact.y[-1], rtol=0, atol=1e-10)
    np.testing.assert_allclose(run.v[-1], exact.z[-1], rtol=0, atol=1e-10)
    np.testing.assert_allclose(run.contact_forces.normal[-1], exact.lam[-1], rtol=1e-10)


def rod():
    """Of length 2 and mass 1, on its tip: its friction changes the normal force."""
    return da.Lagrangian(
        lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2 + v[2] ** 2 / 6 - 9.81 * q[1],
        dim=3,
        unilateral=lambda q: q[1] - np.sin(q[2]),
        friction=law,
        slip=lambda q, v: v[0] + np.sin(q[2]) * v[2],
        restitution=0.0,
        params={"c_f": 0.5, "r_f": 0.7},
    )


def rates_of_rod(_, state):
    """x, its angle, their rates; N by a bracket: y'' = N - g = (sin angle)'', angle'' = 3 (T sin - N cos), T = -c N^r."""
    angle, dx, turn = state[1:]
    s, c = np.sin(angle), np.cos(angle)
    slides = np.sign(dx + s * turn)

    def excess(N):
        T = -slides * 0.5 * N**0.7
        return N - 9.81 - (c * 3 * (T * s - N * c) - s * turn**2)

    N = brentq(excess, 0.0, 100.0, xtol=1e-15, rtol=1e-15)
    T = -slides * 0.5 * N**0.7
    return [dx, turn, T, 3 * (T * s - N * c)]


@pytest.mark.parametrize("speed", [3.0, -3.0])
def test_friction_that_couples_with_its_normal_force(speed):
    state = [0.0, 1.1, speed, 0.0]
    end = solve_ivp(rates_of_rod, (0, 0.3), state, "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    start = {"q0": [0, np.sin(1.1), 1.1], "v0": [speed, 0, 0]}
    run = da.simulate(rod(), da.CVA(da.Gauss(stages=3)), h=0.005, t1=0.3, **start)
    assert list(run.contacts.slides) == [np.sign(speed)]
    np.testing.assert_allclose([run.q[-1, 0], run.q[-1, 2], run.v[-1, 0], run.v[-1, 2]], end, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("m", "stays"), [(0.02, True), (20.0, False)])
def test_a_heavy_block_slides_where_a_light_one_stays(m, stays):
    a, c_f, r_f = 0.1, 0.1, 0.85
    block = da.Lagrangian(
        lambda q, v, m: m * (v @ v / 2 - 9.81 * (q[0] * np.sin(a) + q[1] * np.cos(a))),
        dim=2,
        unilateral=lambda q: q[1],
        friction=law,
        params={"m": m, "c_f": c_f, "r_f": r_f},
    )
    N = m * 9.81 * np.cos(a)
    assert (np.tan(a) < law(N, c_f, r_f)) == stays
    run = da.simulate(block, da.CVA(), q0=[0, 0], v0=[0, 0], h=0.01, t1=1.0)
    rate = 0.0 if stays else -9.81 * np.sin(a) + c_f * N**r_f / m
    np.testing.assert_allclose(run.q[-1], [rate / 2, 0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.v[-1], [rate, 0], rtol=0, atol=1e-13)


def test_models_that_differ_in_their_law_only_are_different():
    other = da.Lagrangian(
        lambda q, v, m, g: m * (v @ v) / 2 - m * g * q[1],
        dim=2,
        unilateral=lambda q, b: q[1] - b * q[0] ** 3,
        friction=lambda N, c_f, r_f: c_f * N ** (2 * r_f - 2),
        restitution=0.0,
        params=STEEL_ON_TEFLON,
    )
    assert other.fingerprint != surface().fingerprint


@pytest.mark.parametrize("method", [da.NonsmoothRattle(), da.MoreauJean()])
def test_time_stepping_refuses_it(method):
    with pytest.raises(da.errors.UnsupportedSystem, match=r"friction cannot depend on N: use da\.CVA"):
        da.simulate(surface(), method, q0=[0, 1], v0=[0, 0], h=0.01, steps=1)


def test_derivatives_refuse_it():
    with pytest.raises(da.errors.InputError, match="friction that depends on N are not computed"):
        da.sensitivities(surface(), da.CVA(), wrt=("v0",), q0=[0, 1], v0=[1, 0], h=0.01, steps=1)


def test_a_law_without_a_bound_is_refused():
    with pytest.raises(da.errors.InputError, match="friction under an infinite force N, as of impacts, is infinite"):
        da.simulate(surface(), da.CVA(), q0=[0, 1], v0=[1, 0], h=0.01, steps=100, params={"r_f": 1.1})


@pytest.mark.parametrize("mu", [0.5, 1.3, 5 / 3])
@pytest.mark.parametrize("way", [-1, 1])
def test_a_rod_that_is_pushed_slides_unless_the_rigid_model_has_no_motion(mu, way):
    """Painleve's rod of length 2 on its tip at tan(angle) = 2: N (8/5 + way mu 6/5) = g while it slides, if that is positive.

    P. Painleve, C. R. Acad. Sci. Paris 121 (1895) 112-115; C. Glocker (1995).
    """
    rod = da.Lagrangian(
        lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2 + v[2] ** 2 / 6 - 10 * q[1],
        dim=3,
        unilateral=lambda q: q[1] - np.sin(q[2]),
        friction=mu,
        slip=lambda q, v: v[0] + np.sin(q[2]) * v[2],
        restitution=0.0,
    )
    angle = np.arctan(2)
    start = {"q0": [0, np.sin(angle), angle], "v0": [30 * way, 0, 0], "h": 1e-7, "steps": 3}
    stiffness = 8 / 5 + way * mu * 6 / 5
    if stiffness < 0:
        with pytest.raises(da.StepFailed, match="Painleve"):
            da.simulate(rod, da.CVA(da.Gauss(stages=2)), **start)
    else:
        run = da.simulate(rod, da.CVA(da.Gauss(stages=2)), **start)
        assert run.contact_forces.normal[0, 0] == pytest.approx(10 / stiffness, rel=1e-9)
        assert run.contact_forces.friction[0, 0] == pytest.approx(-way * mu * 10 / stiffness, rel=1e-9)
        assert len(run.impacts) == 0 and list(run.contacts.slides) == [way]
