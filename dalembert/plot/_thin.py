"""Thinning: what is left of a million points keeps their extremes and has no rhythm of its own."""

from __future__ import annotations

import numpy as np

from dalembert._fits import drift


def envelope(t: np.ndarray, y: np.ndarray, bins: int = 500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The smallest and the largest value in each of `bins` stretches of a series, with the times of their middles.

    Example:
        >>> import numpy as np
        >>> t = np.arange(6.0)
        >>> envelope(t, np.array([0.0, 5.0, 1.0, 2.0, -3.0, 2.0]), bins=2)
        (array([1., 4.]), array([ 0., -3.]), array([5., 2.]))

    """
    starts = np.unique(np.linspace(0, len(t), min(bins, len(t)), endpoint=False).astype(int))
    ends = np.append(starts[1:], len(t)) - 1
    return (t[starts] + t[ends]) / 2, np.fmin.reduceat(y, starts), np.fmax.reduceat(y, starts)


def spread(size: int, most: int = 20_000) -> np.ndarray:
    """Indices of at most `most` points, one at random in each of equal stretches, always the same for the same size.

    A constant stride would show a motion whose period it divides as a few dots.

    Example:
        >>> len(spread(10)), len(spread(1_000_000)), bool((np.diff(spread(1_000_000)) > 0).all())
        (10, 20000, True)

    """
    if size <= most:
        return np.arange(size)
    edges = np.linspace(0, size, most + 1).astype(np.int64)
    return edges[:-1] + (np.random.default_rng(0).random(most) * np.diff(edges)).astype(np.int64)


def slope_in_time(t: np.ndarray, y: np.ndarray) -> float | None:
    """The slope of the least-squares line through a series; None for fewer than three times, through which it says nothing.

    Example:
        >>> round(slope_in_time(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0])), 12)
        2.0

    """
    return drift(y, t).slope if len(t) > 2 else None
