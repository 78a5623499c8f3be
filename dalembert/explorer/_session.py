"""What the page asks for, and the answers: one request at a time, so that nothing is computed that nobody waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dalembert.cli._kinds import examples, serves
from dalembert.cli._methods import method, spelled
from dalembert.cli._user_code import UsageError
from dalembert.draw._scene import AZIMUTH, ELEVATION, sample
from dalembert.errors import DalembertError, InputError
from dalembert.explorer._curves import panels, ranges
from dalembert.explorer._section import Section
from dalembert.explorer._snippet import snippet
from dalembert.explorer._subject import Posed, Subject, coordinate_labels
from dalembert.methods import OneStepMethod
from dalembert.runs._default_method import default_method
from dalembert.runs._problem import Problem
from dalembert.runs._simulate import simulate
from dalembert.runs._trajectory import Trajectory

FRAMES_A_SECOND, MOST_FRAMES, KEY_FRAMES = 30, 3000, 16
MOST_STEPS, PROBE = 200_000, 50
AT_ONCE, PATIENCE = 0.04, 3.0
"""Seconds that the first run may take, and any run; longer ones are cut short."""
STAGES = range(1, 9)
CONTRAST = ("Rattle", "GaussLobattoEMPRK", "VCI", "LobattoSPARK", "SymplecticEuler", "RadauIIA")
"""Methods that are offered first to compare with."""


@dataclass(frozen=True)
class Shown:
    """The run that one half of the page shows, and where its section goes on."""

    posed: Posed
    method: OneStepMethod
    run: Trajectory
    times: np.ndarray
    """Of the frames."""
    section: Section


class Session:
    """One reader of the page. `answer` is all there is: a dictionary in, a dictionary out.

    Example:
        >>> import dalembert as da
        >>> session = Session(Subject("pendulum", da.problems.pendulum(), da.problems.pendulum, h=0.1, t1=5.0))
        >>> [control["key"] for control in session.answer({"do": "model"})["settings"]]
        ['m', 'l', 'g', 'angle']
        >>> answer = session.answer({"do": "run", "pane": 0, "id": 1, "method": "Rattle", "h": 0.1, "t1": 5.0})
        >>> answer["is"], answer["steps"], answer["frames"]
        ('run', 50, 151)

    """

    def __init__(self, subject: Subject, given: OneStepMethod | None = None) -> None:
        self.subject, self._given = subject, given
        self._shown: dict[int, Shown] = {}
        self._speeds: dict[tuple[str, str], float] = {}
        """Steps a second of systems and methods, by fingerprint and name."""

    def answer(self, ask: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; whatever goes wrong is a sentence in it, and the page goes on."""
        tasks: dict[str, Callable[..., dict[str, Any]]] = {
            "model": self._model, "run": self._run, "frames": self._frames, "section": self._section
        }  # fmt: skip
        echo = {name: ask[name] for name in ("pane", "id") if name in ask}
        what = str(ask.get("do"))
        try:
            if what not in tasks:
                raise InputError(f"the page asked for {what!r}: it may ask for {', '.join(tasks)}")
            return {"is": what, **echo, **tasks[what](ask)}
        except (DalembertError, UsageError) as error:
            return {"is": what, **echo, "error": str(error)}
        except Exception as error:  # a model or a drawing of the user's may raise anything
            return {"is": what, **echo, "error": f"{type(error).__name__}: {error}"}

    # -- the model -----------------------------------------------------------------------------------------------------

    def _model(self, ask: Mapping[str, Any]) -> dict[str, Any]:
        del ask
        subject = self.subject
        posed = subject.pose({}, {})
        labels = coordinate_labels(subject.thing, posed.system)
        momenta = [f"p of {name}" for name in labels] if posed.system.state_blocks[1][0] == "p" else []
        size = sum(size for _, size in posed.system.state_blocks)
        names = [*labels, *momenta] if len(labels) + len(momenta) == size else [f"variable {i + 1}" for i in range(size)]
        return {
            "name": subject.name,
            "title": subject.title,
            "reference": subject.thing.reference if isinstance(subject.thing, Problem) else "",
            "settings": [asdict(control) for control in subject.controls()],
            "start": [asdict(control) for control in subject.start_controls()],
            "methods": self._menu(posed),
            "h": subject.h,
            "t1": subject.t1,
            "variables": names,
        }

    def _menu(self, posed: Posed) -> list[dict[str, Any]]:
        """The methods that serve the model: how each is written, and its possible numbers of stages; the default first."""
        chosen = self._given or default_method(posed.system)
        known = {name: stepper for name, stepper in examples().items() if serves(stepper, posed.system)}
        wanted = [name for name in known if "tableau" not in vars(known[name]) and name != "adjoint"]
        rows = [self._entry(name, known[name]) for name in wanted]
        first = next((row for row in rows if row["name"] == type(chosen).__name__), None)
        if first is None or self._given is not None:
            first = {"name": spelled(chosen) if self._given is None else str(chosen), "stages": [], "value": None}
        else:
            first = {**first, "value": getattr(chosen, "stages", None)}
        others = [row for row in rows if row["name"] != first["name"]]
        return [first, *sorted(others, key=lambda row: (*CONTRAST, row["name"]).index(row["name"]))]

    def _entry(self, name: str, stepper: OneStepMethod) -> dict[str, Any]:
        if name == "compose":
            return {"name": "compose(Rattle, 4)", "stages": [], "value": None}
        if "stages" not in vars(stepper) or not isinstance(vars(stepper)["stages"], int) or name == "Rattle":
            return {"name": name, "stages": [], "value": None}
        return {"name": name, "stages": [s for s in STAGES if _has_stages(name, s)], "value": vars(stepper)["stages"]}

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _run(self, ask: Mapping[str, Any]) -> dict[str, Any]:
        moved, start = _numbers(ask.get("settings")), _numbers(ask.get("start"))
        posed = self.subject.pose(moved, start)
        stepper = self._method(str(ask["method"]))
        h = float(ask.get("h") or self.subject.h)
        steps, cut = self._steps(posed, stepper, h, ask.get("t1"))
        given: dict[str, Any] = {"start": posed.state, "h": h, "progress": False, "on_failure": "return"}
        run = simulate(posed.system, stepper, steps=steps, **given)
        if ask.get("t1") is None and run.stats["wall_seconds"] > 2 * AT_ONCE and steps > PROBE:  # slower than it began
            steps = max(PROBE, int(steps * AT_ONCE / run.stats["wall_seconds"]))
            run = simulate(posed.system, stepper, steps=steps, **given)
        self._learn(run)
        first, last = float(run.t[0]), float(run.t[-1])
        speed = min(1.0, (last - first) / 4) or 1.0
        frames = int(np.clip(np.ceil(FRAMES_A_SECOND * (last - first) / speed) + 1, 2, MOST_FRAMES))
        times = np.linspace(first, last, frames)
        self._shown[int(ask.get("pane", 0))] = Shown(posed, stepper, run, times, Section(posed, stepper, h))
        keys = sample(run, posed.drawing, run.t[np.unique(np.linspace(0, len(run) - 1, KEY_FRAMES).astype(int))])
        return {
            "steps": int(run.stats["steps"]), "h": h, "t0": first, "t1": last, "speed": speed,
            "seconds": run.stats["wall_seconds"],
            "status": run.status, "message": cut or run.message, "impacts": None if run.impacts is None else len(run.impacts),
            "frames": frames, "dim": keys.dim, "follows": keys.follows, "centre": keys.centres[0].tolist(),
            "half": keys.half.tolist(), "view": [float(AZIMUTH), float(ELEVATION)],
            "panels": panels(run, int(ask.get("coordinate", 0))), "ranges": ranges(run),
            "code": snippet(self.subject, moved, bool(start), posed, stepper, h, int(run.stats["steps"])),
        }  # fmt: skip

    def _method(self, text: str) -> OneStepMethod:
        if self._given is not None and text == str(self._given):
            return self._given
        return method(text)

    def _steps(self, posed: Posed, stepper: OneStepMethod, h: float, t1: Any) -> tuple[int, str]:
        """How many steps to make, and why not all that were asked for: a page waits for seconds at most."""
        if not np.isfinite(h) or h <= 0:
            raise InputError(f"h must be a positive number; got {h:g}")
        wanted = self.subject.t1 if t1 is None else float(t1)
        steps = max(1, round((wanted - posed.state.t) / h))
        key = (posed.system.fingerprint, str(stepper))
        if key not in self._speeds:  # the first run compiles, and tells how fast it is
            self.subject.parameters  # noqa: B018 - found out now, so that sliders need not wait for it
            simulate(posed.system, stepper, start=posed.state, h=h, steps=1, progress=False, on_failure="return")
            probe = simulate(posed.system, stepper, start=posed.state, h=h, steps=PROBE, progress=False, on_failure="return")
            self._learn(probe)
        most = int(np.clip(self._speeds.get(key, 1e4) * (AT_ONCE if t1 is None else PATIENCE), PROBE, MOST_STEPS))
        if steps <= most:
            return steps, ""
        return most, "" if t1 is None else f"cut short at {most:,} of {steps:,} steps: choose a larger h or a shorter time"

    def _learn(self, run: Trajectory) -> None:
        steps, seconds = run.stats["steps"], run.stats["wall_seconds"]
        if steps >= PROBE and seconds > 0:
            self._speeds[run.fingerprint, run.method] = steps / seconds

    def _frames(self, ask: Mapping[str, Any]) -> dict[str, Any]:
        """The parts of the mechanism in some frames."""
        shown, first, count = self._of_pane(ask), int(ask.get("from", 0)), int(np.clip(ask.get("count", 30), 1, 300))
        scene = sample(shown.run, shown.posed.drawing, shown.times[first : first + count], dense=False)
        digits = max(0, 5 - int(np.floor(np.log10(max(float(np.max(scene.half)), 1e-300)))))
        parts = [
            {"kind": part.kind, "color": part.color, "radius": part.radius, "count": part.points.shape[1],
             "faces": [] if part.skin is None else part.skin.faces,
             "points": np.broadcast_to(part.points, (len(scene.t), *part.points.shape[1:])).round(digits).ravel().tolist()}
            for part in scene.parts
        ]  # fmt: skip
        return {"from": first, "count": len(scene.t), "parts": parts}

    def _section(self, ask: Mapping[str, Any]) -> dict[str, Any]:
        return self._of_pane(ask).section.more(int(ask["by"]), float(ask["level"]), int(ask["x"]), int(ask["y"]))

    def _of_pane(self, ask: Mapping[str, Any]) -> Shown:
        pane = int(ask.get("pane", 0))
        if pane not in self._shown:
            raise InputError("there is no run yet: ask for one first")
        return self._shown[pane]


def _numbers(given: Any) -> dict[str, float]:
    """What sliders say, by key."""
    return {str(key): float(value) for key, value in (given or {}).items()}


def _has_stages(name: str, stages: int) -> bool:
    try:
        method(name, stages)
    except (DalembertError, UsageError):
        return False
    return True
