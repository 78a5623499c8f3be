"""Symplectic Euler and its relatives (Jay and Simeon): order, limits, equivalences, variational form, lost branches."""

from __future__ import annotations

import re

import method_models as models
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da

TEST_PROBLEMS = (models.growth, models.mass_on_surface)
STEPS = (320, 640, 1280, 2560)
ROUND_OFF = 1e-13


def study(model, method, reference, steps=STEPS):
    return da.verify.order(model.system, method, reference=reference, t1=model.t1, steps=steps, points=4, **model.start)


def relative(a, b):
    return np.max(np.abs(a - b)) / (1 + np.max(np.abs(b)))


# -- order: Theorems 3.1, 3.2 and 3.3 -------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", TEST_PROBLEMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("conjugate", [False, True])
def test_true_methods_have_order_1(problem, conjugate):
    model = problem()
    measured = study(model, da.SymplecticEuler(conjugate=conjugate), model.reference)
    assert set(measured.slopes) == {"y", "z", "lam"}
    assert all(abs(slope - 1) < 0.03 for slope in measured.slopes.values()), measured


@pytest.mark.parametrize("problem", TEST_PROBLEMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("y", ["explicit", "implicit"])
@pytest.mark.parametrize("z", ["explicit", "implicit"])
def test_every_combination_of_euler_steps_has_order_1(problem, y, z):
    model = problem()
    measured = study(model, da.ConstrainedEuler(y, z), model.reference)
    assert all(abs(slope - 1) < 0.03 for slope in measured.slopes.values()), measured


def test_the_mixed_combinations_are_the_symplectic_methods():
    model = models.growth()
    for conjugate, (y, z) in ((False, ("explicit", "implicit")), (True, ("implicit", "explicit"))):
        for variant in ("true", "natural"):
            runs = [
                da.simulate(model.system, method, h=0.01, steps=50, **model.start)
                for method in (da.SymplecticEuler(variant, conjugate), da.ConstrainedEuler(y, z, variant))
            ]
            np.testing.assert_array_equal(runs[0].states, runs[1].states)


@pytest.mark.parametrize("r_at", [("z1", "z0"), ("Z1", "Z1"), ("z0", "Z1"), ("Z1", "z1")])
@pytest.mark.parametrize("conjugate", [False, True])
def test_the_places_of_z_in_r_do_not_change_the_order(r_at, conjugate):
    """The remark after (3.5)."""
    model = models.growth()
    measured = study(model, da.SymplecticEuler(conjugate=conjugate, r_at=r_at), model.reference)
    assert all(abs(slope - 1) < 0.04 for slope in measured.slopes.values()), measured


@pytest.mark.parametrize("conjugate", [False, True])
def test_the_own_multiplier_of_the_true_method_is_consistent(conjugate):
    """Psi~_1 -> psi, in the proof of Theorem 3.2."""
    model = models.growth()
    reference = {"stage_lam": model.reference["lam"]}
    measured = study(model, da.SymplecticEuler(conjugate=conjugate, alpha=0.8), reference)
    assert abs(measured.slopes["stage_lam"] - 1) < 0.05, measured


@pytest.mark.parametrize("problem", TEST_PROBLEMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("conjugate", [False, True])
def test_natural_methods_converge_to_their_limit_ode_and_not_to_the_solution(problem, conjugate):
    """Section 3.4; for the conjugate method the same expansion of (3.7) gives its limit."""
    model = problem()
    method = da.SymplecticEuler("natural", conjugate)
    limit = model.conjugate_limit if conjugate else model.limit
    measured = study(model, method, limit)
    assert all(abs(slope - 1) < 0.03 for slope in measured.slopes.values()), measured
    fine = da.simulate(model.system, method, h=model.t1 / 20000, t1=model.t1, save_every=20000, **model.start)
    for name in ("y", "z"):
        gap = np.linalg.norm(limit[name] - model.reference[name])
        error = np.linalg.norm(getattr(fine, name)[-1] - model.reference[name])
        assert abs(error - gap) < 0.15 * gap, (name, error, gap)


def test_the_limits_of_psi_at_the_start_are_those_of_3_3_and_3_4():
    """At (1, 1, 1, 1) of (4.1) with alpha = 1/2: Psi_0 -> (sqrt 5 - 1)/2, Psi_1 -> (sqrt 13 - 1)/2; the method's own mean."""
    model = models.growth()
    wanted = ((np.sqrt(5) - 1) / 2 + (np.sqrt(13) - 1) / 2) / 2
    errors = [
        abs(da.simulate(model.system, da.SymplecticEuler("natural"), h=h, steps=1, stage_multipliers=True, **model.start)
            .stage_lam[-1, 0] - wanted)
        for h in (1e-3, 5e-4, 2.5e-4)
    ]  # fmt: skip
    assert errors[-1] < 1e-3
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 1, atol=0.02)


# -- r affine in lam: Theorem 3.2 and section 2 ---------------------------------------------------------------------


def affine():
    """Nothing Hamiltonian about it; r is affine in lam, and depends on z."""
    return da.ODAE(
        v=lambda y, z: [z[0] + y[1] * z[2] / 4, z[1], z[2] - y[0] / 3],
        f=lambda y, z: [-y[0], z[0] * z[2] - 1, -np.sin(y[2])],
        r=lambda y, z, lam: [0.3 * z[1] - y[0] * lam[0], -y[1] * (1 + z[0] ** 2 / 5) * lam[0], 0.2 - y[2] * lam[0]],
        g=lambda y: [(y @ y - 1) / 2],
        dim_y=3,
        dim_z=3,
    )


CONSTRAINED = ("double_pendulum", "magnetic_surface", "curved_mass", "varying_length")


@pytest.mark.parametrize("conjugate", [False, True])
@pytest.mark.parametrize("alpha", [0.5, 0.2, -0.7])
def test_natural_is_true_if_r_is_affine(conjugate, alpha):
    """With Psi~_1 = alpha Psi_0 + (1 - alpha) Psi_1."""
    system = affine()
    start = da.consistent(system, y0=[0.5, 0.6, -0.6], z0=[0.3, 0.4, 0.2])
    natural, true = (
        da.simulate(
            system, da.SymplecticEuler(variant, conjugate, alpha), start=start, h=0.02, steps=100, stage_multipliers=True
        )
        for variant in ("natural", "true")
    )
    assert relative(natural.states, true.states) < ROUND_OFF
    assert np.max(np.abs(natural.stage_lam[1:] - true.stage_lam[1:])) < 1e-11  # round-off eps/h^2
    assert np.all(np.isfinite(true.stage_lam[1:]))


@pytest.mark.parametrize("name", CONSTRAINED)
@pytest.mark.parametrize("conjugate", [False, True])
def test_alpha_and_variant_do_not_matter_on_mechanical_systems(name, conjugate):
    model = models.CONSTRAINED[name]()
    choices = [("true", 0.5), ("true", 1), ("true", -0.4), ("natural", 0.5), ("natural", 0.1), ("natural", 2.5)]
    runs = [
        da.simulate(model.system, da.SymplecticEuler(variant, conjugate, alpha), h=0.02, steps=50, stage_multipliers=True,
                    **model.start)
        for variant, alpha in choices
    ]  # fmt: skip
    for run in runs[1:]:
        assert relative(run.states, runs[0].states) < ROUND_OFF
        assert np.max(np.abs(run.stage_lam[1:] - runs[0].stage_lam[1:])) < 1e-10


@pytest.mark.parametrize("name", CONSTRAINED[:3])
@pytest.mark.parametrize("conjugate", [False, True])
@pytest.mark.parametrize("variant", ["true", "natural"])
def test_symplectic_on_the_constraint_manifold(name, conjugate, variant):
    model = models.CONSTRAINED[name]()
    middle = da.simulate(model.system, da.LobattoIIIAB(4), h=0.05, steps=20, **model.start)
    start = da.consistent(model.system, q0=middle.q[-1], p0=middle.p[-1])
    method = da.SymplecticEuler(variant, conjugate)
    assert da.verify.symplecticity_defect(model.system, method, h=0.1, start=start) < ROUND_OFF


@pytest.mark.parametrize("conjugate", [False, True])
def test_the_sum_of_both_multipliers_is_consistent(conjugate):
    """Lambda_0 + Lambda_1 = lambda(t_1) + O(h), after Theorem 3.1; neither of them alone is."""
    model = models.magnetic_surface()
    steps = (250, 500, 1000, 2000)
    gaps = []
    for n in steps:
        run = da.simulate(model.system, da.SymplecticEuler(conjugate=conjugate), h=model.t1 / n, steps=n,
        stage_multipliers=True,
                          **model.start)  # fmt: skip
        gaps.append(np.max(np.abs(run.stage_lam[1:] - run.lam[1:])))
    slope, used = da.verify.slope(1 / np.array(steps), gaps, points=4)
    assert used.all()
    assert abs(slope - 1) < 0.05, gaps


# -- variational: (2.2) is the constrained integrator of SE1, (3.6) that of SE2 --------------------------------------


def mass_matrix(q):
    a, b, _ = q
    return np.array([[2 + np.sin(b), 0.3, 0], [0.3, 1 + a**2, 0], [0, 0, 1.5]])


def lagrangian_gradients(q, v):
    """L_q and L_v of L = v^T M(q) v / 2 - a b - cos c."""
    a, b, c = q
    L_q = np.array([a * v[1] ** 2 - b, np.cos(b) * v[0] ** 2 / 2 - a, np.sin(c)])
    return L_q, mass_matrix(q) @ v


def surface(q):
    a, b, c = q
    return a + b**2 / 2 + np.sin(c) - 1, np.array([1.0, b, np.cos(c)])


def discrete_slopes(q0, q1, h, second):
    """D_1 L_d and D_2 L_d of L_d = h L(q0, (q1 - q0)/h), SE1, or h L(q1, (q1 - q0)/h), SE2."""
    L_q, L_v = lagrangian_gradients(q1 if second else q0, (q1 - q0) / h)
    return (-L_v, L_v + h * L_q) if second else (h * L_q - L_v, L_v)


def newton(equations, x):
    """To round-off, with the Jacobian by complex steps."""
    for _ in range(12):
        jacobian = np.column_stack([equations(x + 1e-30j * e).imag / 1e-30 for e in np.eye(len(x))])
        x = x - np.linalg.solve(jacobian, equations(x))
    return x


def discrete_step(q0, p0, h, second):
    """p_0 = -D_1 L_d + G^T(q_0) l_0, g(q_1) = 0, and p_1 = D_2 L_d - G^T(q_1) l_1 with G(q_1) M^-1(q_1) p_1 = 0."""
    slope0 = surface(q0)[1]

    def positions(x):
        return np.append(p0 + discrete_slopes(q0, x[:3], h, second)[0] - slope0 * x[3], surface(x[:3])[0])

    q1 = newton(positions, np.append(q0 + h * np.linalg.solve(mass_matrix(q0), p0), 0.0))[:3]
    slope1, free = surface(q1)[1], discrete_slopes(q0, q1, h, second)[1]
    normal = np.linalg.solve(mass_matrix(q1), slope1)
    return q1, free - slope1 * (normal @ free) / (normal @ slope1)


@pytest.mark.parametrize("second", [False, True], ids=["SE1", "SE2"])
def test_steps_are_those_of_the_constrained_variational_integrator(second):
    def L(q, v):
        M = np.array([[2 + np.sin(q[1]), 0.3, 0], [0.3, 1 + q[0] ** 2, 0], [0, 0, 1.5]])
        return v @ M @ v / 2 - q[0] * q[1] - np.cos(q[2])

    system = da.Lagrangian(L, dim=3, holonomic=lambda q: [q[0] + q[1] ** 2 / 2 + np.sin(q[2]) - 1])
    start = da.consistent(system, q0=[0.4, 0.5, 0.5], v0=[0.5, -0.6, 0.2])
    h = 0.1
    run = da.simulate(system, da.SymplecticEuler(conjugate=second), start=start, h=h, steps=20)
    q1, p1 = discrete_step(start.q, start.p, h, second)
    assert relative(run.q[1], q1) < 1e-14
    assert relative(run.p[1], p1) < 1e-14
    for before, here, after in zip(run.q[:-2], run.q[1:-1], run.q[2:], strict=True):
        # the discrete Euler-Lagrange equations: D_2 L_d(q_k-1, q_k) + D_1 L_d(q_k, q_k+1) = G^T(q_k) l_k
        rest = discrete_slopes(before, here, h, second)[1] + discrete_slopes(here, after, h, second)[0]
        value, normal = surface(here)
        tangential = rest - normal * (normal @ rest) / (normal @ normal)
        assert np.max(np.abs(tangential)) < 1e-13
        assert abs(value) < 1e-14
    other = discrete_step(start.q, start.p, h, not second)[0]
    assert relative(run.q[1], other) > 1e-4  # the two integrators differ


def test_arguments_of_time_go_with_positions():
    """SE1 and SE2 of L = (1 + t^2) v^2 / 2 + q cos t by hand, at t_0 and at t_1."""
    system = da.Lagrangian(lambda t, q, v: (1 + t**2) * v[0] ** 2 / 2 + np.cos(t) * q[0], dim=1)
    t0, h, q0, p0 = 0.5, 0.1, 0.3, 0.7
    for conjugate in (False, True):
        t = t0 + h if conjugate else t0
        p1 = p0 + h * np.cos(t)
        q1 = q0 + h * (p0 if conjugate else p1) / (1 + t**2)
        new = da.verify.step(system, da.SymplecticEuler(conjugate=conjugate), q0=[q0], p0=[p0], t0=t0, h=h)
        np.testing.assert_allclose([new.q[0], new.p[0]], [q1, p1], rtol=1e-15)


# -- guesses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["true", "natural"])
@pytest.mark.parametrize("conjugate", [False, True])
def test_few_newton_iterations_because_each_multiplier_is_carried_on_its_own(variant, conjugate):
    """Psi_0 differs from Psi_1 by O(1), from its own last value by O(h): only then do smaller steps take fewer iterations."""
    model = models.growth()
    average = []
    for h in (0.01, 0.001, 0.0001):
        run = da.simulate(model.system, da.SymplecticEuler(variant, conjugate), h=h, t1=1.0, save_every=100, **model.start)
        assert run.stats["rescued_steps"] == 0
        average.append(run.stats["newton_iterations"] / run.stats["steps"])
    assert average[0] <= 8  # (the last one confirms the rate of convergence)
    assert average[1] <= 6
    assert average[2] <= 5


# -- nothing is passed over ------------------------------------------------------------------------------------------


def fails(**arguments):
    """The failed run, once raised and once returned."""
    with pytest.raises(da.StepFailed) as caught:
        da.simulate(**arguments)
    returned = da.simulate(**arguments, on_failure="return")
    raised = caught.value.run
    assert raised.status == returned.status == "failed"
    np.testing.assert_array_equal(raised.states, returned.states)
    assert returned.message in str(caught.value)
    assert "\n" not in returned.message
    from_t = float(re.search(r"from t = ([-+.\de]+) failed", returned.message).group(1))
    assert from_t == pytest.approx(returned.t[-1], rel=1e-5)
    assert all(np.max(np.abs(r)) < 1e-11 for r in returned.residuals.values())
    return returned


def test_a_guess_beyond_minus_one_half_chooses_the_other_root():
    """At the start of (4.1) the consistent multipliers are the roots of psi^2 + psi - 2 = 0."""
    model = models.growth()
    values = {"y0": [1, 1], "z0": [1, 1]}
    for guess, root in ((-0.45, 1.0), (3.0, 1.0), (-0.55, -2.0), (-4.0, -2.0)):
        assert da.consistent(model.system, **values, lam0=[guess]).lam == pytest.approx([root], abs=1e-13)


def spurious_rhs(_, x):
    """(4.1) with the smaller root of the quadratic equation for its multiplier."""
    y1, y2, z1, z2 = x
    v1, v2 = 2 * z1, -z2
    f = np.array([2 * y1 * y2 * z1 * z2 - y1 * z1 * z2, z1 - y1 * z2**3])
    row = np.array([2 * y2**2, -2 * y1 * y2])
    a, b = row[0] * y2 * z1, -row[1] * np.sqrt(y1) * z1 * z2**2
    c = 4 * y2 * v1 * v2 + 2 * y1 * v2**2 + row @ f
    psi = (-b - np.sqrt(b**2 - 4 * a * c)) / (2 * a)
    return [v1, v2, f[0] + y2 * z1 * psi**2, f[1] - np.sqrt(y1) * z1 * z2**2 * psi]


def test_a_run_keeps_the_root_on_which_it_starts():
    """The spurious root gives another motion: that of (4.1) with the smaller root of its quadratic equation."""
    model = models.growth()

    x = models.dop853(spurious_rhs, [1.0, 1.0, 1.0, 1.0], 0.08)
    measured = da.verify.order(model.system, da.SymplecticEuler(), reference={"y": x[:2], "z": x[2:]}, t1=0.08,
                               steps=STEPS, y0=[1, 1], z0=[1, 1], lam0=[-2])  # fmt: skip
    assert all(abs(slope - 1) < 0.05 for slope in measured.slopes.values()), measured


def test_the_end_of_a_branch_is_reported_at_the_right_time():
    """On the spurious root z_1 falls to zero, where g_y v_z r_lam is singular; the solution ends there."""
    model = models.growth()

    def speed(_, x):
        return x[2] - 0.02

    speed.terminal = True
    end = solve_ivp(spurious_rhs, (0, 1), [1, 1, 1, 1], "DOP853", events=speed, rtol=1e-10, atol=1e-10).t[-1]
    h = 1e-4
    failed = fails(system=model.system, method=da.SymplecticEuler(), h=h, t1=1.0, y0=[1, 1], z0=[1, 1], lam0=[-2])
    assert abs(failed.t[-1] - end) < 10 * h, (failed.t[-1], end)
    assert "branch" in failed.message
    assert "lam0" in failed.message


@pytest.mark.parametrize("h", [0.01, 0.05, 0.5])
def test_a_branch_that_ends_in_a_fold_is_reported_at_the_step_that_passes_it(h):
    """0 = t + lam^3/3 - lam has a root between -1 and 1 for t < 2/3; beyond, only one below -2."""
    system = da.ODAE(
        v=lambda z: z,
        f=lambda t, y: [t, -y[1]],
        r=lambda lam: [lam[0] ** 3 / 3 - lam[0], 0.0],
        g=lambda y: [y[0]],
        dim_y=2,
        dim_z=2,
    )
    # with alpha = 1 both multipliers of a step from t fulfil this equation
    failed = fails(system=system, method=da.SymplecticEuler(alpha=1), h=h, t1=2.0, y0=[0, 1], z0=[0, 1], lam0=[0])
    assert failed.t[-1] == pytest.approx(np.ceil(2 / 3 / h) * h)
    assert "branch" in failed.message


def test_a_step_far_too_large_says_that_h_must_be_reduced():
    """On y_1 y_2^2 = 1 the derivative of g does not vanish, so no constraint is to blame."""
    model = models.growth()
    failed = fails(system=model.system, method=da.SymplecticEuler(), h=1.5, steps=3, **model.start)
    assert len(failed) == 1
    assert "reduce h" in failed.message


def leaving_time():
    """When (4.2) leaves the surface after its interval of the paper: the multiplier's own formula is zero."""

    def push(_, x):
        return models.normal_force(x[0], x[2])

    push.terminal = True
    solution = solve_ivp(models.sliding_rhs, (0, 2), [10, 10, -3.6, -10.8], "DOP853", events=push, rtol=1e-12, atol=1e-12)
    return solution.t_events[0][0]


def test_a_mass_that_leaves_the_surface_is_reported_at_the_right_time():
    model = models.mass_on_surface()
    left = leaving_time()
    assert 1.0 < left < 1.2
    for method, h in ((da.SymplecticEuler(), 1e-4), (da.compose(da.SymplecticEuler(), "strang"), 0.01)):
        failed = fails(system=model.system, method=method, h=h, t1=2.0, save_every=100, **model.start)
        late = 3 * h if isinstance(method, da.SymplecticEuler) else 0.0  # an error of O(h) in the motion
        assert failed.t[-1] - late <= left <= failed.t[-1] + h + late, (failed.t[-1], left)
        assert "domain[0]" in failed.message
        assert failed.lam[-1, 0] > 0


def test_the_first_order_method_leaves_the_surface_at_a_time_that_converges():
    model = models.mass_on_surface()
    left = leaving_time()
    errors = []
    for h in (0.004, 0.002, 0.001):
        failed = da.simulate(model.system, da.SymplecticEuler(), h=h, t1=2.0, on_failure="return", **model.start)
        errors.append(abs(failed.t[-1] - left) / h)
    assert max(errors) < 3, errors


def test_friction_that_stops_the_mass_is_reported():
    """On a flat surface z_1' = -c (m g)^e / m until it stops."""
    model = models.mass_on_surface()
    speed = 0.3
    stop = speed / (models.FRICTION * models.GRAVITY**models.EXPONENT)
    failed = fails(system=model.system, method=da.SymplecticEuler(), h=0.01, t1=1.0, params={"b": 0.0}, y0=[0, 0],
                   z0=[speed, 0], lam0=[9.0])  # fmt: skip
    assert failed.t[-1] < stop < failed.t[-1] + 0.01
    assert "domain[1]" in failed.message
    np.testing.assert_allclose(failed.z[:, 0], speed * (1 - failed.t / stop), atol=1e-13)
    with pytest.raises(da.InputError, match="not finite at the initial values"):
        da.simulate(model.system, da.SymplecticEuler(), h=0.01, steps=1, params={"b": 0.0}, y0=[0, 0], z0=[0, 0], lam0=[9.0])


def normal_only(curvature):
    """r acts in the direction of y_1 alone, with lam^2, and depends on neither y nor z."""
    return da.ODAE(
        v=lambda z: z,
        f=lambda t, y: [2 + np.sin(5 * t) + y[1], -y[1] / 4],
        r=lambda lam: [-(lam[0] ** 2), 0.0],
        g=lambda y: [y[0] + curvature * y[1] ** 2 / 2],
        dim_y=2,
        dim_z=2,
    )


@pytest.mark.parametrize(
    ("method", "curvature"),
    [
        (da.SymplecticEuler(), 0.0),
        (da.ConstrainedEuler(), 0.0),
        (da.SymplecticEuler(), 1.0),
        (da.SymplecticEuler("natural"), 1.0),
        (da.SymplecticEuler(conjugate=True), 1.0),
        (da.adjoint(da.SymplecticEuler()), 1.0),
    ],
    ids=str,
)
def test_steps_are_solved_where_nothing_but_the_multipliers_is_implicit(method, curvature):
    """What is left to iterate, a quadratic equation for Psi_1, does not show in the increments of y."""
    run = da.simulate(normal_only(curvature), method, y0=[-0.02 * curvature, 0.2], z0=[-0.2 * curvature, 1], lam0=[1.7], h=0.01,
                      steps=50)  # fmt: skip
    assert np.max(np.abs(run.residuals["g"])) < 1e-14
    assert np.max(np.abs(run.residuals["g_dot"])) < 1e-13


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: da.SymplecticEuler(alpha=0), ["true", "alpha = 0", "0.5"]),
        (lambda: da.SymplecticEuler("natural", alpha=0.0), ["natural", "alpha = 0", "0.5"]),
        (lambda: da.SymplecticEuler("natural", alpha=1), ["natural", "alpha = 1", "0.5"]),
        (lambda: da.ConstrainedEuler(variant="natural", alpha=1.0), ["natural", "alpha = 1"]),
        (lambda: da.SymplecticEuler(alpha=np.nan), ["alpha", "nan"]),
        (lambda: da.SymplecticEuler(alpha="half"), ["alpha", "half"]),
        (lambda: da.SymplecticEuler("false"), ["natural", "true", "'false'"]),
        (lambda: da.SymplecticEuler(True), ["natural", "true", "True"]),
        (lambda: da.SymplecticEuler(r_at=("z0", "z2")), ["r_at", "Z1", "z2"]),
        (lambda: da.SymplecticEuler(r_at=("z0",)), ["r_at", "z0"]),
        (lambda: da.SymplecticEuler(r_at=None), ["r_at", "None"]),
        (lambda: da.SymplecticEuler(r_at=(["z0"], "z1")), ["r_at"]),
        (lambda: da.ConstrainedEuler(y="half"), ["y is", "explicit", "implicit", "'half'"]),
        (lambda: da.ConstrainedEuler(z=1), ["z is", "explicit", "1"]),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(build, words):
    with pytest.raises(da.InputError) as caught:
        build()
    assert all(word in str(caught.value) for word in words), caught.value
    assert "\n" not in str(caught.value)


def test_a_start_from_which_no_multiplier_is_found_names_lam0():
    """At lam = 0 the friction law of (4.2) has no derivative, so the root cannot be found from there."""
    model = models.mass_on_surface()
    start = {name: value for name, value in model.start.items() if name != "lam0"}
    for action in (
        lambda: da.consistent(model.system, **start),
        lambda: da.simulate(model.system, da.SymplecticEuler(), h=0.01, steps=1, **start),
    ):
        with pytest.raises(da.DalembertError, match="lam0"):
            action()
