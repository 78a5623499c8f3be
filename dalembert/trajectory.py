"""What a simulation returns: states, and everything that follows from them, as arrays with time first."""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.compiler import observer
from dalembert.errors import DalembertError, InputError
from dalembert.systems import MechanicalSystem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = 1
OBSERVED = ("energy", "v", "lam", "g", "g_dot")


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States along a run.

    `t`, `q` and `p` are stored; `v`, `lam`, `energy` and `residuals` are computed from them when first asked for.
    `status` is "done", "failed" or "interrupted", and `message` says why. `stats` counts Newton iterations, factorisations
    and seconds.

    Example:
        >>> import dalembert as da
        >>> run = da.simulate(da.problems.double_pendulum(), da.LobattoIIIAB(stages=3), steps=100)
        >>> run.q.shape, run.status, bool(abs(run.energy - run.energy[0]).max() < 1e-4)
        ((101, 4), 'done', True)

    """

    t: np.ndarray
    q: np.ndarray
    p: np.ndarray
    h: float
    method: str
    parameters: dict[str, np.ndarray]
    status: str = "done"
    message: str = ""
    stats: dict[str, float] = field(default_factory=dict)
    fingerprint: str = ""
    system: MechanicalSystem | None = field(default=None, repr=False)
    stage_lam: np.ndarray | None = field(default=None, repr=False)
    """Lambda_s of each stored step, (time, m), if `simulate` was asked for it; nan in the first row."""
    _observed: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"<Trajectory of {len(self.t)} states, t = {self.t[0]:g} to {self.t[-1]:g}, {self.method}, {self.status}>"

    def __len__(self) -> int:
        return len(self.t)

    @property
    def v(self) -> np.ndarray:
        """Velocities, (time, n)."""
        return self._observe("v")

    @property
    def energy(self) -> np.ndarray:
        """The Hamiltonian along the run, (time,)."""
        return self._observe("energy")[:, 0]

    @property
    def lam(self) -> np.ndarray:
        """Multipliers of the holonomic constraints, from the hidden constraint of second order ((3.3e) of Jay 1996)."""
        return self._observe("lam")

    @property
    def residuals(self) -> dict[str, np.ndarray]:
        """How well the constraints hold: {"g": (time, m), "g_dot": (time, m)}."""
        return {"g": self._observe("g"), "g_dot": self._observe("g_dot")}

    def _observe(self, name: str) -> np.ndarray:
        if name not in self._observed:
            if self.system is None:
                raise DalembertError(f"this trajectory was loaded without its model, and {name} was not stored with it")
            self._observed[name] = self._multipliers() if name == "lam" else self._map(name, slice(None))
        return self._observed[name]

    def _map(self, name: str, rows: slice) -> np.ndarray:
        from dalembert.engine._driver import map_kernel

        assert self.system is not None
        kernels = observer(self.system)
        memory = np.zeros(kernels.memory_size)
        memory[: kernels.n_theta] = np.concatenate([np.zeros(0), *(value.ravel() for value in self.parameters.values())])
        states = np.column_stack([self.t[rows], self.q[rows], self.p[rows]])
        values = np.empty((len(states), kernels.sizes[name]))
        map_kernel(kernels.code.addresses[f"observe_{name}"], memory, states, kernels.n_theta, values, kernels.first_output)
        return values

    def _multipliers(self) -> np.ndarray:
        assert self.system is not None
        m = self.system.n_multipliers
        result = np.empty((len(self.t), m))
        if m == 0:
            return result
        block = max(1, 4_000_000 // (m * m))
        for start in range(0, len(self.t), block):
            rows = slice(start, start + block)
            matrix = self._map("multiplier_matrix", rows).reshape(-1, m, m)
            result[rows] = _solve_each(matrix, self._map("multiplier_rhs", rows))
        return result

    # -- keeping ---------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to a compressed .npz file that holds numbers and text only; `da.load` reads it back.

        The file appears whole or not at all: it is written beside its place and moved there.
        """
        target = Path(path)
        if target.suffix != ".npz":
            target = target.with_name(target.name + ".npz")
        header = {
            "format": FORMAT,
            "h": self.h,
            "method": self.method,
            "status": self.status,
            "message": self.message,
            "stats": self.stats,
            "fingerprint": self.fingerprint,
            "parameters": list(self.parameters),
        }
        arrays: dict[str, Any] = {"header": np.array(json.dumps(header)), "t": self.t, "q": self.q, "p": self.p}
        arrays |= {name: self._observe(name) for name in OBSERVED}
        arrays |= {f"parameter_{name}": value for name, value in self.parameters.items()}
        if self.stage_lam is not None:
            arrays["stage_lam"] = self.stage_lam
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with temporary.open("wb") as file:
                np.savez_compressed(file, **arrays)
            os.replace(temporary, target)
        except BaseException as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            if not isinstance(error, OSError):
                raise
            raise DalembertError(
                f"the run could not be written to {target} ({error.strerror}): choose another path; the run itself is intact"
            ) from error
        return target

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Trajectory:
        """Read a saved run. Nothing in the file is executed; the model is not in it."""
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                if header["format"] > FORMAT:
                    raise InputError(f"{path} was written by a newer dalembert (format {header['format']}); update to read it")
                parameters = {name: file[f"parameter_{name}"] for name in header["parameters"]}
                return Trajectory(
                    t=file["t"],
                    q=file["q"],
                    p=file["p"],
                    h=header["h"],
                    method=header["method"],
                    parameters=parameters,
                    status=header["status"],
                    message=header["message"],
                    stats=header["stats"],
                    fingerprint=header["fingerprint"],
                    stage_lam=file.get("stage_lam"),
                    _observed={name: file[name] for name in OBSERVED},
                )
        except OSError as error:
            raise InputError(
                f"{path} cannot be read ({error.strerror or error}): give the path of a file written by run.save"
            ) from None
        except InputError:
            raise
        except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
            raise InputError(f"{path} is not a run saved by dalembert") from None

    def to_xarray(self) -> Any:
        """The run as an xarray.Dataset with named dimensions (needs the package xarray)."""
        try:
            import xarray
        except ImportError:
            raise DalembertError("to_xarray needs the package xarray: pip install xarray") from None
        columns = {
            "q": ("time", "coordinate"),
            "p": ("time", "coordinate"),
            "v": ("time", "coordinate"),
            "lam": ("time", "constraint"),
        }
        data: dict[str, Any] = {name: (dims, getattr(self, name)) for name, dims in columns.items()}
        data["energy"] = (("time",), self.energy)
        data |= {f"residual_{name}": (("time", "constraint"), value) for name, value in self.residuals.items()}
        attributes = {"method": self.method, "h": self.h, "status": self.status}
        return xarray.Dataset(data, coords={"time": self.t}, attrs=attributes)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw phase portraits, the energy error and the residuals; write the figure to `path` if one is given."""
        from dalembert.plot import overview

        return overview(self, path)


def _solve_each(matrices: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solve one system a row; nan where the constraints are not independent, as in a run that ended at such a state."""
    try:
        return np.linalg.solve(matrices, rhs[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        if len(rhs) == 1:
            return np.full_like(rhs, np.nan)
        half = len(rhs) // 2
        return np.vstack([_solve_each(matrices[:half], rhs[:half]), _solve_each(matrices[half:], rhs[half:])])
