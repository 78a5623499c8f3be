"""The catalogue: systems of the literature with their constants, initial values and references.

Pendulums in a plane (`pendulums`), points on spheres (`spheres`), rotation matrices (`rigid_bodies`), planar linkages
(`linkages`), systems without constraints whose mass matrix or magnetic field couples q and p (`nonseparable`). Each is a
function of its constants that returns a `Problem`, ready for `da.simulate(problem, method)`.
"""

from dalembert.problems._problem import Problem
from dalembert.problems.linkages import chain, four_bar
from dalembert.problems.nonseparable import (
    cart_pendulum,
    double_pendulum_in_angles,
    particle_in_magnetic_field,
    rod_on_spring,
)
from dalembert.problems.pendulums import double_pendulum, pendulum, pendulum_of_varying_length, stiff_spring_pendulum
from dalembert.problems.rigid_bodies import heavy_top, rigid_body
from dalembert.problems.spheres import charged_particle_on_sphere, spherical_pendulum, two_bodies_on_sphere

__all__ = [
    "Problem",
    "cart_pendulum",
    "chain",
    "charged_particle_on_sphere",
    "double_pendulum",
    "double_pendulum_in_angles",
    "four_bar",
    "heavy_top",
    "particle_in_magnetic_field",
    "pendulum",
    "pendulum_of_varying_length",
    "rigid_body",
    "rod_on_spring",
    "spherical_pendulum",
    "stiff_spring_pendulum",
    "two_bodies_on_sphere",
]
