"""CasADi graphs as LLVM assembly.

A kernel is a straight-line function `void kernel(double *memory)`: it loads its inputs from fixed slots of one memory block,
computes, and stores its outputs into fixed slots. No slot is loaded after it was stored to, so that outputs may overwrite
inputs. Long kernels are cut into pieces that pass values through a work area of the same memory block, because the time that
LLVM takes grows faster than linearly with the length of a basic block.

With `lanes` > 1 a kernel does the same for so many trajectories at once: every slot of memory holds one number a lane, and
every value is a vector. Functions without a vector instruction are called lane by lane.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import casadi as ca
import numpy as np

from dalembert.compiler._body import SCALAR_LOOP, VECTOR_LOOP, Body
from dalembert.compiler._jit import LEVEL, LOOP, QUICK, VECTORS, Code, compile_module
from dalembert.compiler._rolled import LONG, emit_rolled
from dalembert.compiler._tape import Tape, read_tape
from dalembert.symbolic._lock import one_at_a_time

WHOLE, PIECE = 1500, 250
"""Operations up to which a kernel stays in one piece, and those of a piece of longer ones.

Values that cross from piece to piece cost too little to be measured. For pieces of 250, LLVM takes half of the time that it
takes for those of 1,500.
"""

WHOLE_OFTEN = 3000
"""The same as `WHOLE` for kernels that are called `often`, which take a fifth less time in one piece.

