"""CasADi graphs as LLVM assembly.

A kernel is a straight-line function `void kernel(double *memory)`: it loads its inputs from fixed slots of one memory block,
computes, and stores its outputs into fixed slots. All loads come before all stores, so that outputs may overwrite inputs.
Long kernels are cut into pieces that pass values through a work area of the same memory block, because the time that LLVM
takes grows faster than linearly with the length of a basic block.

With `lanes` > 1 a kernel does the same for so many trajectories at once: every slot of memory holds one number a lane, and
every value is a vector. Functions without a vector instruction are called lane by lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import casadi as ca
import numpy as np

from dalembert.symbolic._lock import one_at_a_time

PIECE = 1500
"""Operations a piece: long enough for LLVM to find common subexpressions, short enough to compile in linear time."""

STORES = 400
"""Outputs a piece: the time in which LLVM schedules stores grows with the square of their number."""

FLAGS = "nsz arcp contract"
"""What LLVM may do to the arithmetic: fuse products and sums, share reciprocals, forget the sign of zero; never reassociate."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """What a kernel computes: expressions of symbols, with a slot of memory for every scalar on both sides."""

    name: str
    inputs: Sequence[tuple[ca.SX, int]]
    outputs: Sequence[tuple[ca.SX, int]]

    def function(self) -> tuple[ca.Function, np.ndarray, np.ndarray]:
        """One CasADi function of one column, with the slots of its inputs and outputs."""
        arguments = ca.vertcat(ca.SX(0, 1), *(symbol for symbol, _ in self.inputs))
        results = ca.vertcat(ca.SX(0, 1), *(ca.densify(expression) for expression, _ in self.outputs))
        load_slots = np.concatenate([np.zeros(0, int), *(start + np.arange(x.shape[0]) for x, start in self.inputs)])
        store_slots = np.concatenate([np.zeros(0, int), *(start + np.arange(x.shape[0]) for x, start in self.outputs)])
        return ca.Function(self.name, [arguments], [results]), load_slots, store_slots

    @lru_cache(maxsize=8)  # noqa: B019 - for as long as a program is made of it
    def code(self) -> tuple[list[Instruction], np.ndarray, np.ndarray]:
        """The instructions, with the slots of inputs and outputs."""
        function, load_slots, store_slots = self.function()
        return instructions(function), load_slots, store_slots

    @property
    def operations(self) -> int:
        """How many arithmetic operations the kernel takes."""
        return _operations(self.code()[0])


_COMPARISONS = {ca.OP_LT: "olt", ca.OP_LE: "ole", ca.OP_EQ: "oeq", ca.OP_NE: "une"}

_ARITHMETIC = {
    ca.OP_ADD: "fadd {flags} {kind} {x}, {y}",
    ca.OP_SUB: "fsub {flags} {kind} {x}, {y}",
    ca.OP_MUL: "fmul {flags} {kind} {x}, {y}",
    ca.OP_DIV: "fdiv {flags} {kind} {x}, {y}",
    ca.OP_SQ: "fmul {flags} {kind} {x}, {x}",
    ca.OP_TWICE: "fadd {flags} {kind} {x}, {x}",
    ca.OP_NEG: "fneg {flags} {kind} {x}",
    ca.OP_INV: "fdiv {flags} {kind} {y}, {x}",
}

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


class _Body:
    """The lines of one straight-line function, in static single assignment form."""

    def __init__(self, lanes: int = 1) -> None:
        self.lanes = lanes
        self.kind, self.truth = ("double", "i1") if lanes == 1 else (f"<{lanes} x double>", f"<{lanes} x i1>")
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self._count = 0

    def number(self, value: float) -> str:
        """A constant, the same in all lanes."""
        digits = f"0x{np.float64(value).view(np.uint64):016X}"
        return digits if self.lanes == 1 else f"<{', '.join([f'double {digits}'] * self.lanes)}>"

    def assign(self, instruction: str) -> str:
        name = f"%v{self._count}"
        self._count += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def operation(self, code: int, operands: list[str]) -> str:
        """Append one CasADi operation; its value's name is returned."""
        if code in _PASS_THROUGH:
            return operands[0]
        if code in _ARITHMETIC:
            x, y = operands[0], self.number(1.0) if code == ca.OP_INV else operands[-1]
            return self.assign(_ARITHMETIC[code].format(flags=FLAGS, kind=self.kind, x=x, y=y))
        if code in _INTRINSICS:
            suffix = "f64" if self.lanes == 1 else f"v{self.lanes}f64"
            return self.call(f"llvm.{_INTRINSICS[code]}.{suffix}", operands, self.kind)
        if code in _LIBRARY:
            return self._by_lane(_LIBRARY[code], operands)
        if code in _COMPARISONS:
            return self._number(self.assign(f"fcmp {_COMPARISONS[code]} {self.kind} {operands[0]}, {operands[1]}"))
        zero, one = self.number(0.0), self.number(1.0)
        truths = [self.assign(f"fcmp une {self.kind} {x}, {zero}") for x in operands]
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
        return self._select(truth, self.number(1.0), self.number(0.0))

    def load(self, slot: int) -> str:
        address = self.assign(f"getelementptr inbounds {self.kind}, ptr %memory, i64 {slot}")
        return self.assign(f"load {self.kind}, ptr {address}, align {8 * self.lanes}")

    def store(self, value: str, slot: int) -> None:
        address = self.assign(f"getelementptr inbounds {self.kind}, ptr %memory, i64 {slot}")
        self.lines.append(f"  store {self.kind} {value}, ptr {address}, align {8 * self.lanes}")

    def function(self, signature: str, result: str = "void") -> str:
        return "\n".join([f"define {signature} {{", *self.lines, f"  ret {result}", "}"])


