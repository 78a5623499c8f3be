"""One row a method: what it solves, its claims, and where its order can be read. A new method is a new row."""

from __future__ import annotations

from dataclasses import dataclass

import dalembert as da


@dataclass(frozen=True)
class Row:
    """A method, and numbers of steps on the models' intervals for which its errors are asymptotic and above round-off."""

    method: da.OneStepMethod
    steps: tuple[int, ...]
    models: tuple[str, ...] = ("double_pendulum", "magnetic_surface", "curved_mass", "varying_length")
    unconstrained_steps: tuple[int, ...] = ()
    unconstrained_model: str = "double_pendulum_in_angles"
    nonholonomic_steps: tuple[int, ...] = ()
    nonholonomic_models: tuple[str, ...] = ("sleigh", "oscillator", "nonlinear_k")
    special_steps: tuple[tuple[str, tuple[int, ...]], ...] = ()
    structure_model: str = ""
    """Where symplecticity and symmetry without constraints are measured, if not on the unconstrained model."""

    def steps_on(self, model: str) -> tuple[int, ...]:
        steps = self.nonholonomic_steps if model in self.nonholonomic_models else self.steps
        return dict(self.special_steps).get(model, steps)

    @property
    def id(self) -> str:
        method = self.method
        if isinstance(method, da.UnderlyingODE):
            return f"UnderlyingODE-{method.tableau.name}-{method.tableau.stages}-{method.projected}"
        return str(method).removeprefix("da.")


def serves(method: da.OneStepMethod, system: da.systems.System) -> bool:
    """Whether a method takes a system."""
    try:
        method.check(system)
    except da.UnsupportedSystem:
        return False
    return True


def ladder(first: int, last: int) -> tuple[int, ...]:
    """Numbers of steps, each about 1.4 times the one before."""
    counts = [first]
    while counts[-1] * 1.4 <= last:
        counts.append(round(counts[-1] * 1.4))
    return tuple(counts)


def between_walls(method: da.OneStepMethod, unconstrained_steps: tuple[int, ...]) -> Row:
    """A collision integrator: orders are claimed between impacts, symplecticity of a step with an impact."""
    far, near = "double_pendulum_far_from_a_wall", "double_pendulum_at_a_wall"
    return Row(method, (), (), unconstrained_steps, unconstrained_model=far, structure_model=near)


RADAU_PAIR = da.tableaux.discontinuous_collocation(da.tableaux.radau_iia(2), [0, "1/2", 1])
SIX_ON_NONLINEAR_K = (("nonlinear_k", (33, 39, 45, 53, 61, 71)),)
FIRST_ORDER, SECOND_ORDER = ladder(640, 2600), ladder(80, 320)
SEPARABLE = ("double_pendulum",)
NONSEPARABLE = ("magnetic_surface", "curved_mass")

