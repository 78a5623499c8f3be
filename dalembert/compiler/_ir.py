"""CasADi graphs as LLVM assembly.

A kernel is a straight-line function `void kernel(double *memory)`: it loads its inputs from fixed slots of one memory block,
computes, and stores its outputs into fixed slots. All loads come before all stores, so that outputs may overwrite inputs.
Long kernels are cut into pieces that pass values through a work area of the same memory block, because the time that LLVM
takes grows faster than linearly with the length of a basic block.

With `lanes` > 1 a kernel does the same for so many trajectories at once: every slot of memory holds one number a lane, and
every value is a vector. Functions without a vector instruction are called lane by lane.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import casadi as ca
import numpy as np

from dalembert.compiler._body import SCALAR_LOOP, VECTOR_LOOP, Body
from dalembert.compiler._rolled import emit_rolled
from dalembert.compiler._tape import read_tape
from dalembert.symbolic._lock import one_at_a_time

STRAIGHT_LINE = 5_000
"""Instructions up to which kernels have no loops."""

PIECE = 1500
"""Operations a piece: long enough for LLVM to find common subexpressions, short enough to compile in linear time."""

@dataclass(frozen=True)
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


Instruction = tuple[int, tuple[int, ...], float, int]
"""Operation, operands as indices of earlier instructions, constant, position in or out."""

_COMMUTATIVE = (ca.OP_ADD, ca.OP_MUL)


def instructions(function: ca.Function) -> list[Instruction]:
    """A CasADi function as a list of instructions, in which no value is computed twice.

    CasADi's own elimination of common subexpressions (`cse`, 3.8.2) is not used anywhere here: where merged operands let an
    expression simplify, as (x / a) * a does, it has replaced later expressions by values of others.
    """
    registers: dict[int, int] = {}
    numbers: dict[tuple, int] = {}
    result: list[Instruction] = []
    for k in range(function.n_instructions()):
        code = function.instruction_id(k)
        if code == ca.OP_OUTPUT:
            result.append((code, (registers[function.instruction_input(k)[0]],), 0.0, function.instruction_output(k)[1]))
            continue
        if code == ca.OP_CONST:
            value = function.instruction_constant(k)
            entry: Instruction = (code, (), value, -1)
            key: tuple = (code, np.float64(value).tobytes())  # -0.0 is not 0.0, and nan is itself
        elif code == ca.OP_INPUT:
            entry = key = (code, (), 0.0, function.instruction_input(k)[1])
        else:
            operands = tuple(registers[i] for i in function.instruction_input(k))
            entry = (code, operands, 0.0, -1)
            key = (code, *(sorted(operands) if code in _COMMUTATIVE else operands))
        if key not in numbers:
            numbers[key] = len(result)
            result.append(entry)
        registers[function.instruction_output(k)[0]] = numbers[key]
    return result


def operation_count(function: ca.Function) -> int:
    """How many arithmetic operations a CasADi function takes."""
    ignored = (ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT)
    return sum(code not in ignored for code, *_ in instructions(function))


def emit_kernel(kernel: Kernel, work: int, lanes: int = 1) -> tuple[str, set[str], int]:
    """LLVM assembly of a kernel whose pieces pass values through memory from slot `work` on, what it calls, the slots used."""
    function, load_slots, store_slots = kernel.function()
    if function.n_instructions() > STRAIGHT_LINE:
        rolled = emit_rolled(kernel.name, read_tape(function), load_slots, store_slots, work, lanes)
        if rolled is not None:
            return rolled
    code = instructions(function)
    computed = [k for k, entry in enumerate(code) if entry[0] not in (ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT)]
    piece_of = {k: position // PIECE for position, k in enumerate(computed)}
    n_pieces = max(1, -(-len(computed) // PIECE))
    outputs = [(entry[1][0], int(store_slots[entry[3]])) for entry in code if entry[0] == ca.OP_OUTPUT]
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
        body = Body(lanes)
        names: dict[int, str] = {}

        def name_of(value: int, body: Body = body, names: dict[int, str] = names) -> str:
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
    body = Body()
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
    text, properties = _number_loops(text)
    return "\n\n".join(filter(None, [*declarations, helper, text, *attributes, *properties])), used


def _number_loops(text: str) -> tuple[str, list[str]]:
    """Give every loop properties of its own: vectors for those whose turns are independent, no unrolling for the others."""
    if VECTOR_LOOP not in text and SCALAR_LOOP not in text:
        return text, []
    properties = [
        "!0 = distinct !{}", '!1 = !{!"llvm.loop.parallel_accesses", !0}', '!2 = !{!"llvm.loop.vectorize.enable", i1 true}',
        '!3 = !{!"llvm.loop.vectorize.enable", i1 false}', '!4 = !{!"llvm.loop.unroll.disable"}',
    ]  # fmt: skip

    def number(match: re.Match[str]) -> str:
        mine = f"!{len(properties)}"
        rules = "!1, !2" if match[0] == VECTOR_LOOP else "!3, !4"
        properties.append(f"{mine} = distinct !{{{mine}, {rules}}}")
        return mine

    return re.sub(f"{VECTOR_LOOP}|{SCALAR_LOOP}", number, text), properties
