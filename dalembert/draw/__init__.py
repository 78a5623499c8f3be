"""Pictures of mechanisms, still and moving.

A drawing is a function that returns the parts of a mechanism in one state, a list of `rod`, `mass`, `body` and so on. It names
what it needs of t, q, v, p (y, z) and the parameters, like the functions of a model:

    run.animate("pendulum.html", draw=lambda q: [rod([0, 0], q), mass(q)])

Points are in the plane or in space. Problems of the catalogue bring their drawings, and so does a `da.Mechanism`.
"""

from dalembert._calls import check_calls as _check_calls
from dalembert.draw._animation import Animation, animate
from dalembert.draw._bodies import mechanism
from dalembert.draw._parts import Drawing, Part, ball, body, disc, line, mass, picture, rod, solid, spring, trace, track, wall

__all__ = [
    "Animation",
    "Drawing",
    "Part",
    "animate",
    "ball",
    "body",
    "disc",
    "line",
    "mass",
    "mechanism",
    "picture",
    "rod",
    "solid",
    "spring",
    "trace",
    "track",
    "wall",
]

_check_calls(globals())
