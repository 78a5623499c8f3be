"""The lengths that a mechanism keeps if it is rigid, measured in its picture."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dalembert.draw._scene import Scene


def links(scene: Scene) -> Iterator[np.ndarray]:
    """The lengths between neighbouring points of every part that connects points, (time, links)."""
    for part in scene.parts:
        if part.kind in ("rod", "body", "line"):
            yield np.linalg.norm(np.diff(part.points, axis=1), axis=2)
