"""Contact by events: collision integrators, which stop at walls, and the motion while walls are touched."""

from dalembert.contact._collision import CollisionIntegrator
from dalembert.contact.cva import CVA
from dalembert.contact.mcva import MCVA, MCVAA, MCVAC
from dalembert.contact.vci import VCI

__all__ = ["CVA", "MCVA", "MCVAA", "MCVAC", "VCI", "CollisionIntegrator"]
