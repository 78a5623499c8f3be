"""What is remembered about models: as long as they are used, and no longer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Result = TypeVar("Result")

MODELS = 32
"""How many models' programs are kept for equal models to come."""


def kept(function: Callable[..., Result]) -> Callable[..., Result]:
    """Like `functools.cache`, but results are stored in the first argument, and gone with it."""
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def remembered(owner: Any, *arguments: Hashable) -> Result:
        results = vars(owner).setdefault("_kept", {})
        key = (name, *arguments)
        if key not in results:
            results[key] = function(owner, *arguments)
        return results[key]

    return remembered


class Recent(dict):
    """A dictionary that forgets all about the models that were not asked for longest; a key begins with its model."""

    def __init__(self, most: int = MODELS) -> None:
        self._most, self._models = most, dict[Hashable, None]()

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        self._use(key)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._use(key)
        if len(self._models) > self._most:
            oldest = next(iter(self._models))
            del self._models[oldest]
            for old in [k for k in self if _model(k) == oldest]:
                del self[old]

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value, or the default, which is stored."""
        if key not in self:
            self[key] = default
        return self[key]

    def _use(self, key: Any) -> None:
        self._models.pop(_model(key), None)
        self._models[_model(key)] = None


def _model(key: Any) -> Hashable:
    return key[0] if isinstance(key, tuple) else key
