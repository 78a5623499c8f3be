"""`animate`: a run as a film, in the time of physics."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert._progress import ProgressLine
from dalembert.draw._film import ffmpeg, write_film
from dalembert.draw._parts import Drawing
from dalembert.draw._scene import AZIMUTH, ELEVATION, MovingPart, Scene, drawing_of, sample, stretch, upright
from dalembert.draw._style import replacing
from dalembert.errors import DalembertError, InputError

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory

SUFFIXES = (".html", ".gif", ".mp4")
LONGEST, SHORTEST = 20.0, 4.0
"""Seconds that a film lasts unless the caller says otherwise."""


@dataclass(frozen=True, eq=False)
class Animation:
    """A film of a run: its frames at uniform times, how many of them a second, and how much time passes in one.

    Notebooks show it as a player. `save` writes it as one .html file that needs nothing else, as .gif, or as .mp4.
    """

    scene: Scene = field(repr=False)
    fps: float
    speed: float
    """Units of the run's time in one second of the film."""
    caption: str = ""
    shaded: bool = False
    """Whether the page shows lit surfaces with shadows."""

    @property
    def duration(self) -> float:
        """Seconds that the film lasts."""
        return len(self.scene.t) / self.fps

    def html(self) -> str:
        """A page with a player; it makes no requests."""
        files = resources.files("dalembert.draw")
        page = files.joinpath("player.html").read_text(encoding="utf-8")
        if self.shaded:
            page = page.replace("/*__SHADED__*/", files.joinpath("shaded.js").read_text(encoding="utf-8"))
        data = json.dumps(self._data(), separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
        return page.replace("__CAPTION__", html.escape(self.caption)).replace("__DATA__", data)

    def _data(self) -> dict[str, Any]:
        scene = self.scene
        size = float(np.max(scene.half))
        digits = max(0, 5 - int(np.floor(np.log10(size))))  # five digits of the picture's size: less than a pixel
        return {
            "dim": scene.dim, "shaded": self.shaded, "finer": scene.finer, "low": scene.low, "times": scene.t.round(9).tolist(),
            "speed": self.speed, "parts": [_part_data(part, digits) for part in scene.parts],
            "follows": scene.follows, "centres": scene.centres.round(digits).tolist(), "half": scene.half.tolist(),
            "view": [AZIMUTH, ELEVATION],
        }  # fmt: skip

    def _repr_html_(self) -> str:
        page = html.escape(self.html())
        return f'<iframe srcdoc="{page}" style="width:100%;height:560px;border:0" title="{html.escape(self.caption)}"></iframe>'

    def save(self, path: str | os.PathLike[str], *, progress: bool | None = None) -> Path:
        """Write the film as .html, .gif or .mp4 (which needs ffmpeg); the file appears complete or not at all."""
        check_film(path)
        target = Path(path)
        frames = ProgressLine(len(self.scene.t), progress, "frames")
        try:
            with replacing(target) as part:
                if part.suffix.lower() == ".html":
                    part.write_text(self.html(), encoding="utf-8")
                else:
                    write_film(self.scene, self.fps, part, frames.update)
        except OSError as error:
            raise DalembertError(
                f"the film could not be written to {target} ({error.strerror or error}): choose another path"
            ) from error
        finally:
            frames.close()
        return target


def animate(
    run: Trajectory,
    path: str | os.PathLike[str] | None = None,
    *,
    draw: Drawing | None = None,
    window: tuple[float, float] | None = None,
    speed: float | None = None,
    duration: float | None = None,
    fps: float = 25.0,
    shaded: bool = False,
    progress: bool | None = None,
) -> Animation:
    """A film of a run, in which time passes as in physics; `path` writes it as .html, .gif or .mp4.

    The film begins where `window` does (the run, by default), shows `speed` units of time a second, and lasts `duration`
    seconds, or until the window ends. By default a second is one unit of time, or less where the film would last less than 4
    seconds, and of a long run it shows the first 20 seconds: the whole of a long run is shown by a higher `speed`. Frames stand
    at uniform times, `fps` a second, between stored states by dense output. `draw` says how the mechanism is drawn; problems of
    the catalogue bring their own. `shaded` shows a mechanism in space as lit surfaces with shadows, as .html only.

    Example:
        >>> import dalembert as da
        >>> from dalembert.draw import mass, rod
        >>> pendulum = da.Hamiltonian(lambda q, p: p @ p / 2 + q[1], dim=2, holonomic=lambda q: [q @ q - 1])
        >>> run = da.simulate(pendulum, da.Rattle(), q0=[1, 0], p0=[0, 0], h=0.05, steps=200)
        >>> film = run.animate(draw=lambda q: [rod([0, 0], q), mass(q)], fps=20)
        >>> film.duration, film.speed, len(film.scene.t)
        (10.05, 1.0, 201)

    """
    if path is not None:
        check_film(path)
    if shaded and path is not None and Path(path).suffix.lower() != ".html":
        raise InputError(f"a shaded film is written as .html, by the end of its name; got {os.fspath(path)!r}")
    drawing = upright(drawing_of(run, draw))
    if len(run.t) == 1:
        raise InputError(f"a film needs a run of at least one step; this one has its state at t = {run.t[0]:g} only")
    first, last = (float(run.t[0]), float(run.t[-1])) if window is None else stretch(window)
    along = np.sign(run.h)  # -1 for a run back in time, whose film shows it so
    if not along * run.t[0] <= along * first < along * last <= along * run.t[-1]:
        raise InputError(f"a film shows a stretch of time within {run.t[0]:g} to {run.t[-1]:g}; got {first:g} to {last:g}")
    for name, value in (("speed", speed), ("duration", duration), ("fps", fps)):
        if value is not None and not 0 < value < 1e300:
            raise InputError(f"{name} is a positive number; got {value!r}")
    if speed is None:
        speed = min(1.0, abs(last - first) / SHORTEST)
    seconds = min(abs(last - first) / speed, LONGEST if duration is None else duration)
    times = first + along * speed / fps * np.arange(int(seconds * fps * (1 + 1e-12)) + 1)
    method = run.method.replace("da.", "")
    scene = sample(run, drawing, along * np.minimum(along * times, along * last), smooth=True)
    if shaded and scene.dim == 2:
        raise InputError("a shaded film shows a mechanism in space, and this drawing is in the plane: leave shaded= out")
    film = Animation(scene, float(fps), float(speed), f"{method}, h = {run.h:g}", bool(shaded))
    if path is not None:
        film.save(path, progress=progress)
    return film


def _part_data(part: MovingPart, digits: int) -> dict[str, Any]:
    """A part as the page takes it: a solid by three of its corners, between which all others have fixed coordinates."""
    data: dict[str, Any] = {"kind": part.kind, "color": part.color, "radius": part.radius, "still": len(part.points) == 1}
    points = part.points
    if part.skin is not None:
        first, local = _rigid_coordinates(points[0])
        points = points[:, first]
        data |= {"local": local.round(9).ravel().tolist(), "faces": part.skin.faces, "outlines": part.skin.outlines}
        data |= {"dark": sorted(part.skin.dark)}
        digits += 2
    if part.kind == "trace" and not data["still"]:
        data["path"] = part.trail(np.iinfo(np.int64).max - 1).round(digits).ravel().tolist()
    return data | {"count": points.shape[1], "points": points.round(digits).ravel().tolist()}


def _rigid_coordinates(points: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Three points p, q, r far from a line, and the coordinates of all in p + a (q - p) + b (r - p) + c (q - p) x (r - p)."""
    second = int(np.argmax(np.sum((points - points[0]) ** 2, axis=1)))
    u = points[second] - points[0]
    third = int(np.argmax(np.sum(np.cross(points - points[0], u) ** 2, axis=1)))
    v = points[third] - points[0]
    frame = np.stack([u, v, np.cross(u, v)], axis=1)
    return [0, second, third], np.linalg.solve(frame, (points - points[0]).T).T


def check_film(path: str | os.PathLike[str]) -> None:
    """Refuse, before anything is computed, a film that could not be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"a film is written as {', '.join(SUFFIXES)}, by the end of its name; got {os.fspath(path)!r}")
    if suffix == ".mp4":
        ffmpeg()
