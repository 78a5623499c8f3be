"""Drivers in machine code that know addresses and arrays, not models. Importing this package loads Numba."""
