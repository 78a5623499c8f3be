"""Collision integrators: full steps, partial steps to the wall, and resets there."""

from dalembert.contact._collision import CollisionIntegrator
from dalembert.contact.cva import CVA
from dalembert.contact.mcva import MCVA, MCVAA, MCVAC
from dalembert.contact.vci import VCI

__all__ = ["CVA", "MCVA", "MCVAA", "MCVAC", "VCI", "CollisionIntegrator"]