Instruction = tuple[int, tuple[int, ...], float, int]
"""Operation, operands as indices of earlier instructions, constant, position in or out."""

_COMMUTATIVE = (ca.OP_ADD, ca.OP_MUL)


def instructions(function: ca.Function) -> list[Instruction]:
    """A CasADi function as a list of instructions, in which no value is computed twice.

    CasADi's own elimination of common subexpressions (`cse`, 3.8.2) is not used anywhere here: where merged operands let an
    expression simplify, as (x / a) * a does, it has replaced later expressions by values of others.
    """
    # A million of these calls take a second: they are not looked up every time, and results are not asked for twice.
    identity, inputs, outputs = function.instruction_id, function.instruction_input, function.instruction_output
    registers: dict[int, int] = {}
    numbers: dict[tuple, int] = {}
    result: list[Instruction] = []
    for k in range(function.n_instructions()):
        code = identity(k)
        if code == ca.OP_OUTPUT:
            result.append((code, (registers[inputs(k)[0]],), 0.0, outputs(k)[1]))
            continue
        if code == ca.OP_CONST:
            value = function.instruction_constant(k)
            entry: Instruction = (code, (), value, -1)
            key: tuple = (code, np.float64(value).tobytes())  # -0.0 is not 0.0, and nan is itself
        elif code == ca.OP_INPUT:
            entry = key = (code, (), 0.0, inputs(k)[1])
        else:
            operands = tuple([registers[i] for i in inputs(k)])
            entry = (code, operands, 0.0, -1)
            key = (code, *sorted(operands)) if code in _COMMUTATIVE else (code, *operands)
        number = numbers.setdefault(key, len(result))
        if number == len(result):
            result.append(entry)
        registers[outputs(k)[0]] = number
    return result


def operation_count(function: ca.Function) -> int:
    """How many arithmetic operations a CasADi function takes."""
    return _operations(instructions(function))


def _operations(code: list[Instruction]) -> int:
    return sum(operation not in (ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT) for operation, *_ in code)


def _pieces(computed: list[int], stores: Counter[int]) -> tuple[dict[int, int], int]:
    """The piece in which each value is computed, and how many pieces there are."""
    piece_of: dict[int, int] = {}
    piece = operations = stored = 0
    for k in computed:
        if operations == PIECE or stored >= STORES:
            piece, operations, stored = piece + 1, 0, 0
        piece_of[k] = piece
        operations, stored = operations + 1, stored + stores[k]
    return piece_of, piece + 1


