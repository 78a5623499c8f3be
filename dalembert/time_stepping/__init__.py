"""Time stepping: contact and friction as laws for the impulses of whole steps, for many contacts and for friction in space."""

from dalembert.time_stepping.stepping_methods import MoreauJean, NonsmoothRattle, TimeStepping

__all__ = ["MoreauJean", "NonsmoothRattle", "TimeStepping"]
