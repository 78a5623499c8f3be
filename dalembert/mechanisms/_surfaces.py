"""Surfaces on which wheels and balls roll, given by their height f(x, y) or as the zeros of a function F(x, y, z).

A ball about c touches at the point P next to c, a wheel about c with the axis a where its rim is lowest on the surface:

    ball    P - c + mu F'(P) = 0,  F(P) = 0,                  n.(c - P) = r,      n = F'(P) / |F'(P)|
    wheel   F'(c + r u).(a x u) = 0,  a.u = 0,  P = c + r u,    F(P) / |F'(P)| = 0

The equations for P are solved inside of the model's expressions by a fixed number of Newton steps from where the gradient at c
points, so that derivatives of all orders follow. The number is what poses around the assembled one need to round-off; a start
or a run in which it leaves more than 1e-9 radii is refused when it is made or read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanisms._vectors import Vector
from dalembert.symbolic import NotForSymbols, Scalar, as_column, from_column
from dalembert.systems._model import Parameters, one_line, sentence

MOST_STEPS = 6
SETTLED = 1e-13
"""What Newton's steps may leave, in terms of the radius, in the poses by which their number is chosen."""


class Surface:
    """Where F = 0, on the side on which F is positive; F(x, y, z) = z - f(x, y) where a height is given."""

    def __init__(self, what: str, function: Callable[..., Any], params: Mapping[str, Any]) -> None:
        if not callable(function):
            raise ModelError(
                f"{what} is a function: lambda x, y: height, or lambda x, y, z: zero on it; got {one_line(function)}"
            )
        self.what, self.function, self.params = what, function, dict(params)
        self.steps = MOST_STEPS
        self.names = [name for name in inspect.signature(function).parameters if name not in ("x", "y", "z")]
        unknown = [name for name in self.names if name not in params]
        if unknown:
            known = ", ".join(params) or "none"
            raise ModelError(f"{what} asks for {', '.join(unknown)}; declare it in da.Mechanism(params=...) (it has: {known})")

    @cached_property
    def _parameters(self) -> Parameters:
        return Parameters({name: self.params[name] for name in self.names})

    @cached_property
    def F(self) -> ca.Function:
        """F, its gradient and its Hessian, as functions of the point and of the parameters."""
        X, theta = ca.SX.sym("X", 3), self._parameters
        x, y, z = from_column(X)
        taken = inspect.signature(self.function).parameters
        named = {name: value for name, value in (("x", x), ("y", y), ("z", z)) if name in taken}
        try:
            value = self.function(**named, **theta.symbols())
            F = as_column([value if "z" in taken else z - value])
        except NotForSymbols as error:
            raise error.said_of(self.what) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ModelError(
                f"{self.what} failed on symbolic arguments ({sentence(error)}): use NumPy's elementary functions"
            ) from error
        gradient = ca.gradient(F, X)
        return ca.Function("F", [X, theta.theta], [F, gradient, ca.jacobian(gradient, X)])

    def normal_at(self, point: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
        """The unit vector along the gradient of F at a point."""
        gradient = np.asarray(self.F(point, self._parameters.vector({name: params[name] for name in self.names}))[1])[:, 0]
        length = float(np.linalg.norm(gradient))
        if not (np.isfinite(length) and length > 0):
            raise ModelError(f"{self.what} has no normal next to {point.tolist()}: it must be smooth there")
        return gradient / length

    def settle(self, place: np.ndarray, radius: float, axis: np.ndarray | None, params: Mapping[str, Any]) -> np.ndarray:
        """Choose how many Newton steps find the point of contact, from places along the surface near a given one.

        Returns a direction to which no normal there is opposite, from which tangents are turned.
        """
        random = np.random.default_rng(0)
        centres = place + radius * np.concatenate([np.zeros((1, 3)), random.normal(size=(100, 3)) * [5, 5, 0.1]])
        values = [np.broadcast_to(row, len(centres)) for row in (() if axis is None else axis)]
        for self.steps in range(MOST_STEPS + 1):
            self.__dict__.pop("ball", None)
            self.__dict__.pop("wheel", None)
            function = self.ball if axis is None else self.wheel
            found = self.evaluate(function, params, tuple(centres.T), *([tuple(values)] if values else []), radius)
            errors = np.max(np.abs(found[-2]), axis=0)
            known = errors[np.isfinite(errors)]  # the surface may end somewhere
            if errors[0] < SETTLED * radius and np.mean(known < SETTLED * radius) > 0.95:
                break
        normals = np.array(found[1]).T[np.isfinite(errors)]
        candidates = np.concatenate([normals[:1], np.eye(3), -np.eye(3)])
        return candidates[np.argmax(np.min(candidates @ normals.T, axis=1))]

    @cached_property
    def ball(self) -> ca.Function:
        """P and n of a ball, what Newton's steps left, and whether P is the nearest point, of c, r and the parameters."""
        c, r, theta = ca.SX.sym("c", 3), ca.SX.sym("r"), self._parameters.theta
        _, gradient, _ = self.F(c, theta)
        steepness = ca.norm_2(gradient)
        P, mu = c - r * gradient / steepness, r / steepness
        for _ in range(self.steps):
            F, gradient, hessian = self.F(P, theta)
            # (I + mu H) dP + F' dmu = -(P - c + mu F'), F'.dP = -F
            block = ca.inv_minor(ca.SX.eye(3) + mu * hessian) @ ca.horzcat(P - c + mu * gradient, gradient)
            d_mu = (F - ca.dot(gradient, block[:, 0])) / ca.dot(gradient, block[:, 1])
            P, mu = P - block[:, 0] - d_mu * block[:, 1], mu + d_mu
        F, gradient, hessian = self.F(P, theta)
        left = ca.vertcat(P - c + mu * gradient, F / ca.norm_2(gradient))
        return ca.Function("ball", [c, r, theta], [P, gradient / ca.norm_2(gradient), left, _bend(mu * hessian, gradient)])

    @cached_property
    def wheel(self) -> ca.Function:
        """P, n, F / |F'|, what Newton's steps left, and whether P is the lowest point, of c, a, r and the parameters."""
        c, a, r, theta = ca.SX.sym("c", 3), ca.SX.sym("a", 3), ca.SX.sym("r"), self._parameters.theta
        _, gradient, _ = self.F(c, theta)
        across = gradient - ca.dot(gradient, a) * a
        u0 = -across / ca.norm_2(across)
        t0, angle = ca.cross(a, u0), ca.SX(0)
        for k in range(self.steps + 1):
            u, t = ca.cos(angle) * u0 + ca.sin(angle) * t0, ca.cos(angle) * t0 - ca.sin(angle) * u0
            F, gradient, hessian = self.F(c + r * u, theta)
            slope = ca.dot(gradient, t)
            if k < self.steps:
                angle = angle - slope / (r * ca.dot(t, hessian @ t) - ca.dot(gradient, u))
        size = ca.norm_2(gradient)
        bend = r * ca.dot(t, hessian @ t) - ca.dot(gradient, u)
        return ca.Function("wheel", [c, a, r, theta], [c + r * u, gradient / size, F / size, r * slope / size, bend])

    def evaluate(self, function: ca.Function, params: Mapping[str, Any], *arguments: Any) -> list[list[Any]]:
        """A function of this surface at symbols, at numbers, or at arrays over time; vectors by their entries."""
        theta = [entry for name in self.names for entry in np.ravel(np.asarray(params[name], dtype=object)).tolist()]
        flat = [list(argument) if isinstance(argument, tuple) else [argument] for argument in (*arguments, tuple(theta))]
        if any(isinstance(entry, Scalar) for entries in flat for entry in entries):
            values = function(*(as_column(entries) if entries else ca.SX(0, 1) for entries in flat))
            return [list(from_column(value)) for value in values]
        shape = np.broadcast_shapes(*(np.shape(entry) for entries in flat for entry in entries))
        count = int(np.prod(shape, dtype=int))
        rows = [np.array([np.broadcast_to(entry, shape).ravel() for entry in entries]).reshape(-1, count) for entries in flat]
        found = function.map(count)(*rows)
        return [[np.asarray(row, dtype=float).reshape(shape) for row in np.asarray(value)] for value in found]


def _bend(hessian: ca.SX, gradient: ca.SX) -> ca.SX:
    """Positive where I + mu F'' is so along the surface: the least eigenvalue there, where the ball bends more sharply."""
    P = ca.SX.eye(3) - gradient @ gradient.T / ca.dot(gradient, gradient)
    S = P @ hessian @ P  # eigenvalues x, y and 0
    mean, square = ca.trace(S) / 2, ca.sum1(ca.sum2(S * S))
    return 1 + mean - ca.sqrt(ca.fmax(square / 2 - mean**2, 0))


def as_vector(entries: list[Any]) -> Vector:
    """Three entries as a vector."""
    x, y, z = entries
    return (x, y, z)
