"""Bodies and joints: `da.Mechanism` turns them into a system; solids give mass and inertia from a density."""

from dalembert._calls import check_calls as _check_calls
from dalembert.mechanisms._assembly import Mechanism
from dalembert.mechanisms._from_sympy import from_sympy
from dalembert.mechanisms._importing import from_mjcf, from_urdf
from dalembert.mechanisms._joints import Joint
from dalembert.mechanisms._meshes import Mesh
from dalembert.mechanisms._rigid import Body
from dalembert.mechanisms._solids import Box, Cylinder, Sphere

__all__ = ["Body", "Box", "Cylinder", "Joint", "Mechanism", "Mesh", "Sphere", "from_mjcf", "from_sympy", "from_urdf"]

_check_calls(globals())