ROWS = (
    Row(da.LobattoIIIAB(2), ladder(320, 1300), unconstrained_steps=ladder(160, 640)),
    Row(da.LobattoIIIAB(3), ladder(30, 350), unconstrained_steps=ladder(80, 320)),
    Row(
        da.LobattoIIIAB(4),
        ladder(10, 120),
        unconstrained_steps=ladder(40, 120),
        special_steps=(("double_pendulum", ladder(60, 250)),),
    ),
    Row(da.LobattoIIIAB(5), (60, 66, 72, 80, 88), ("double_pendulum",), unconstrained_steps=(26, 29, 32, 35, 38)),
    Row(da.Rattle(), ladder(320, 1300)),
    Row(da.RadauIIA(2), ladder(1280, 5200), ("double_pendulum", "magnetic_surface", "curved_mass"), ladder(80, 320)),
    Row(da.RadauIIA(3), ladder(300, 1300), ("double_pendulum",), ladder(40, 120)),
    Row(da.RadauIIA(2, projected=True), ladder(160, 640)),
    # (on the magnetic surface the leading error of lambda changes sign within the window)
    Row(da.RadauIIA(3, projected=True), ladder(20, 200), ("double_pendulum", "curved_mass", "varying_length")),
    Row(da.RadauIIA(4, projected=True), ladder(40, 200), ("double_pendulum",)),
    Row(da.RadauIIA(5, projected=True), ladder(20, 80), ("double_pendulum",)),
    Row(da.Gauss(1), (), (), ladder(160, 640)),
    Row(da.Gauss(2), (), (), ladder(40, 200)),
    Row(da.Gauss(3), (), (), ladder(20, 80)),
    Row(da.Gauss(2, projected=True), ladder(1280, 5200)),
    Row(da.Gauss(3, projected=True), ladder(320, 1300), ("double_pendulum", "magnetic_surface")),
    Row(da.Gauss(5, projected=True), ladder(160, 500), ("double_pendulum",)),
    Row(da.LobattoIIIC(2), (), (), ladder(160, 640)),
    Row(da.LobattoIIIC(3, projected=True), ladder(160, 640), ("double_pendulum", "magnetic_surface"), ladder(200, 900)),
    Row(
        da.PartitionedRungeKutta(da.tableaux.lobatto_iiia(3), da.tableaux.lobatto_iiib(3)),
        ladder(80, 320),
        SEPARABLE,
        unconstrained_steps=ladder(80, 320),
    ),
    Row(
        da.HalfExplicitEuler(),
        ladder(2000, 8000),
        SEPARABLE,
        unconstrained_steps=ladder(2000, 8000),
        unconstrained_model="angle_of_a_pendulum",
    ),
    Row(
        da.Shake(),
        ladder(640, 2600),
        SEPARABLE,
        unconstrained_steps=ladder(320, 1300),
        unconstrained_model="angle_of_a_pendulum",
    ),
    Row(da.UnderlyingODE(da.tableaux.gauss(2)), ladder(30, 1300), unconstrained_steps=ladder(40, 200)),
    Row(da.LobattoIIIC(2, projected=True), ladder(640, 2600), ("double_pendulum", "curved_mass")),
    Row(da.UnderlyingODE(da.tableaux.radau_iia(2)), ladder(160, 640), ("double_pendulum", "curved_mass")),
    *(Row(da.Variational(name), ladder(2560, 10400), unconstrained_steps=ladder(640, 2600)) for name in ("SE1", "SE2")),
    *(
        Row(da.Variational(name), ladder(320, 1300), unconstrained_steps=ladder(160, 640))
        for name in ("SVA", "SVB", "SVC", "midpoint", "trapezoidal")
    ),
    Row(da.LobattoGalerkin(2), ladder(320, 1300), unconstrained_steps=ladder(160, 640)),
    Row(da.LobattoGalerkin(3), ladder(30, 350), unconstrained_steps=ladder(80, 320)),
    Row(
        da.LobattoGalerkin(4),
        ladder(10, 120),
        unconstrained_steps=ladder(40, 120),
        special_steps=(("double_pendulum", ladder(60, 250)), ("curved_mass", (20, 22, 25, 28))),
    ),
    Row(da.LobattoGalerkin(5), (60, 66, 72, 80, 88), ("double_pendulum",), unconstrained_steps=(26, 29, 32, 35, 38)),
    Row(da.SymplecticEuler(), ladder(2000, 8000), unconstrained_steps=ladder(2000, 8000)),
    Row(da.SymplecticEuler(conjugate=True), ladder(2000, 8000), unconstrained_steps=ladder(2000, 8000)),
    Row(da.SymplecticEuler("natural", alpha=0.3), ladder(2000, 8000), unconstrained_steps=ladder(2000, 8000)),
    Row(da.SymplecticEuler("natural", conjugate=True), ladder(2000, 8000), unconstrained_steps=ladder(2000, 8000)),
    # (where H_q is constant, as for the double pendulum, these are the symplectic ones)
    Row(da.ConstrainedEuler("explicit", "explicit"), ladder(2000, 8000), NONSEPARABLE, ladder(2000, 8000)),
    Row(da.ConstrainedEuler("implicit", "implicit"), ladder(2000, 8000), NONSEPARABLE, ladder(2000, 8000)),
    Row(da.adjoint(da.SymplecticEuler()), ladder(2000, 8000), NONSEPARABLE, ladder(2000, 8000)),
    Row(da.adjoint(da.RadauIIA(2, projected=True)), ladder(160, 640), NONSEPARABLE, ladder(160, 640)),
    Row(da.compose(da.SymplecticEuler(), "strang"), ladder(320, 1300), unconstrained_steps=ladder(320, 1300)),
    Row(da.compose(da.Rattle(), "suzuki-4"), ladder(40, 200)),
    Row(da.compose(da.SymplecticEuler(), "blanes-moan-4"), ladder(40, 200), unconstrained_steps=ladder(40, 200)),
    Row(da.compose(da.SymplecticEuler(), 6), ladder(40, 160), SEPARABLE),
    Row(da.GaussLobattoSPARK(1), ladder(160, 640), unconstrained_steps=ladder(160, 640), nonholonomic_steps=ladder(80, 320)),
    Row(da.GaussLobattoSPARK(2), ladder(40, 200), unconstrained_steps=ladder(40, 200), nonholonomic_steps=ladder(20, 100)),
    Row(
        da.GaussLobattoSPARK(3),
        ladder(14, 50),
        ("double_pendulum", "magnetic_surface", "varying_length"),
        unconstrained_steps=ladder(20, 80),
        nonholonomic_steps=ladder(10, 50),
        special_steps=(("double_pendulum", ladder(60, 160)), *SIX_ON_NONLINEAR_K),
    ),
    # (without nonholonomic constraints these are the SPARK methods)
    Row(da.GaussLobattoEMPRK(1), ladder(160, 640), SEPARABLE, ladder(160, 640), nonholonomic_steps=ladder(80, 320)),
    Row(da.GaussLobattoEMPRK(2), ladder(40, 200), SEPARABLE, ladder(40, 200), nonholonomic_steps=ladder(20, 100)),
    Row(
        da.GaussLobattoEMPRK(3),
        ladder(60, 160),
        SEPARABLE,
        ladder(20, 80),
        nonholonomic_steps=ladder(10, 50),
        special_steps=SIX_ON_NONLINEAR_K,
    ),
    # (with Gauss-Lobatto coefficients these are the methods above; for other coefficients no order is claimed)
    Row(da.SPARK(da.tableaux.gauss_lobatto(1)), ladder(160, 640), SEPARABLE, nonholonomic_steps=SECOND_ORDER),
    Row(da.EMPRK(da.tableaux.gauss_lobatto(2)), (), (), nonholonomic_steps=ladder(20, 100)),
    Row(da.SPARK(RADAU_PAIR), (), ("magnetic_surface", "curved_mass"), structure_model="double_pendulum_in_angles"),
    Row(da.EMPRK(RADAU_PAIR), (), (), nonholonomic_steps=SECOND_ORDER),
    Row(da.RungeKutta(da.tableaux.gauss(2)), (), (), structure_model="double_pendulum_in_angles"),
    Row(da.RungeKutta(da.tableaux.radau_iia(2)), (), SEPARABLE, nonholonomic_steps=SECOND_ORDER),
    Row(da.LobattoSPARK(2), (), (), ladder(160, 640), nonholonomic_steps=ladder(80, 320)),
    Row(da.LobattoSPARK(3), (), (), ladder(80, 320), nonholonomic_steps=ladder(40, 120)),
    Row(da.LobattoSPARK(4), (), (), ladder(40, 120), nonholonomic_steps=ladder(10, 40)),
    Row(da.SRK("gauss", 1), (), (), ladder(160, 640), nonholonomic_steps=ladder(80, 320)),
    Row(da.SRK("gauss", 2), (), (), ladder(40, 200), nonholonomic_steps=ladder(20, 100)),
    Row(
        da.SRK("gauss", 3),
        (),
        (),
        ladder(20, 80),
        nonholonomic_steps=ladder(10, 50),
        special_steps=SIX_ON_NONLINEAR_K,
    ),
    Row(da.SRK("radau-ia", 2), (), (), ladder(80, 320), nonholonomic_steps=ladder(40, 200)),
    Row(da.SRK("radau-ia", 3), (), (), ladder(40, 120), nonholonomic_steps=ladder(20, 60)),
    Row(da.NonholonomicEuler(), (), (), ladder(2000, 8000), nonholonomic_steps=ladder(640, 2600)),
    Row(da.compose(da.NonholonomicEuler(), 2), (), (), ladder(320, 1300), nonholonomic_steps=ladder(80, 320)),
    Row(da.compose(da.NonholonomicEuler(), 4), (), (), ladder(40, 200), nonholonomic_steps=ladder(40, 160)),
    # (these two need a constant mass matrix, the third is of order 1 where it is not constant)
    Row(
        da.McLachlanPerlmutter(),
        (),
        (),
        ladder(160, 640),
        unconstrained_model="angle_of_a_pendulum",
        nonholonomic_steps=ladder(80, 320),
        nonholonomic_models=("oscillator",),
    ),
    Row(
        da.CortesMartinez(),
        (),
        (),
        ladder(160, 640),
        unconstrained_model="angle_of_a_pendulum",
        nonholonomic_steps=ladder(80, 320),
        nonholonomic_models=("oscillator",),
    ),
    Row(
        da.McLachlanPerlmutter(variable_mass=True),
        (),
        (),
        ladder(2000, 8000),
        nonholonomic_steps=ladder(640, 2600),
        nonholonomic_models=("sleigh", "nonlinear_k"),
    ),
    Row(da.DiscreteLagrangeDAlembert("midpoint"), (), (), nonholonomic_steps=SECOND_ORDER),
    Row(da.DiscreteLagrangeDAlembert("SVC"), (), (), nonholonomic_steps=SECOND_ORDER),
    Row(da.DiscreteLagrangeDAlembert("SE1"), (), (), nonholonomic_steps=FIRST_ORDER),
    Row(da.DiscreteLagrangeDAlembert("midpoint", "initial"), (), (), nonholonomic_steps=FIRST_ORDER),
    between_walls(da.CVA(), ladder(160, 640)),
    between_walls(da.CVA(da.Gauss(2)), ladder(40, 200)),
    between_walls(da.VCI(), ladder(160, 640)),
    between_walls(da.VCI(da.LobattoGalerkin(3)), ladder(80, 320)),
    between_walls(da.MCVA(), ladder(160, 640)),
    between_walls(da.MCVAA(), ladder(160, 640)),
    between_walls(da.MCVAC(), ladder(160, 640)),
    between_walls(da.MoreauJean(), ladder(160, 640)),
    between_walls(da.NonsmoothRattle(), ladder(160, 640)),
)
