"""Kernels with loops: one for each run of equal shapes (`_shapes.py`), whose inputs are gathered through tables.

A column of a run's inputs is a constant, a slot, an arithmetic progression of slots or a table of them. Results of a run lie
side by side, so that most columns of later runs are progressions. What belongs to no run stays straight-line code. Outputs
that overwrite inputs are copied to their places at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from dalembert.compiler._body import Body
from dalembert.compiler._shapes import FAMILIES, Pieces, Run, cut, run_of
from dalembert.compiler._tape import Tape

LONG = 3_000
"""Operations up to which code without loops is always preferred: it is faster, and soon compiled."""

SHORTEST = 8
"""Pieces of one shape from which on they become a loop."""

TYPICAL = 40
"""How many pieces of one shape there must be on the average: shorter loops are slower than straight-line code."""

VECTOR = 16
"""Turns of a loop from which on LLVM is asked for vectors."""

WAYS, PARTS = 8, 64
"""How many parts of a sum are added up side by side, and from how many terms on."""

SIDE_BY_SIDE, TERMS = 16, 16
"""Sums of up to so many times as many terms as there are sums are added up together, so many terms at a time."""

LINES = 3_000
"""Lines of a piece of straight-line code."""


@dataclass
class Assembly:
    """The functions and tables of one kernel, in the order of their calls."""

    name: str
    lanes: int
    functions: list[str] = field(default_factory=list)
    tables: dict[bytes, str] = field(default_factory=dict)
    declarations: set[str] = field(default_factory=set)

    def add(self, body: Body) -> None:
        self.functions.append(body.function(f"internal void @{self.name}_{len(self.functions)}(ptr noundef %memory) #1"))
        self.declarations |= body.declarations

    def table(self, values: np.ndarray) -> str:
        """A constant array, named; equal ones are stored once."""
        return self.tables.setdefault(values.tobytes(), f"@{self.name}_table_{len(self.tables)}")

    def text(self) -> str:
        arrays = [
            f'{name} = internal unnamed_addr constant [{len(stored)} x i8] c"{_escaped(stored)}", align 16'
            for stored, name in self.tables.items()
        ]
        calls = "\n".join(f"  call void @{self.name}_{k}(ptr %memory)" for k in range(len(self.functions)))
        main = f"define void @{self.name}(ptr noundef %memory) #1 {{\n{calls}\n  ret void\n}}"
        return "\n\n".join([*arrays, *self.functions, main])


def _escaped(stored: bytes) -> str:
    """Bytes as LLVM reads them fastest."""
    return ESCAPES[np.frombuffer(stored, dtype=np.uint8)].tobytes().decode()


ESCAPES = np.array([f"\\{byte:02X}" for byte in range(256)], dtype="S3")

MANY = 40_000
"""Pieces from which on code without loops takes minutes to compile, however much of it repeats."""


def emit_rolled(
    name: str, tape: Tape, load_slots: np.ndarray, store_slots: np.ndarray, work: int, lanes: int
) -> tuple[str, set[str], int] | None:
    """Assembly of a kernel as loops, what it calls and the slots that it uses; None where too little repeats."""
    pieces = cut(tape)
    groups = _groups(pieces)
    if not _mostly_repeated(pieces, groups):
        return None
    kernel = _Rolled(tape, pieces, Assembly(name, lanes), load_slots, store_slots, work)
    kernel.compute(groups)
    return kernel.assembly.text(), kernel.assembly.declarations, kernel.used - work


def repeats(tape: Tape) -> bool:
    """Whether a graph is long, and consists mostly of shapes that occur many times."""
    if len(tape.computed) <= LONG:
        return False
    pieces = cut(tape)
    return _mostly_repeated(pieces, _groups(pieces))


def _groups(pieces: Pieces) -> list[np.ndarray]:
    """Results of one level and shape, level by level."""
    roots = np.flatnonzero(pieces.root)
    roots = roots[np.lexsort((roots, pieces.shape[roots], pieces.level[roots]))]
    keys = np.stack([pieces.level[roots], pieces.shape[roots]])
    return np.split(roots, np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1)


def _mostly_repeated(pieces: Pieces, groups: list[np.ndarray]) -> bool:
    """Whether a model's structure repeats, so that more pieces do not mean more shapes; those of a random graph do."""
    count, in_loops = np.count_nonzero(pieces.root), sum(len(group) for group in groups if len(group) >= SHORTEST)
    return bool(in_loops > 0.8 * count and count > max(TYPICAL * len(groups), min(len(groups) ** 2 / 4, MANY)))


