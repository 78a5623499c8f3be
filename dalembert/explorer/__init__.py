"""A page to explore a model: it moves, and sliders change its constants, its start, the method and h while it does.

    da.explore("double_pendulum")                    a problem of the catalogue, by name
    da.explore(da.problems.double_pendulum)          a function whose arguments become sliders
    da.explore(system, q0=[1, 0], p0=[0, 0], h=0.02, steps=1000)

A server for this machine alone shows it in a browser (`dalembert explore` does the same from a shell); a notebook shows it
below the cell. It needs the extra `dalembert[explore]`.
"""

from dalembert.explorer._explore import explore

__all__ = ["explore"]
