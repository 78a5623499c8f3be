"""One run in one file: what is written to a compressed .npz file, and read back from it."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.engine._records import KINDS, columns_of, from_file
from dalembert.engine._spec import Controls
from dalembert.errors import InputError
from dalembert.storage._npz import reading_npz, write_npz

if TYPE_CHECKING:
    from dalembert.runs._trajectory import Trajectory

FORMAT = 2
KEPT = ("h", "method", "status", "message", "stats", "fingerprint")
CHOSEN = ("error", "choice")
STAGE = ("stage_lam", "stage_psi")
OBSERVED = ("energy", "v", "lam", "psi", "g", "g_dot", "k", "redundant")


def write_run(run: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write a run with all that follows from its states; the file's name."""
    target = Path(path)
    if target.suffix != ".npz":
        target = target.with_name(target.name + ".npz")
    header = {"format": FORMAT, "parameters": list(run.parameters), "blocks": run.blocks, "names": run.names}
    header |= {name: getattr(run, name) for name in (*KEPT, *CHOSEN)}
    arrays: dict[str, Any] = {"header": np.array(json.dumps(header)), "t": run.t, "states": run.states}
    arrays |= {name: run._observe(name) for name in OBSERVED if name != "energy" or run.has_energy}
    arrays |= {f"parameter_{name}": value for name, value in run.parameters.items()}
    arrays |= {name: getattr(run, name) for name in (*STAGE, "step_sizes") if getattr(run, name) is not None}
    for kind, events in (("impact", run.impacts), ("contact", run.contacts)):
        if events is not None:
            arrays |= columns_of(events, kind)
    if run.controls is not None:
        arrays |= columns_of(run.controls, "control")
    write_npz(target, arrays)
    return target


def read_run(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The fields of the `Trajectory` in a file."""
    with reading_npz(path) as file:
        header = json.loads(str(file["header"]))
        if header["format"] < FORMAT:
            raise InputError(f"{path} was written by an older dalembert (format {header['format']}): run it again")
        if header["format"] > FORMAT:
            raise InputError(f"{path} was written by a newer dalembert (format {header['format']}); update to read it")
        controls = {f.name: file[key] for f in fields(Controls) if (key := f"control_{f.name}") in file}
        found: dict[str, Any] = {"t": file["t"], "states": file["states"]}
        found |= {name: header[name] for name in (*KEPT, *(name for name in CHOSEN if name in header))}
        found |= {name: file.get(name) for name in (*STAGE, "step_sizes")}
        found |= {f"{name}s": from_file(name, file) for name in KINDS}
        return found | {
            "blocks": tuple((str(name), int(size)) for name, size in header["blocks"]),
            "parameters": {name: file[f"parameter_{name}"] for name in header["parameters"]},
            "kept_names": {name: tuple(labels) for name, labels in header.get("names", {}).items()},
            "controls": None if not controls else Controls(**controls | {"hold": int(controls["hold"])}),
            "_observed": {name: file[name] for name in OBSERVED if name in file},
        }