class _Rolled:
    """Slots of all stored values, and the loops and pieces that compute them."""

    def __init__(
        self, tape: Tape, pieces: Pieces, assembly: Assembly, load_slots: np.ndarray, store_slots: np.ndarray, work: int
    ) -> None:
        self.tape, self.pieces, self.assembly, self.used = tape, pieces, assembly, work
        self.slot = np.full(len(tape.code), -1, dtype=np.int64)
        inputs = tape.inputs >= 0
        self.slot[inputs] = load_slots[tape.inputs[inputs]]
        self.results, self.places = tape.outputs, store_slots
        # An output may be stored at once unless its place is still read, or holds a value that is read.
        free = pieces.root[self.results] & ~np.isin(store_slots, load_slots)
        self.direct = np.zeros(len(store_slots), dtype=bool)
        first = np.unique(self.results[free], return_index=True)[1]
        self.direct[np.flatnonzero(free)[first]] = True
        self.slot[self.results[self.direct]] = store_slots[self.direct]

    def compute(self, groups: list[np.ndarray]) -> None:
        rest: list[int] = []
        sums: list[int] = []
        level = 0
        for group in groups:
            if self.pieces.level[group[0]] > level:
                self._sums(np.array(sums, dtype=np.int64))
                self._straight(rest)
                rest, sums, level = [], [], int(self.pieces.level[group[0]])
            if self.pieces.shape[group[0]] < 0:
                sums += group.tolist()
            elif len(group) >= SHORTEST:
                self._place(group)
                self._loop(run_of(self.tape, self.pieces, group))
            else:
                rest += group.tolist()
        self._sums(np.array(sums, dtype=np.int64))
        self._straight(rest)
        self._copy_outputs()

    def _place(self, values: np.ndarray) -> None:
        new = values[self.slot[values] < 0]
        self.slot[new] = self.used + np.arange(len(new))
        self.used += len(new)

    # -- loops ----------------------------------------------------------------------------------------------------------

    def _loop(self, run: Run) -> None:
        body, count = Body(self.assembly.lanes), len(run.results)
        distinct: dict[bytes, int] = {}
        read = [_Column(self, body, column, count) for column in run.columns]
        for column in read:
            column.before()
        body.begin_loop(vector=count >= VECTOR and self.assembly.lanes == 1)
        names: list[str] = []
        for column, values in zip(read, run.columns, strict=True):
            first = distinct.setdefault(values.tobytes(), len(names))
            names.append(names[first] if first < len(names) else column.value())
        for code, arguments in run.operations:
            names.append(body.operation(code, [names[k] for k in arguments]))
        target = _Column(self, body, run.results, count)
        target.before()
        target.store(names[-1])
        body.end_loop(count)
        self.assembly.add(body)

    def _sums(self, sums: np.ndarray) -> None:
        """Long sums and maxima of one level: many at once, or one after the other."""
        self._place(sums)
        codes = np.array([FAMILIES[int(code)] for code in self.tape.code[sums]])
        for code in np.unique(codes).tolist():
            own = sums[codes == code]
            terms = [np.array(self.pieces.terms[value]) for value in own.tolist()]
            self._store_constants(np.unique(np.concatenate(terms)[:, 0].astype(np.int64)))
            if len(own) >= SHORTEST and max(map(len, terms)) <= SIDE_BY_SIDE * len(own):
                self._side_by_side(code, own, terms)
            else:
                for value, each in zip(own.tolist(), terms, strict=True):
                    self._one_sum(code, value, each[:, 0].astype(np.int64), each[:, 1])

    def _store_constants(self, numbers: np.ndarray) -> None:
        """Constants among the terms of sums lie in memory, too."""
        constants = numbers[self.slot[numbers] < 0]
        if not len(constants):
            return
        body = Body(self.assembly.lanes)
        self._place(constants)
        for constant in constants.tolist():
            body.store(body.number(self.tape.constants[constant]), int(self.slot[constant]))
        self.assembly.add(body)

    def _side_by_side(self, code: int, sums: np.ndarray, terms: list[np.ndarray]) -> None:
        """Loops over sums, the longest first, each of which adds some more terms to those that are not yet complete."""
        lengths = np.array([len(own) for own in terms])
        order = np.argsort(-lengths, kind="stable")
        slots, signs = np.full((len(sums), lengths.max()), self._zero(), dtype=np.int64), np.ones((len(sums), lengths.max()))
        for row, own in enumerate(terms[k] for k in order):
            slots[row, : len(own)], signs[row, : len(own)] = self.slot[own[:, 0].astype(np.int64)], own[:, 1]
            if code != ca.OP_ADD:
                slots[row, len(own) :] = slots[row, 0]  # a maximum does not mind
        for first in range(0, slots.shape[1], TERMS):
            count = int(np.count_nonzero(lengths > first))
            self._some_terms(
                code, sums[order[:count]], slots[:count, first : first + TERMS], signs[:count, first : first + TERMS], first > 0
            )

    def _some_terms(self, code: int, sums: np.ndarray, slots: np.ndarray, signs: np.ndarray, begun: bool) -> None:
        """One loop that adds a few terms to each sum."""
        body, count = Body(self.assembly.lanes), len(sums)
        values = [_Column(self, body, np.ascontiguousarray(column), count, slots=True) for column in slots.T]
        factors = [_Column(self, body, np.ascontiguousarray(column), count) for column in signs.T]
        target = _Column(self, body, sums, count)
        for column in (*values, *factors):
            column.before()
        body.begin_loop(vector=count >= VECTOR and self.assembly.lanes == 1)
        total = target.value() if begun else ""
        for k, (value, factor) in enumerate(zip(values, factors, strict=True)):
            term = value.value()
            if np.any(signs[:, k] < 0):
                term = body.operation(ca.OP_MUL, [factor.value(), term])
            total = body.operation(code, [total, term]) if total else term
        target.store(total)
        body.end_loop(count)
        self.assembly.add(body)

    def _zero(self) -> int:
        """A slot that holds zero."""
        body, slot = Body(self.assembly.lanes), self.used
        self.used += 1
        body.store(body.number(0.0), slot)
        self.assembly.add(body)
        return slot

    def _one_sum(self, code: int, value: int, numbers: np.ndarray, signs: np.ndarray) -> None:
        """One sum, a loop over its terms; a very long one adds up several parts side by side."""
        body, ways = Body(self.assembly.lanes), WAYS if len(numbers) >= PARTS else 1
        turns = len(numbers) // ways - 1
        partial = self._partial_sums(body, code, numbers[: ways * (turns + 1)], signs, ways)
        rest = zip(numbers[ways * (turns + 1) :].tolist(), signs[ways * (turns + 1) :].tolist(), strict=True)
        partial += [self._signed(body, body.load(int(self.slot[k])), sign) for k, sign in rest]
        while len(partial) > 1:
            pairs = [partial[k : k + 2] for k in range(0, len(partial), 2)]
            partial = [body.operation(code, pair) if len(pair) == 2 else pair[0] for pair in pairs]
        body.store(partial[0], int(self.slot[value]))
        self.assembly.add(body)

    def _partial_sums(self, body: Body, code: int, numbers: np.ndarray, signs: np.ndarray, ways: int) -> list[str]:
        """Sums of every `ways`-th term from each of the first ones on: additions that need not wait for each other."""
        starts = [self._signed(body, body.load(int(self.slot[numbers[k]])), signs[k]) for k in range(ways)]
        turns = len(numbers) // ways - 1
        columns: list[tuple[_Column, _Column | None]] = []
        for k in range(ways):
            values = _Column(self, body, self.slot[numbers[ways + k :: ways]], turns, slots=True)
            factor = _Column(self, body, signs[ways + k : len(numbers) : ways], turns)
            values.before()
            factor.before()
            columns.append((values, factor if np.any(signs[ways + k : len(numbers) : ways] < 0) else None))
        totals = []
        for total, (values, minus) in zip(body.begin_loop(vector=False, starts=starts), columns, strict=True):
            term = values.value()
            if minus is not None:
                term = body.operation(ca.OP_MUL, [minus.value(), term])
            totals.append(body.operation(code, [total, term]))
        return body.end_loop(turns, totals)

    @staticmethod
    def _signed(body: Body, name: str, sign: float) -> str:
        return name if sign > 0 else body.operation(ca.OP_NEG, [name])

    # -- the rest -------------------------------------------------------------------------------------------------------

    def _straight(self, values: list[int]) -> None:
        """Straight-line code for pieces of one level."""
        body = Body(self.assembly.lanes)
        names: dict[int, str] = {}
        for value in values:
            if len(body.lines) > LINES:
                self.assembly.add(body)
                body, names = Body(self.assembly.lanes), {}
            self._place(np.array([value]))
            body.store(self._tree(value, body, names, True), int(self.slot[value]))
        if body.lines:
            self.assembly.add(body)

    def _tree(self, value: int, body: Body, names: dict[int, str], top: bool) -> str:
        if value in names:
            return names[value]
        code = int(self.tape.code[value])
        if code == ca.OP_CONST:
            name = body.number(self.tape.constants[value])
        elif not top and (code == ca.OP_INPUT or self.pieces.root[value]):
            name = body.load(int(self.slot[value]))
        else:
            operands = [k for k in self.tape.operands[value].tolist() if k >= 0]
            name = body.operation(code, [self._tree(k, body, names, False) for k in operands])
        if not top:
            names[value] = name
        return name

    def _copy_outputs(self) -> None:
        """Put outputs that had to wait, or that are inputs, constants or the same as others, where they belong."""
        waiting = np.flatnonzero(~self.direct)
        if not len(waiting):
            return
        values, places = self.results[waiting], self.places[waiting]
        constant = self.tape.code[values] == ca.OP_CONST
        unsafe = ~constant & np.isin(self.slot[values], places) & (self.slot[values] != places)
        kept = np.full(len(waiting), -1, dtype=np.int64)
        kept[unsafe] = self.used + np.arange(int(unsafe.sum()))
        self.used += int(unsafe.sum())
        self._copy(values[unsafe], self.slot[values[unsafe]], kept[unsafe])
        self._copy(values, np.where(unsafe, kept, self.slot[values]), places)

    def _copy(self, values: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> None:
        """Constants in one loop, what is stored in another."""
        constant = self.tape.code[values] == ca.OP_CONST
        for some, slots in ((np.flatnonzero(constant), False), (np.flatnonzero(~constant), True)):
            if not len(some):
                continue
            body, count = Body(self.assembly.lanes), len(some)
            read = _Column(self, body, sources[some] if slots else values[some], count, slots=slots)
            write = _Column(self, body, targets[some], count, slots=True)
            read.before()
            body.begin_loop(vector=self.assembly.lanes == 1)
            write.store(read.value())
            body.end_loop(count)
            self.assembly.add(body)


class _Column:
    """One input or output of a loop: where its values lie."""

    def __init__(self, kernel: _Rolled, body: Body, values: np.ndarray, count: int, slots: bool = False) -> None:
        self.body, self.assembly, self.count, self.fixed = body, kernel.assembly, count, ""
        self.numbers: np.ndarray | None = None
        if values.dtype.kind == "f":
            self.numbers = values
        elif slots:
            self.slots = values
        elif kernel.tape.code[values[0]] == ca.OP_CONST:
            self.numbers = kernel.tape.constants[values]
        else:
            self.slots = kernel.slot[values]

    def before(self) -> None:
        """What is the same in all turns is read before the loop."""
        if self.numbers is not None:
            if np.all(self.numbers.view(np.int64) == self.numbers.view(np.int64)[0]):
                self.fixed = self.body.number(self.numbers[0])
        elif np.all(self.slots == self.slots[0]):
            self.fixed = self.body.load(int(self.slots[0]))

    def value(self) -> str:
        if self.fixed:
            return self.fixed
        if self.numbers is not None:
            return self.body.load_constant(self.assembly.table(self.numbers), self.count)
        return self.body.load_at(self._address())

    def store(self, name: str) -> None:
        self.body.store_at(name, self._address())

    def _address(self) -> str:
        differences = np.diff(self.slots)
        if len(differences) and np.all(differences == differences[0]):
            return self.body.progression(int(self.slots[0]), int(differences[0]))
        return self.body.entry(self.assembly.table(self.slots.astype(np.int32)), self.count)
