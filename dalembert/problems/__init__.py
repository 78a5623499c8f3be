"""The catalogue: systems of the literature with their constants, initial values and references.

Pendulums in a plane (`pendulums`), points on spheres (`spheres`), rotation matrices (`rigid_bodies`), planar linkages
(`linkages`), systems without constraints whose mass matrix or magnetic field couples q and p (`nonseparable`), forces that are
nonlinear in their multipliers (`friction`), blades and wheels (`nonholonomic`, `vehicles`, `steered_vehicles`), rolling bodies
(`rolling`, `rolling_solids`), oscillators with a nonholonomic constraint (`oscillators`), DAEs of index 2 (`index_two_daes`),
systems with impacts (`impacts`, `balls`, `billiards`), machines of bodies and joints (`machines`, `robots`), the test set for
IVP solvers (`ivp_test_set`, `squeezer`, `railway`). Each is a function of its constants that returns a `Problem`, ready for
`da.simulate(problem, method)`.
"""

from dalembert.problems._checked import checked as _checked
from dalembert.problems.balls import ball_on_vibrating_table, balls_on_ring, bouncing_ball, newtons_cradle
from dalembert.problems.billiards import circular_billiard, elliptic_billiard, hard_disks, stadium_billiard
from dalembert.problems.friction import bead_on_rotating_wire, mass_on_surface, nonlinear_multiplier, pendulum_with_friction
from dalembert.problems.impacts import cart_pendulum_above_floor, double_pendulum_at_wall, double_pendulum_at_wall_in_angles
from dalembert.problems.index_two_daes import index_two_growth, index_two_growth_in_parts
from dalembert.problems.ivp_test_set import car_axis, elastic_slider_crank, fekete, pleiades
from dalembert.problems.linkages import chain, four_bar, n_four_bar
from dalembert.problems.machines import (
    andrews_squeezer,
    ball_on_slope,
    bricard,
    flyball_governor,
    gyroscope,
    slider_crank,
    two_four_bars,
    whipple_bicycle,
)
from dalembert.problems.nonholonomic import appell_hamel, knife_edge, skate
from dalembert.problems.nonseparable import (
    cart_pendulum,
    double_pendulum_in_angles,
    flyball_governor_in_angles,
    particle_in_magnetic_field,
    rod_on_spring,
)
from dalembert.problems.oscillators import (
    contact_oscillator,
    continuously_variable_transmission,
    nonholonomic_particles,
    perturbed_contact_oscillator,
)
from dalembert.problems.pendulums import (
    double_pendulum,
    pendulum,
    pendulum_of_varying_length,
    simple_pendulum,
    stiff_spring_pendulum,
)
from dalembert.problems.railway import wheelset
from dalembert.problems.rigid_bodies import heavy_top, rigid_body
from dalembert.problems.robots import jansens_leg, six_axis_arm, stewart_platform
from dalembert.problems.rolling import ball_on_turntable, rolling_disk
from dalembert.problems.rolling_solids import ball_in_bowl, rattleback
from dalembert.problems.spheres import charged_particle_on_sphere, spherical_pendulum, two_bodies_on_sphere
from dalembert.problems.squeezer import andrews_in_angles
from dalembert.problems.steered_vehicles import car_with_trailer, skateboard, snakeboard
from dalembert.problems.vehicles import chaplygin_sleigh, vertical_disk
from dalembert.runs._problem import Problem

__all__ = [
    "Problem", "andrews_in_angles", "andrews_squeezer", "appell_hamel", "ball_in_bowl", "ball_on_slope", "ball_on_turntable",
    "ball_on_vibrating_table", "balls_on_ring", "bead_on_rotating_wire", "bouncing_ball", "bricard",
    "car_axis", "car_with_trailer", "cart_pendulum", "cart_pendulum_above_floor", "chain", "chaplygin_sleigh",
    "charged_particle_on_sphere", "circular_billiard", "contact_oscillator", "continuously_variable_transmission",
    "double_pendulum", "double_pendulum_at_wall", "double_pendulum_at_wall_in_angles", "double_pendulum_in_angles",
    "elastic_slider_crank", "elliptic_billiard", "fekete", "flyball_governor",
    "flyball_governor_in_angles", "four_bar", "gyroscope", "hard_disks",
    "heavy_top", "index_two_growth",
    "index_two_growth_in_parts", "jansens_leg", "knife_edge", "mass_on_surface", "n_four_bar", "newtons_cradle",
    "nonholonomic_particles", "nonlinear_multiplier", "particle_in_magnetic_field", "pendulum",
    "pendulum_of_varying_length", "pendulum_with_friction", "perturbed_contact_oscillator", "pleiades", "rattleback",
    "rigid_body", "rod_on_spring", "rolling_disk", "simple_pendulum", "six_axis_arm", "skate", "skateboard",
    "slider_crank", "snakeboard", "spherical_pendulum", "stadium_billiard", "stewart_platform",
    "stiff_spring_pendulum", "two_bodies_on_sphere", "two_four_bars", "vertical_disk", "wheelset", "whipple_bicycle",
]  # fmt: skip

for _name in __all__[1:]:
    globals()[_name] = _checked(globals()[_name])