def emit_kernel(kernel: Kernel, work: int, lanes: int = 1) -> tuple[str, set[str], int]:
    """LLVM assembly of a kernel whose pieces pass values through memory from slot `work` on, what it calls, the slots used."""
    code, load_slots, store_slots = kernel.code()
    computed = [k for k, entry in enumerate(code) if entry[0] not in (ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT)]
    outputs = [(entry[1][0], int(store_slots[entry[3]])) for entry in code if entry[0] == ca.OP_OUTPUT]
    piece_of, n_pieces = _pieces(computed, Counter(value for value, _ in outputs))
    # In a kernel of several pieces an output that overwrites an input must wait until the last piece has loaded it.
    delayed = set(map(int, load_slots)) & {slot for _, slot in outputs} if n_pieces > 1 else set()

    crossing: dict[int, int] = {}
    for k in computed:
        for operand in code[k][1]:
            if operand in piece_of and piece_of[operand] != piece_of[k]:
                crossing.setdefault(operand, work + len(crossing))
    for value, slot in outputs:
        if slot in delayed and piece_of.get(value, n_pieces - 1) != n_pieces - 1:
            crossing.setdefault(value, work + len(crossing))

    by_piece: list[list[int]] = [[] for _ in range(n_pieces)]
    for k in computed:
        by_piece[piece_of[k]].append(k)
    texts: list[str] = []
    declarations: set[str] = set()
    for piece, members in enumerate(by_piece):
        body = _Body(lanes)
        names: dict[int, str] = {}

        def name_of(value: int, body: _Body = body, names: dict[int, str] = names) -> str:
            if value not in names:
                operation, _, constant, position = code[value]
                if operation == ca.OP_CONST:
                    names[value] = body.number(constant)
                else:
                    names[value] = body.load(int(load_slots[position]) if operation == ca.OP_INPUT else crossing[value])
            return names[value]

        mine = [
            (value, slot)
            for value, slot in outputs
            if (n_pieces - 1 if slot in delayed else piece_of.get(value, n_pieces - 1)) == piece
        ]
        produced = set(members)
        for value in [operand for k in members for operand in code[k][1]] + [value for value, _ in mine]:
            if value not in produced:
                name_of(value)  # loads first
        for k in members:
            names[k] = body.operation(code[k][0], [names[operand] for operand in code[k][1]])
        for k in members:
            if k in crossing:
                body.store(names[k], crossing[k])
        for value, slot in mine:
            body.store(names[value], slot)
        suffix = f"_{piece}" if n_pieces > 1 else ""
        texts.append(body.function(f"void @{kernel.name}{suffix}(ptr noundef %memory) #1"))
        declarations |= body.declarations
    if n_pieces > 1:
        calls = "\n".join(f"  call void @{kernel.name}_{piece}(ptr %memory)" for piece in range(n_pieces))
        texts.append(f"define void @{kernel.name}(ptr noundef %memory) #1 {{\n{calls}\n  ret void\n}}")
    return "\n\n".join(texts), declarations, len(crossing)


@cache
def _erfinv() -> tuple[str, set[str]]:
    """The inverse error function to round-off: a rational start and three Newton steps, on erfc where x is close to 1.

    CasADi's own evaluation of it has relative errors of up to 6e-5.
    """
    x = ca.SX.sym("x")
    a = ca.fabs(x)
    s, z = a * a, ca.sqrt(-ca.log((1 - a) / 2))
    centre = a * (((-0.140543331 * s + 0.914624893) * s - 1.645349621) * s + 0.886226899)
    centre /= (((0.012229801 * s - 0.329097515) * s + 1.442710462) * s - 2.118377725) * s + 1.0
    tail = (((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454) / ((1.637067800 * z + 3.543889200) * z + 1.0)
    y = ca.if_else(a < 0.7, centre, tail)
    for _ in range(3):
        # CasADi has no erfc: in this graph, which never evaluates erfinv, OP_ERFINV stands for it.
        error = ca.if_else(a < 0.5, ca.erf(y) - a, (1 - a) - ca.erfinv(y))
        y = y - error / (2 / np.sqrt(np.pi) * ca.exp(-y * y))
    y = ca.copysign(ca.if_else(a < 1, y, ca.if_else(a == 1, np.inf, np.nan)), x)
    body = _Body()
    names: dict[int, str] = {}
    for k, (code, operands, constant, _) in enumerate(instructions(ca.Function("erfinv", [x], [y]))):
        if code == ca.OP_OUTPUT:
            text = body.function("internal double @dalembert_erfinv(double %x) #1", f"double {names[operands[0]]}")
            return text, body.declarations
        if code == ca.OP_INPUT:
            names[k] = "%x"
        elif code == ca.OP_CONST:
            names[k] = body.number(constant)
        elif code == ca.OP_ERFINV:
            names[k] = body.call("erfc", [names[operands[0]]])
        else:
            names[k] = body.operation(code, [names[i] for i in operands])
    raise AssertionError("a CasADi function without output")


@one_at_a_time
def emit_module(kernels: Sequence[Kernel], work: int, lanes: int = 1) -> tuple[str, int]:
    """LLVM assembly of several kernels that share one work area, and how many slots of it they use."""
    emitted = [emit_kernel(kernel, work, lanes) for kernel in kernels]
    text = "\n\n".join(body for body, _, _ in emitted)
    helper, needs = _erfinv() if "@dalembert_erfinv(" in text else ("", set())
    declarations = sorted(needs.union(*(names for _, names, _ in emitted)))
    attributes = ["attributes #0 = { nounwind willreturn memory(none) }", "attributes #1 = { nounwind }"]
    used = max((used for _, _, used in emitted), default=0)
    return "\n\n".join(filter(None, [*declarations, helper, text, *attributes])), used
