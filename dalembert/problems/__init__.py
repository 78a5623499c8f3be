"""The catalogue: systems of the literature with their constants, initial values and references.

Pendulums in a plane (`pendulums`), points on spheres (`spheres`), rotation matrices (`rigid_bodies`), planar linkages
(`linkages`). Each is a function of its constants that returns a `Problem`, ready for `da.simulate(problem, method)`.
"""

from dalembert.problems._problem import Problem
from dalembert.problems.linkages import chain, four_bar
from dalembert.problems.pendulums import double_pendulum, pendulum, pendulum_of_varying_length, stiff_spring_pendulum
from dalembert.problems.rigid_bodies import heavy_top, rigid_body
from dalembert.problems.spheres import charged_particle_on_sphere, spherical_pendulum, two_bodies_on_sphere

__all__ = [
    "Problem",
    "chain",
    "charged_particle_on_sphere",
    "double_pendulum",
    "four_bar",
    "heavy_top",
    "pendulum",
    "pendulum_of_varying_length",
    "rigid_body",
    "spherical_pendulum",
    "stiff_spring_pendulum",
    "two_bodies_on_sphere",
]
