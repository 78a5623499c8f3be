"""The adjoint of a method, and methods composed of substeps.

E. Hairer, C. Lubich and G. Wanner, Geometric Numerical Integration, 2nd edition, Springer 2006, sections II.3, II.4 and V.3.

Deviations from the print: constraints on the end of a step, which the book does not have, are imposed on the adjoint's own end;
a composition begins with the method, not with its adjoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca

from dalembert.errors import InputError, UnsupportedSystem
from dalembert.methods._base import DerivedMethod, OneStepMethod
from dalembert.methods._scheme import Scheme
from dalembert.methods._step import Step
from dalembert.methods.schemes import scheme
from dalembert.symbolic import from_column
from dalembert.systems import BoundSystem, System


@dataclass(frozen=True)
class Adjoint(DerivedMethod):
    """Phi*_h = (Phi_-h)^-1: the step of `method` with old and new state exchanged and h replaced by -h. Made by `adjoint`."""

    @property
    def reference(self) -> str:
        """That of the method."""
        return f"the adjoint of {self.method.reference}"

    @property
    def symplectic(self) -> bool | None:
        """If the method is."""
        return self.method.symplectic

    @property
    def symmetric(self) -> bool | None:
        """If the method is."""
        return self.method.symmetric

    def __str__(self) -> str:
        return f"da.adjoint({self.method})"

    def check(self, system: System) -> None:
        """Refuse what the method refuses, and systems on which its step has no inverse.

        A step onto g = 0 that leaves the hidden constraint takes many momenta to one.
        """
        self.method.check(system)
        needed = ({"g", "g_dot"} if system.n_holonomic else set()) | ({"k"} if system.n_nonholonomic else set())
        if not (self.method.symmetric is True or self.method.keeps >= needed):
            missing = ", ".join(sorted(needed - self.method.keeps))
            raise UnsupportedSystem(
                f"{self.method} does not keep the constraint {missing}, so that its step has no inverse and no adjoint: use a "
                f"method that keeps all of them, such as {system.served_by}, or projected=True"
            )

    def equations(self, system: BoundSystem, step: Step) -> None:
        """The method's equations for a step of size -h from the new state (t1, y1, z1) = (t0, y0, z0) + (h, h V, U).

        They end in the old state, which is given. The constraints that the method imposes on its end would be conditions on
        given data, so that the system would lose rank; the adjoint imposes them on its own new state.
        """
        base = self.method.step_equations(system.definition, exact=step.exact)
        backward, h = base.step, step.h_symbol
        step.constants += backward.constants
        first, second = step.state
        V = step.stage_increments("V", of=first, nodes=[1.0], per_h=True, anchored=True)[0]
        U = step.stage_increments("U", of=second, nodes=[1.0], anchored=True)[0]
        change = dict(zip(step.state, (step.h * V, U), strict=True))
        moved = {name: self._column(value) for name, value in change.items()}

        # Stages count from the old state: what the method calls X with stages y_1 + X is X' - (y_1 - y_0) here.
        symbols = [backward.time_symbol, backward.h_symbol, backward.theta, *backward.state.values()]
        forward = [step.time_symbol + h, -h, step.theta, *(step.state[name] + moved[name] for name in step.state)]
        renamed = [step.time_symbol, h, step.theta, *step.state.values()]
        for block in backward.unknowns:
            own = step.repeat(block, nodes=1 - block.nodes)
            symbols.append(block.symbols)
            renamed.append(own)
            if block.kind == "impulse":
                forward.append(-own)
            elif block.kind == "increment":
                offset = ca.repmat(moved[block.of], len(block.nodes), 1)
                forward.append((offset - h * own) / h if block.per_h else own - offset)
            else:
                forward.append(own)

        def in_this_step(expression: ca.SX, values: list[ca.SX] = forward) -> Any:
            value = ca.substitute(expression, ca.vertcat(*symbols), ca.vertcat(*values))
            return from_column(ca.densify(value))

        for equation in backward.equations:
            step.equation(in_this_step(equation.left), in_this_step(equation.right))
        dy, dz = (-in_this_step(backward.increments[name]) for name in step.state)
        step.equation(V, dy / step.h)
        step.equation(U, dz)
        step.constrains_positions = backward.constrains_positions
        t1, y1, z1 = step.t0 + step.h, step.initial(first) + step.h * V, step.initial(second) + U
        for constraint in backward.ends:
            step.at_end(constraint, t1, *((y1,) if constraint == "g" else (y1, z1)))
        for block, equation in backward.limits:
            step.limits.append((step.unknown(block.name), self._column(in_this_step(equation, renamed))))
        stage = {f"stage_{name}": in_this_step(value) for name, value in backward.stage_multipliers.items()}
        step.result(**{first: step.h * V, second: U}, **stage)

    @staticmethod
    def _column(value: Any) -> ca.SX:
        return ca.vertcat(ca.SX(0, 1), *(item.sx for item in value))


@dataclass(frozen=True)
class Composition(OneStepMethod):
    """Substeps of other methods, one after the other, with fractions of h. Made by `compose`."""

    basic: OneStepMethod
    scheme: Scheme

    @property
    def substeps(self) -> tuple[tuple[OneStepMethod, float], ...]:
        """The basic method, or it and its adjoint in turn."""
        other = adjoint(self.basic)
        parts = self.scheme.substeps(symmetric=self.basic.symmetric is True)
        return tuple(
            (method, float(part.fraction) * fraction)
            for part in parts
            for method, fraction in (other if part.adjoint else self.basic).substeps
        )

    @property
    def reference(self) -> str:
        """Of the scheme and of the basic method."""
        return f"{self.scheme.reference}, with {self.basic.reference}"

    @property
    def symplectic(self) -> bool | None:
        """If the basic method is."""
        return self.basic.symplectic

    @property
    def symmetric(self) -> bool:
        """Always: the schemes are palindromes."""
        return True

    @property
    def keeps(self) -> frozenset[str]:
        """What the basic method keeps."""
        return self.basic.keeps

    @property
    def serves_odae(self) -> bool:
        """If the basic method does."""
        return self.basic.serves_odae

    @property
    def order(self) -> dict[str, int]:
        """That of the scheme, or of the basic method if it is higher already, and then even, because of symmetry."""
        return {name: max(self.scheme.order, order + order % 2) for name, order in self.basic.order.items()}

    @property
    def order_unconstrained(self) -> dict[str, int]:
        """The same without constraints."""
        return {name: max(self.scheme.order, order + order % 2) for name, order in self.basic.order_unconstrained.items()}

    def check(self, system: System) -> None:
        """Refuse what the substeps refuse."""
        for method in {method: None for method, _ in self.substeps}:
            method.check(system)

    def equations(self, system: BoundSystem, step: Step) -> None:
        """A composition has no equations of its own: the driver runs its substeps one after the other."""
        raise AssertionError("substeps are compiled one by one")

    def __str__(self) -> str:
        return f"da.compose({self.basic}, {self.scheme.name!r})"


def adjoint(method: OneStepMethod) -> OneStepMethod:
    """The exact adjoint Phi*_h = (Phi_-h)^-1 of a method, from its own step equations; a symmetric method is its own adjoint.

    Constraints that the method imposes on its new state are imposed on the new state of the adjoint.

    Example:
        >>> import dalembert as da
        >>> problem, euler = da.problems.double_pendulum(), da.SymplecticEuler()
        >>> there = da.verify.step(problem, euler, h=0.1)
        >>> back = da.verify.step(problem.system, da.adjoint(euler), h=-0.1, start=there)
        >>> bool(abs(back.p - problem.p0).max() < 1e-14)
        True

    """
    if not isinstance(method, OneStepMethod):
        raise InputError(f"adjoint takes a method, such as da.SymplecticEuler(); got {method!r}")
    _refuse_preparation(method)
    if method.symmetric is True:
        return method
    return method.method if isinstance(method, Adjoint) else Adjoint(method)


def compose(method: OneStepMethod, scheme_or_order: Scheme | str | int) -> OneStepMethod:
    """A symmetric method of higher order from substeps of `method`, or of it and its adjoint in turn if it is not symmetric.

    `scheme_or_order` is one of `da.schemes`, its name such as "suzuki-6", or the order alone, for which the most efficient
    scheme is taken. Symplecticity and constraints are inherited. Every substep has machine code and a predictor of its own.

    Example:
        >>> import dalembert as da
        >>> da.compose(da.Rattle(), da.schemes.kahan_li(8)).order
        {'q': 8, 'p': 8, 'lam': 8}
        >>> da.compose(da.SymplecticEuler(), "strang").order                # the method, then its adjoint, with h/2 each
        {'q': 2, 'p': 2, 'lam': 2}

    """
    if not isinstance(method, OneStepMethod):
        raise InputError(f"compose takes a method, such as da.Rattle(), and a scheme; got {method!r}")
    _refuse_preparation(method)
    chosen = scheme_or_order if isinstance(scheme_or_order, Scheme) else scheme(scheme_or_order)
    orders = list((method.order or method.order_unconstrained).values())
    if not orders:
        raise InputError(f"{method} claims no order, so that nothing follows for a composition of it")
    order = min(orders)
    if chosen.basic_order > 1:  # from Phi of an odd order q, Phi* o Phi has order q + 1
        order += order % 2
        if order < chosen.basic_order:
            raise InputError(f"the scheme {chosen.name} needs a basic method of order {chosen.basic_order}; got {method}")
    return Composition(method, chosen)


def _refuse_preparation(method: OneStepMethod) -> None:
    if method.varies_steps:
        raise InputError(f"{method} varies its steps: compose the method first, as in da.ReversibleSteps(da.compose(...))")
    if method.starting is not None:
        raise InputError(f"{method} prepares its first step, so that it has no adjoint and cannot be a substep")
