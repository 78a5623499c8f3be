"""The text of one LLVM function: CasADi's operations on numbers or vectors, loads, stores and a loop."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import casadi as ca

FLAGS = "nsz arcp contract"
"""What LLVM may do to the arithmetic: fuse products and sums, share reciprocals, forget the sign of zero; never reassociate."""


VECTOR_LOOP, SCALAR_LOOP = "!VECTOR", "!SCALAR"
"""Stand for the properties of loops until a module is complete."""

_COMPARISONS = {ca.OP_LT: "olt", ca.OP_LE: "ole", ca.OP_EQ: "oeq", ca.OP_NE: "une"}

_ARITHMETIC = {
    ca.OP_ADD: "fadd",
    ca.OP_SUB: "fsub",
    ca.OP_MUL: "fmul",
    ca.OP_DIV: "fdiv",
    ca.OP_SQ: "fmul",
    ca.OP_TWICE: "fadd",
    ca.OP_INV: "fdiv",
}
"""What computes with the first and the last operand; before the only one of the last of these stands 1."""

_INTRINSICS = {
    ca.OP_SQRT: "sqrt",
    ca.OP_FABS: "fabs",
    ca.OP_FLOOR: "floor",
    ca.OP_CEIL: "ceil",
    ca.OP_COPYSIGN: "copysign",
    ca.OP_FMIN: "minnum",
    ca.OP_FMAX: "maxnum",
    ca.OP_SIN: "sin",
    ca.OP_COS: "cos",
    ca.OP_EXP: "exp",
    ca.OP_LOG: "log",
    ca.OP_POW: "pow",
    ca.OP_CONSTPOW: "pow",
}
"""What LLVM itself knows, for vectors too."""

_LIBRARY = {
    ca.OP_TAN: "tan",
    ca.OP_ASIN: "asin",
    ca.OP_ACOS: "acos",
    ca.OP_ATAN: "atan",
    ca.OP_ATAN2: "atan2",
    ca.OP_SINH: "sinh",
    ca.OP_COSH: "cosh",
    ca.OP_TANH: "tanh",
    ca.OP_ASINH: "asinh",
    ca.OP_ACOSH: "acosh",
    ca.OP_ATANH: "atanh",
    ca.OP_ERF: "erf",
    ca.OP_EXPM1: "expm1",
    ca.OP_LOG1P: "log1p",
    ca.OP_HYPOT: "hypot",
    ca.OP_FMOD: "fmod",
    ca.OP_REMAINDER: "remainder",
    ca.OP_ERFINV: "dalembert_erfinv",
}
"""What the C library computes, and `_erfinv`."""

_MATH = ("erfc", "sin", "cos", "sincos", "exp", "log", "pow", "floor", "ceil")
LIBM = (*(name for name in _LIBRARY.values() if not name.startswith("dalembert_")), *_MATH)
"""Symbols of the C library that compiled kernels may call."""

_PASS_THROUGH = (ca.OP_ASSIGN, ca.OP_LIFT, ca.OP_PRINTME)


class Body:
    """The lines of one straight-line function, in static single assignment form."""

    def __init__(self, lanes: int = 1) -> None:
        self.lanes = lanes
        self.kind, self.truth = ("double", "i1") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x i1>")
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self._vector = False
        self._simple = {code: f"{name} {FLAGS} {self.kind} " for code, name in _ARITHMETIC.items() if code != ca.OP_INV}
        self._element = f"getelementptr inbounds {self.kind}, ptr "
        self._aligned = f"align {8 * lanes}"
        self._truths: dict[str, str] = {}
        """The truth values of which numbers were made."""

    def number(self, value: float) -> str:
        """A constant, the same in all lanes."""
        digits = f"0x{struct.pack('>d', value).hex().upper()}"
        return digits if self.lanes == 1 else f"<{', '.join([f'double {digits}'] * self.lanes)}>"

    def assign(self, instruction: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def operation(self, code: int, operands: list[str]) -> str:
        """Append one CasADi operation; its value's name is returned."""
        simple = self._simple.get(code)
        if simple is not None:
            return self.assign(f"{simple}{operands[0]}, {operands[-1]}")
        if code in _PASS_THROUGH:
            return operands[0]
        if code == ca.OP_INV:
            return self.assign(f"{_ARITHMETIC[code]} {FLAGS} {self.kind} {self.number(1.0)}, {operands[0]}")
        if code == ca.OP_NEG:
            return self.assign(f"fneg {FLAGS} {self.kind} {operands[0]}")
        if code in _INTRINSICS:
            suffix = "f64" if self.lanes == 1 else f"v{self.lanes}f64"
            return self.call(f"llvm.{_INTRINSICS[code]}.{suffix}", operands, self.kind)
        if code in _LIBRARY:
            return self._by_lane(_LIBRARY[code], operands)
        if code in _COMPARISONS:
            return self._number(self.assign(f"fcmp {_COMPARISONS[code]} {self.kind} {operands[0]}, {operands[1]}"))
        zero, one = self.number(0.0), self.number(1.0)
        truths = [self._truths.get(x) or self.assign(f"fcmp une {self.kind} {x}, {zero}") for x in operands[:2]]
        if code == ca.OP_NOT:
            return self._select(truths[0], zero, one)
        if code == ca.OP_AND:
            return self._number(self.assign(f"and {self.truth} {truths[0]}, {truths[1]}"))
        if code == ca.OP_OR:
            return self._number(self.assign(f"or {self.truth} {truths[0]}, {truths[1]}"))
        if code == ca.OP_IF_ELSE_ZERO:
            return self._select(truths[0], operands[1], zero)
        if code == ca.OP_SIGN:
            positive = self.assign(f"fcmp ogt {self.kind} {operands[0]}, {zero}")
            negative = self.assign(f"fcmp olt {self.kind} {operands[0]}, {zero}")
            rest = self._select(negative, self.number(-1.0), operands[0])
            return self._select(positive, one, rest)
        raise AssertionError(f"CasADi operation {code} is not known to the compiler")

    def call(self, name: str, operands: list[str], kind: str = "double") -> str:
        if not name.startswith("dalembert_"):
            self.declarations.add(f"declare {kind} @{name}({', '.join([kind] * len(operands))}) #0")
        return self.assign(f"call {kind} @{name}({', '.join(f'{kind} {x}' for x in operands)})")

    def _by_lane(self, name: str, operands: list[str]) -> str:
        if self.lanes == 1:
            return self.call(name, operands)
        result = "undef"
        for lane in range(self.lanes):
            parts = [self.assign(f"extractelement {self.kind} {x}, i32 {lane}") for x in operands]
            result = self.assign(f"insertelement {self.kind} {result}, double {self.call(name, parts)}, i32 {lane}")
        return result

    def _select(self, truth: str, x: str, y: str) -> str:
        return self.assign(f"select {self.truth} {truth}, {self.kind} {x}, {self.kind} {y}")

    def _number(self, truth: str) -> str:
        number = self._select(truth, self.number(1.0), self.number(0.0))
        self._truths[number] = truth
        return number

    def load(self, slot: int, source: str = "%memory") -> str:
        lines = self.lines
        address = f"%v{len(lines)}"
        lines.append(f"  {address} = {self._element}{source}, i64 {slot}")
        return self.assign(f"load {self.kind}, ptr {address}, {self._aligned}")

    def store(self, value: str, slot: int) -> None:
        address = self.assign(f"{self._element}%memory, i64 {slot}")
        self.lines.append(f"  store {self.kind} {value}, ptr {address}, {self._aligned}")

    def function(self, signature: str, result: str = "void") -> str:
        return "\n".join([f"define {signature} {{\nentry:", *self.lines, f"  ret {result}", "}"])

    # -- one loop -------------------------------------------------------------------------------------------------------

    def begin_loop(self, *, vector: bool, starts: Sequence[str] = ()) -> list[str]:
        """What follows is repeated, with %i counting from 0; for each of `starts`, what the turn before passed on."""
        self._vector = vector
        self.lines += ["  br label %loop", "loop:", "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
        for k, start in enumerate(starts):
            self.lines.append(f"  %sum{k} = phi {self.kind} [ {start}, %entry ], [ %total{k}, %loop ]")
        return [f"%sum{k}" for k in range(len(starts))]

    def end_loop(self, turns: int, results: Sequence[str] = ()) -> list[str]:
        """The end of what is repeated; `results` are passed on, and named after the loop as returned."""
        for k, result in enumerate(results):
            self.lines.append(f"  %total{k} = bitcast {self.kind} {result} to {self.kind}")
        self.lines += [
            "  %next = add nuw nsw i64 %i, 1",
            f"  %done = icmp eq i64 %next, {turns}",
            f"  br i1 %done, label %exit, label %loop, !llvm.loop {VECTOR_LOOP if self._vector else SCALAR_LOOP}",
            "exit:",
        ]
        return [f"%total{k}" for k in range(len(results))]

    def progression(self, first: int, stride: int) -> str:
        """The address of slot first + i stride."""
        slot = self.assign(f"mul nsw i64 %i, {stride}") if stride != 1 else "%i"
        return self._address(self.assign(f"add nsw i64 {slot}, {first}"))

    def entry(self, table: str, length: int) -> str:
        """The address of the slot that a table names."""
        place = self.assign(f"getelementptr inbounds [{length} x i32], ptr {table}, i64 0, i64 %i")
        slot = self.assign(f"load i32, ptr {place}, align 4{self._group}")
        return self._address(self.assign(f"zext i32 {slot} to i64"))

    def load_constant(self, table: str, length: int) -> str:
        """A number of a table, the same in all lanes."""
        place = self.assign(f"getelementptr inbounds [{length} x double], ptr {table}, i64 0, i64 %i")
        number = self.assign(f"load double, ptr {place}, align 8{self._group}")
        if self.lanes == 1:
            return number
        first = self.assign(f"insertelement {self.kind} undef, double {number}, i32 0")
        return self.assign(f"shufflevector {self.kind} {first}, {self.kind} undef, <{self.lanes} x i32> zeroinitializer")

    def load_at(self, address: str) -> str:
        return self.assign(f"load {self.kind}, ptr {address}, align {8 * self.lanes}{self._group}")

    def store_at(self, value: str, address: str) -> None:
        self.lines.append(f"  store {self.kind} {value}, ptr {address}, align {8 * self.lanes}{self._group}")

    def _address(self, slot: str) -> str:
        return self.assign(f"getelementptr inbounds {self.kind}, ptr %memory, i64 {slot}")

    @property
    def _group(self) -> str:
        return ", !llvm.access.group !0" if self._vector else ""