Much of what elimination computes is needed later on. LLVM takes up to half longer, and for longer ones than this much more.
"""

PIECE_ARGUMENTS = "ptr noundef %memory, ptr noalias noundef readonly %read"
"""Of a piece: twice the same memory. What is only read comes by a way of its own, so that LLVM, which spends a seventh of its
time on it, need not ask whether a store changes it."""

STORES = 400
"""Outputs a piece: the time in which LLVM schedules stores grows with the square of their number."""


Emitted = tuple[str, set[str], int]
"""Assembly of a kernel, what it calls, and how many slots of the work area it uses."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """What a kernel computes: expressions of symbols, with a slot of memory for every scalar on both sides.

    They begin at one, or are given all by an array: as one column, many entries take a tenth of their own time.
    """

    name: str
    inputs: Sequence[tuple[ca.SX, int]]
    outputs: Sequence[tuple[ca.SX, Any]]
    instructions: tuple[Tape, np.ndarray, np.ndarray] | None = None
    """What `tape` gives of a kernel that is a part of another."""
    known: Sequence[tuple[ca.SX, float]] = ()
    """Symbols that stand for numbers: CasADi would build the whole graph anew to replace them."""
    often: bool = False
    """Called in every step and taking much of its time, so that LLVM may take longer for it."""

    def function(self) -> tuple[ca.Function, np.ndarray, np.ndarray]:
        """One CasADi function of one column, that of what is known at its end, with the slots of its inputs and outputs."""
        arguments = ca.vertcat(ca.SX(0, 1), *(symbol for symbol, _ in (*self.inputs, *self.known)))
        results = ca.vertcat(ca.SX(0, 1), *(ca.densify(expression) for expression, _ in self.outputs))
        return ca.Function(self.name, [arguments], [results]), _slots(self.inputs), _slots(self.outputs)

    @lru_cache(maxsize=8)  # noqa: B019 - for as long as a program is made of it
    def tape(self) -> tuple[Tape, np.ndarray, np.ndarray]:
        """The instructions, with the slots of inputs and outputs."""
        if self.instructions is not None:
            return self.instructions
        function, load_slots, store_slots = self.function()
        tape = read_tape(function)
        if self.known:
            tape = tape.given(len(load_slots), np.array([number for _, number in self.known], dtype=float))
        return tape, load_slots, store_slots

    @property
    def operations(self) -> int:
        """How many arithmetic operations the kernel takes."""
        return len(self.tape()[0].computed)


def _slots(side: Sequence[tuple[ca.SX, Any]]) -> np.ndarray:
    """Of every scalar."""
    own = [start + np.arange(x.shape[0]) if np.ndim(start) == 0 else start for x, start in side]
    return np.concatenate([np.zeros(0, int), *own])


def in_two_parts(kernel: Kernel, slot: int, names: tuple[str, str], late: int = 1) -> tuple[Kernel, Kernel, int]:
    """A kernel as two: the second computes all that depends on the `late` last inputs, the first what is known before them.

    Besides, how many slots of memory from `slot` on hold what the first hands on to the second.
    """
    tape, load_slots, store_slots = kernel.tape()
    n_late = sum(symbols.shape[0] for symbols, _ in kernel.inputs[-late:])
    first, second, its = tape.split(np.arange(len(load_slots)) >= len(load_slots) - n_late)
    handed = slot + np.arange(len(first.outputs) - np.count_nonzero(~its))
    early = (first, load_slots, np.concatenate([store_slots[~its], handed]))
    rest = (second, np.concatenate([load_slots, handed]), store_slots[its])
    return Kernel(names[0], (), (), early), Kernel(names[1], (), (), rest, often=kernel.often), len(handed)


def emit_kernel(kernel: Kernel, work: int, lanes: int = 1) -> Emitted:
    """LLVM assembly of a kernel whose pieces pass values through memory from slot `work` on, what it calls, the slots used."""
    tape, load_slots, store_slots = kernel.tape()
    if len(tape.computed) > LONG:
        rolled = emit_rolled(kernel.name, tape, load_slots, store_slots, work, lanes)
        if rolled is not None:
            return rolled
    whole = max(WHOLE, WHOLE_OFTEN) if kernel.often and lanes == 1 else WHOLE
    return _emit_straight(kernel.name, tape, load_slots, store_slots, work, lanes, whole)


def _pieces(computed: list[int], stores: list[int], size: int, whole: int) -> np.ndarray:
    """The piece in which each of so many values is computed, -1 for leaves; `stores` says how many outputs a value is."""
    piece_of = np.full(size, -1)
    piece = operations = stored = 0
    longest = whole if len(computed) <= whole else PIECE
    found = []
    for k in computed:
        if operations == longest or stored >= STORES:
            piece, operations, stored = piece + 1, 0, 0
        found.append(piece)
        operations, stored = operations + 1, stored + stores[k]
    piece_of[computed] = found
    return piece_of


def _emit_straight(
    name: str, tape: Tape, load_slots: np.ndarray, store_slots: np.ndarray, work: int, lanes: int, whole: int
) -> Emitted:
    """A kernel without loops, cut into pieces if it is longer than `whole`."""
    computed, size = tape.computed, len(tape.code)
    piece_of = _pieces(computed.tolist(), np.bincount(tape.outputs, minlength=size).tolist(), size, whole)
    n_pieces = int(np.max(piece_of, initial=0)) + 1
    used, users = tape.operands[computed].ravel(), np.repeat(piece_of[computed], 2)
    last = np.where(piece_of[tape.outputs] < 0, n_pieces - 1, piece_of[tape.outputs])
    # An output that overwrites an input waits until the last piece that loads it: not for the end, where too many would meet.
    values, loading = np.concatenate([used, tape.outputs]), np.concatenate([users, last])
    inputs = np.flatnonzero((values >= 0) & (tape.inputs[values] >= 0))
    loaded = np.full(1 + max(load_slots.max(initial=0), store_slots.max(initial=0)), -1)
    np.maximum.at(loaded, load_slots[tape.inputs[values[inputs]]], loading[inputs])
    last = np.maximum(last, loaded[store_slots])

    handed = np.concatenate([used[(used >= 0) & (piece_of[used] != users)], tape.outputs[piece_of[tape.outputs] != last]])
    handed = handed[piece_of[handed] >= 0]
    crossing = handed[np.sort(np.unique(handed, return_index=True)[1])]  # in the order in which they are met
    slots = np.full(size, -1)
    slots[tape.inputs >= 0] = load_slots[tape.inputs[tape.inputs >= 0]]
    slots[crossing] = work + np.arange(len(crossing))

    lists = _Values(tape.code.tolist(), tape.operands.tolist(), tape.constants.tolist(), slots.tolist())
    ends = np.searchsorted(piece_of[computed], np.arange(n_pieces + 1))
    handed_on, texts, declarations = set(crossing.tolist()), list[str](), set[str]()
    for piece in range(n_pieces):
        members = computed[ends[piece] : ends[piece + 1]].tolist()
        mine = np.flatnonzero(last == piece)
        stores = [(k, lists.slots[k]) for k in members if k in handed_on]
        stores += zip(tape.outputs[mine].tolist(), store_slots[mine].tolist(), strict=True)
        body = _emit_piece(lists, members, stores, lanes, "%memory" if n_pieces == 1 else "%read")
        head = f"@{name}(ptr noundef %memory)" if n_pieces == 1 else f"@{name}_{piece}({PIECE_ARGUMENTS})"
        texts.append(body.function(f"void {head} #1"))
        declarations |= body.declarations
    if n_pieces > 1:
        calls = "\n".join(f"  call void @{name}_{piece}(ptr %memory, ptr %memory)" for piece in range(n_pieces))
        texts.append(f"define void @{name}(ptr noundef %memory) #1 {{\n{calls}\n  ret void\n}}")
    return "\n\n".join(texts), declarations, len(crossing)


@dataclass(frozen=True)
class _Values:
    """The values of a tape as lists, and the slot in which each is found by the pieces that do not compute it."""

    code: list[int]
    operands: list[list[int]]
    constants: list[float]
    slots: list[int]


def _emit_piece(values: _Values, members: list[int], outputs: list[tuple[int, int]], lanes: int, source: str) -> Body:
    """One piece: what it reads is loaded where it is first needed, and stored as soon as known if the piece reads no such slot.

    So few values wait in registers, to which LLVM gives a third of its time. Slots that it does not store to it reads through
    the pointer `source`.
    """
    body, codes, operands, slots = Body(lanes), values.code, values.operands, values.slots
    names, produced, stores = dict[int, str](), set(members), defaultdict[int, list[int]](list)
    for value, slot in outputs:
        stores[value].append(slot)
    constant = int(ca.OP_CONST)
    needed = {k for member in members for k in operands[member]} | set(stores)
    needed.discard(-1)
    read, written = {slots[k] for k in needed - produced if codes[k] != constant}, {slot for _, slot in outputs}
    late = [(value, slot) for value, own in stores.items() for slot in own if slot in read or value not in produced]

    def name(value: int) -> str:
        known = names.get(value)
        if known is None:
            number = codes[value] == constant
            place = "%memory" if slots[value] in written else source
            known = names[value] = body.number(values.constants[value]) if number else body.load(slots[value], place)
        return known

    for k in members:
        a, b = operands[k]
        names[k] = body.operation(codes[k], [name(a)] if b < 0 else [name(a), name(b)])
        if k in stores:
            for slot in stores[k]:
                if slot not in read:
                    body.store(names[k], slot)
    for stored, slot in [(name(value), slot) for value, slot in late]:
        body.store(stored, slot)
    return body


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
    tape, body = read_tape(ca.Function("erfinv", [x], [y])), Body()
    names: list[str] = []
    for code, pair, constant in zip(tape.code.tolist(), tape.operands.tolist(), tape.constants.tolist(), strict=True):
        operands = [names[k] for k in pair if k >= 0]
        if code == ca.OP_INPUT:
            names.append("%x")
        elif code == ca.OP_CONST:
            names.append(body.number(constant))
        else:
            names.append(body.call("erfc", operands) if code == ca.OP_ERFINV else body.operation(code, operands))
    text = body.function("internal double @dalembert_erfinv(double %x) #1", f"double {names[tape.outputs[0]]}")
    return text, body.declarations


def _module(emitted: Collection[Emitted]) -> str:
    """LLVM assembly of several kernels."""
    text = "\n\n".join(body for body, _, _ in emitted)
    helper, needs = _erfinv() if "@dalembert_erfinv(" in text else ("", set())
    declarations = sorted(needs.union(*(names for _, names, _ in emitted)))
    attributes = ["attributes #0 = { nounwind willreturn memory(none) }", "attributes #1 = { nounwind }"]
    text, properties = _number_loops(text)
    return "\n\n".join(filter(None, [*declarations, helper, text, *attributes, *properties]))


@one_at_a_time
def compile_kernels(
    kernels: Sequence[Kernel],
    work: int,
    lanes: int = 1,
    quick: Collection[str] = (),
    quick_from: int = 0,
    rows: Collection[str] = (),
) -> tuple[Code, int]:
    """Machine code of kernels that share one work area, and how many slots of it they use.

    Those with loops are a module of their own, because LLVM's passes, which only they need, go over all of a module; those that
    are compiled `quick`, if they have so many operations, are another one. Those called `rows` repeat operations for
    neighbouring numbers, of which vectors are made.
    """
    modules, used = defaultdict[tuple[bool, int], dict[str, Emitted]](dict), 0
    for kernel in kernels:
        emitted = emit_kernel(kernel, work, lanes)
        level = QUICK if kernel.name in quick and kernel.operations >= quick_from else LEVEL
        level = VECTORS if kernel.name in rows and kernel.operations <= WHOLE_OFTEN else level
        modules[LOOP in emitted[0], level][kernel.name] = emitted
        used = max(used, emitted[2])
    codes = [compile_module(_module(own.values()), tuple(own), level) for (_, level), own in modules.items()]
    addresses = {name: address for code in codes for name, address in code.addresses.items()}
    return codes[0] if len(codes) == 1 else Code(addresses, codes), used


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
