"""Runs and sweeps on disk: Zarr groups that grow chunk by chunk and appear whole or not at all."""
