"""Collision integrators: full steps, partial steps to the wall, and resets there."""

from dalembert.impacts._collision import CollisionIntegrator
from dalembert.impacts.cva import CVA
from dalembert.impacts.mcva import MCVA, MCVAA, MCVAC
from dalembert.impacts.vci import VCI

__all__ = ["CVA", "MCVA", "MCVAA", "MCVAC", "VCI", "CollisionIntegrator"]
