"""Expressions as sums c_0 + sum_k c_k x_k, with coefficients that need to be computed only once a step.

Everything that does not depend on the unknowns (`parameters`: t, h, theta, the state) becomes a coefficient. Coefficients that
are more than a number or a symbol are named and gathered in `once`, to be computed by a kernel of their own before Newton's
iteration. What remains of a residual are chains of multiplications and additions, which the machine fuses, and the nonlinear
terms of the model.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from dalembert.compiler._tape import read_tape
from dalembert.symbolic._operations import add, multiply, subtract

LATENCY = {ca.OP_SQRT: 18, ca.OP_DIV: 14, ca.OP_INV: 14}


@dataclass(frozen=True)
class Form:
    """c_0 + sum_k c_k x_k; terms by the number of their atom x_k, coefficients by their number in the table."""

    terms: dict[int, int]
    constant: int


@dataclass
class LinearForms:
    """Rewrites expressions of `unknowns` and `parameters`; one table of coefficients serves them all."""

    unknowns: ca.SX
    parameters: ca.SX
    once: list[tuple[ca.SX, ca.SX]] = field(default_factory=list)
    _table: list[ca.SX] = field(default_factory=list)
    _values: list[float | None] = field(default_factory=list)
    _number: dict[tuple, int] = field(default_factory=dict)
    _names: dict[int, ca.SX] = field(default_factory=dict)
    _atoms: list[ca.SX] = field(default_factory=list)
    _ready: list[int] = field(default_factory=list)
    _nonlinear: set[int] = field(default_factory=set)
    _inputs: dict[int, int] = field(default_factory=dict)

    # -- coefficients: equal ones get the same number --------------------------------------------------------------------

    def _coefficient(self, key: tuple, node: ca.SX) -> int:
        value = float(node) if node.is_constant() else None
        if value is not None:
            key = ("number", value)
        if key not in self._number:
            self._number[key] = len(self._table)
            self._table.append(node)
            self._values.append(value)
        return self._number[key]

    def _constant(self, value: float) -> int:
        number = self._number.get(("number", value))
        return self._coefficient((), ca.SX(value)) if number is None else number

    def _apply(self, operation: int, *operands: int) -> int:
        key = (operation, *operands)
        if key not in self._number:
            nodes = [self._table[k] for k in operands]
            node = ca.SX.binary(operation, *nodes) if len(nodes) == 2 else ca.SX.unary(operation, *nodes)
            self._number[key] = self._coefficient(key, node)
        return self._number[key]

    def _value(self, coefficient: int) -> float | None:
        return self._values[coefficient]

    def _name(self, coefficient: int) -> ca.SX:
        node = self._table[coefficient]
        if node.is_constant() or node.is_symbolic():
            return node
        if coefficient not in self._names:
            self._names[coefficient] = ca.SX.sym("once")
            self.once.append((self._names[coefficient], node))
        return self._names[coefficient]

    # -- forms -------------------------------------------------------------------------------------------------------------

    def _atom(self, node: ca.SX, ready: int, nonlinear: bool) -> Form:
        self._atoms.append(node)
        self._ready.append(ready)
        if nonlinear:
            self._nonlinear.add(len(self._atoms) - 1)
        return Form({len(self._atoms) - 1: self._constant(1.0)}, self._constant(0.0))

    def _scaled(self, form: Form, factor: int) -> Form:
        if self._value(factor) == 1.0:
            return form
        terms = {k: self._apply(ca.OP_MUL, c, factor) for k, c in form.terms.items()}
        return Form(terms, self._apply(ca.OP_MUL, form.constant, factor))

    def _sum(self, a: Form, b: Form, operation: int) -> Form:
        zero, terms = self._constant(0.0), dict(a.terms)
        for k, c in b.terms.items():
            terms[k] = self._apply(operation, terms.get(k, zero), c)
        return Form({k: c for k, c in terms.items() if c != zero}, self._apply(operation, a.constant, b.constant))

    def _written(self, form: Form) -> tuple[ca.SX, int]:
        """The sum as an expression, the terms that are ready last at its end, and when it is ready."""
        value = self._value(form.constant)
        total = None if value == 0.0 else self._name(form.constant)
        ready = 0
        for k in sorted(form.terms, key=lambda k: self._ready[k]):
            x, coefficient, value = self._atoms[k], form.terms[k], self._value(form.terms[k])
            alone = total is None and value == 1.0
            if value in (1.0, -1.0):
                total = (x if value == 1.0 else -x) if total is None else (add if value == 1.0 else subtract)(total, x)
            else:
                term = multiply(self._name(coefficient), x)
                total = term if total is None else add(total, term)
            ready = max(ready, self._ready[k]) + (0 if alone else 4)
        return ca.SX(0) if total is None else total, ready

    def rewrite(self, outputs: ca.SX) -> ca.SX:
        """The same values, in linear forms."""
        inputs = ca.vertcat(self.unknowns, self.parameters)
        tape = read_tape(ca.Function("f", [inputs], [ca.densify(outputs)]))
        used = np.concatenate([tape.operands[tape.operands >= 0], tape.outputs])
        uses = np.bincount(used, minlength=len(tape.code)).tolist()
        forms: list[Form] = []
        written: dict[int, tuple[ca.SX, int]] = {}

        def write(k: int) -> tuple[ca.SX, int]:
            if k not in written:
                written[k] = self._written(forms[k])
            return written[k]

        for k, (operation, operands, constant, position) in enumerate(tape.rows()):
            writers = [functools.partial(write, j) for j in operands]
            form = self._form(operation, [forms[j] for j in operands], writers, constant, position)
            if uses[k] > 1 and len(form.terms) > 1 and any(j in self._nonlinear for j in form.terms):
                node, ready = self._written(form)
                form = self._atom(node, ready, nonlinear=False)  # shared by several sums: an atom of its own
            forms.append(form)
        return ca.vertcat(ca.SX(0, 1), *(write(k)[0] for k in tape.outputs.tolist()))

    def _form(self, operation: int, forms: list[Form], write: list, constant: float, position: int) -> Form:
        if operation == ca.OP_CONST:
            return Form({}, self._constant(constant))
        if operation == ca.OP_INPUT:
            n = self.unknowns.shape[0]
            if position >= n:
                return Form({}, self._coefficient(("parameter", position), self.parameters[position - n]))
            if position not in self._inputs:
                (self._inputs[position],) = self._atom(self.unknowns[position], 0, nonlinear=False).terms
            return Form({self._inputs[position]: self._constant(1.0)}, self._constant(0.0))
        fixed = [not form.terms for form in forms]
        if all(fixed):
            return Form({}, self._apply(operation, *(form.constant for form in forms)))
        if operation in (ca.OP_ADD, ca.OP_SUB):
            return self._sum(forms[0], forms[1], operation)
        if operation in (ca.OP_NEG, ca.OP_TWICE):
            return self._scaled(forms[0], self._constant(-1.0 if operation == ca.OP_NEG else 2.0))
        if (operation == ca.OP_MUL and any(fixed)) or (operation == ca.OP_DIV and fixed[1]):
            other = int(fixed[0])  # the operand that is not fixed
            factor = forms[1 - other].constant
            if operation == ca.OP_DIV:
                factor = self._apply(ca.OP_DIV, self._constant(1.0), factor)
            form = forms[other]
            if len(form.terms) == 1 and self._value(form.constant) != 0.0:
                # Such as |d| - l, whose exact cancellation a distributed factor would spoil.
                node, ready = write[other]()
                form = self._atom(node, ready, nonlinear=True)
            return self._scaled(form, factor)
        values, moments = zip(*(w() for w in write), strict=True)
        node = ca.SX.binary(operation, *values) if len(values) == 2 else ca.SX.unary(operation, *values)
        return self._atom(node, max(moments) + LATENCY.get(operation, 4), nonlinear=True)
