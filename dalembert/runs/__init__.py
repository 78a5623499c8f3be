"""Runs: from a system, a method and a start to a trajectory, many of them, or a Poincaré section, in memory or on disk."""
