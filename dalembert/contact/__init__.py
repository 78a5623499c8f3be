"""Contact: collision integrators, which stop at walls, and time stepping, which imposes contact laws on whole steps."""

from dalembert.contact._collision import CollisionIntegrator
from dalembert.contact.cva import CVA
from dalembert.contact.mcva import MCVA, MCVAA, MCVAC
from dalembert.contact.time_stepping import MoreauJean, NonsmoothRattle, TimeStepping
from dalembert.contact.vci import VCI

__all__ = ["CVA", "MCVA", "MCVAA", "MCVAC", "VCI", "CollisionIntegrator", "MoreauJean", "NonsmoothRattle", "TimeStepping"]
