"""Runs as tables of other libraries, xarray.Dataset and pandas.DataFrame, with the names that a model gives its coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dalembert.errors import DalembertError
from dalembert.runs._variables import Variables

DIMENSIONS = {"y": "coordinate", "g": "constraint", "k": "nonholonomic_constraint"}
"""The dimensions of a dataset, by what the model calls their entries."""

Columns = dict[str, tuple[str | None, np.ndarray]]
"""Every quantity by its name: the dimension of its last axis, None for numbers, and its values."""


def columns_of(run: Variables, has_energy: bool) -> Columns:
    """All that a run, or many runs, have."""
    (first, dim_y), (second, dim_z) = run.blocks
    found: Columns = {}
    if first:
        found |= {first: ("coordinate", run._block(first)), "v": ("coordinate", run.v)}
    found[second] = ("coordinate" if dim_y in (0, dim_z) else "coordinate_z", run._block(second))
    found |= {"lam": ("constraint", run.lam), "psi": ("nonholonomic_constraint", run.psi)}
    if has_energy:
        found["energy"] = (None, run.energy)
    residuals = {name: ("nonholonomic_constraint" if name == "k" else "constraint", v) for name, v in run.residuals.items()}
    return found | {f"residual_{name}": column for name, column in residuals.items()}


def dataset(
    columns: Columns, axes: Mapping[str, Any], names: Mapping[str, Sequence[str]], attributes: Mapping[str, Any]
) -> Any:
    """The quantities as an xarray.Dataset; `axes` are the first dimensions with their values."""
    try:
        import xarray
    except ImportError:
        raise DalembertError("to_xarray needs the package xarray: pip install xarray") from None
    data = {name: ((*axes, *([dimension] if dimension else [])), values) for name, (dimension, values) in columns.items()}
    labels = {DIMENSIONS[name]: list(entries) for name, entries in names.items() if name in DIMENSIONS}
    return xarray.Dataset(data, coords={**axes, **labels}, attrs=dict(attributes))


def frame(columns: Columns, axes: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> Any:
    """The quantities as a pandas.DataFrame, its index the axes and its columns pairs of a quantity and an entry's name."""
    try:
        import pandas
    except ImportError:
        raise DalembertError("to_dataframe needs the package pandas: pip install pandas") from None
    labels = {DIMENSIONS[name]: list(entries) for name, entries in names.items() if name in DIMENSIONS}
    rows = int(np.prod([len(values) for values in axes.values()]))
    pairs: list[tuple[str, str]] = []
    parts: list[np.ndarray] = []
    for name, (dimension, values) in columns.items():
        flat = np.asarray(values).reshape(rows, -1) if values.size else np.empty((rows, 0))
        width = flat.shape[1]
        known = labels.get(dimension or "", [str(i) for i in range(width)] if dimension else [""])
        pairs += [(name, label) for label in known[:width]]
        parts.append(flat)
    index = pandas.MultiIndex.from_product(axes.values(), names=list(axes))
    if len(axes) == 1:
        index = pandas.Index(next(iter(axes.values())), name=next(iter(axes)))
    return pandas.DataFrame(
        np.hstack(parts), index=index, columns=pandas.MultiIndex.from_tuples(pairs, names=["quantity", "of"])
    )
