"""On what something was computed."""

from __future__ import annotations

import importlib.metadata
import os
import platform

import dalembert

PACKAGES = ("numpy", "casadi", "numba", "llvmlite", "scipy", "mpmath", "matplotlib", "xarray")


def versions() -> dict[str, str]:
    """The versions of dalembert, Python and the packages that take part in a simulation.

    Example:
        >>> from dalembert.reproduction import versions
        >>> list(versions())[:3]
        ['dalembert', 'python', 'numpy']

    """
    found = {"dalembert": dalembert.__version__, "python": platform.python_version()}
    return found | {package: version(package) for package in PACKAGES}


def version(package: str) -> str:
    """The version of an installed package.

    Example:
        >>> from dalembert.reproduction import version
        >>> version("a-package-of-no-name")
        'not installed'

    """
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def machine() -> str:
    """Operating system, processor and the number of processors."""
    count = os.cpu_count()
    return f"{platform.system()} {platform.machine()}, {count} processor{'' if count == 1 else 's'}"


def usable_processors() -> int:
    """How many processors this process may use, which in a container can be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
