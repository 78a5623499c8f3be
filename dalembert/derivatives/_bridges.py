"""Runs as differentiable functions of JAX and of PyTorch: states forwards, the adjoint of the compiled steps backwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert._calls import check_known
from dalembert.derivatives._completed import completed
from dalembert.derivatives._given import names_of
from dalembert.derivatives._gradient import Losses, value_and_gradient
from dalembert.derivatives._loss import Weighted, steps_at
from dalembert.derivatives._start import Start
from dalembert.derivatives._wanted import Differentiated, wanted
from dalembert.errors import DalembertError, InputError
from dalembert.runs._arguments import INITIAL, Arguments
from dalembert.runs._drivers import check_differentiable
from dalembert.runs._lengths import count
from dalembert.runs._starts import given_values
from dalembert.systems import State, consistent


@dataclass(frozen=True, eq=False)
class _StatesOf:
    """The states of a run at some times as a function of the numbers that `wrt` names, and its transposed derivative."""

    system: Any
    method: Any
    wrt: tuple[str, ...]
    at: Any
    arguments: dict[str, Any]

    def run(self, values: Sequence[Any]) -> tuple[Differentiated, np.ndarray]:
        """The run with these values, initial ones moved onto the constraints, and the steps whose ends are asked for."""
        named = {name: np.asarray(value, dtype=float) for name, value in zip(self.wrt, values, strict=True)}
        given = {name: self.arguments.get(name) for name in INITIAL}
        given |= {name: value for name, value in named.items() if name in INITIAL}
        own: Mapping[str, Any] = self.arguments.get("params") or {}
        params = dict(own) | {name: value for name, value in named.items() if name not in INITIAL}
        model, t0, initial = given_values(self.system, False, self.arguments.get("t0"), given, params)
        state = consistent(model, t0=0.0 if t0 is None else t0, params=params, **initial)
        policy: dict[str, Any] = {name: self.arguments.get(name) for name in ("t1", "h", "steps", "controls")}
        spec = Arguments("simulate", self.system, self.method, {}, start=state, params=params, **policy).single()
        check_differentiable(spec.method, "a bridge")
        count("steps", spec.steps, least=1)
        velocity = initial.get("v0") is not None
        first, *others = model.starts_from
        y, z = (np.array(initial.get(name, []), dtype=float) for name in (first, "v0" if velocity else others[-1]))
        assert isinstance(spec.start, State)
        start = Start(spec.system, spec.start, y, z, velocity)
        return Differentiated(spec, start, wanted(spec, self.wrt, initial)), steps_at(spec, self.at)

    def states(self, *values: Any) -> np.ndarray:
        """The states at the times `at`, or the final one."""
        given, steps = self.run(values)
        found = completed(given.spec).states[steps]
        return found if np.ndim(self.at) else found[0]

    def pulled(self, covector: np.ndarray, *values: Any) -> tuple[np.ndarray, ...]:
        """The transposed derivative of `states`, applied to a covector."""
        given, steps = self.run(values)
        losses = Losses(Weighted(steps, np.asarray(covector, dtype=float).reshape(len(steps), -1)))
        _, parts = value_and_gradient(given, losses, progress=False)
        return tuple(parts[name] for name in self.wrt)


def _states_of(system: Any, method: Any, wrt: str | Sequence[str], at: Any, arguments: dict[str, Any]) -> _StatesOf:
    names = names_of("wrt names initial values and parameters", wrt, 'wrt=("q0", "m")')
    known = (*INITIAL, "params", "t0", "t1", "h", "steps", "controls")
    check_known("a bridge", arguments, known)
    return _StatesOf(system, method, names, at, arguments)


def to_jax(system: Any, method: Any, *, wrt: str | Sequence[str], at: Any = None, **arguments: Any) -> Callable:
    """A run as a function of JAX: f(*values of the names in wrt) are the states at the times `at`, or the final one.

    Its gradient is the adjoint of the compiled steps (`jax.custom_vjp` around a callback), so that `jax.grad` and `jax.jit`
    work on what is computed from it. Initial values are moved onto the constraints. Needs the package jax; set
    `jax.config.update("jax_enable_x64", True)` for double precision.
    """
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        raise DalembertError("to_jax needs the package jax: pip install jax") from None
    source = _states_of(system, method, wrt, at, arguments)

    @jax.custom_vjp
    def states(*values: Any) -> Any:
        given = source.run([_value(source, name) for name in source.wrt])[0]
        n = given.spec.system.n_state
        shape = (len(np.atleast_1d(at)), n) if np.ndim(at) else (n,)
        result = jax.ShapeDtypeStruct(shape, jnp.result_type(float))
        return jax.pure_callback(lambda *x: source.states(*x).astype(result.dtype), result, *values)

    def forwards(*values: Any) -> tuple[Any, Any]:
        return states(*values), values

    def backwards(values: Any, covector: Any) -> Any:
        shapes = tuple(jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(float)) for x in values)

        def pull(c: Any, *x: Any) -> tuple[np.ndarray, ...]:
            parts = source.pulled(c, *x)
            return tuple(np.asarray(p, s.dtype).reshape(s.shape) for p, s in zip(parts, shapes, strict=True))

        return jax.pure_callback(pull, shapes, covector, *values)

    states.defvjp(forwards, backwards)
    return states


def _value(source: _StatesOf, name: str) -> np.ndarray:
    """A value of the right shape for a name: that of the model or of the arguments."""
    given = source.arguments.get(name)
    if given is None:
        given = (source.arguments.get("params") or {}).get(name)
    if given is None and name in INITIAL:
        given = getattr(source.system, name, None)
    if given is None:
        model = given_values(source.system, True, None, {}, None)[0]
        if name not in model.parameters.values:
            raise InputError(f"give {name!r} a value from which its shape is known, as an argument of the bridge")
        given = model.parameters.values[name]
    return np.asarray(given, dtype=float)


def to_torch(system: Any, method: Any, *, wrt: str | Sequence[str], at: Any = None, **arguments: Any) -> Callable:
    """A run as a function of PyTorch: f(*values of the names in wrt) are the states at the times `at`, or the final one.

    Values are tensors; what comes back is differentiable by `backward()`, by the adjoint of the compiled steps. Initial values
    are moved onto the constraints. Needs the package torch; tensors should be in double precision.
    """
    try:
        import torch
    except ImportError:
        raise DalembertError("to_torch needs the package torch: pip install torch") from None
    source = _states_of(system, method, wrt, at, arguments)

    class States(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            ctx.save_for_backward(*values)
            found = source.states(*(value.detach().cpu().numpy() for value in values))
            return torch.as_tensor(found, dtype=values[0].dtype, device=values[0].device)

        @staticmethod
        def backward(ctx: Any, *covectors: Any) -> Any:
            values = ctx.saved_tensors
            parts = source.pulled(covectors[0].detach().cpu().numpy(), *(v.detach().cpu().numpy() for v in values))
            return tuple(torch.as_tensor(part, dtype=v.dtype, device=v.device) for part, v in zip(parts, values, strict=True))

    def states(*values: Any) -> Any:
        tensors = [value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=torch.float64) for value in values]
        if len(tensors) != len(source.wrt):
            raise InputError(f"the function takes {len(source.wrt)} values, {', '.join(source.wrt)}; got {len(tensors)}")
        return States.apply(*tensors)

    return states
