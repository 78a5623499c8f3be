"""Passes over the instructions of a graph, one after the other, in machine code: there may be millions of them.

Numba compiles them when they are first called, and keeps them on disk as long as this file does not change: so they are told
CasADi's codes of operations.
"""

from __future__ import annotations

import numpy as np
from numba import config, njit

from dalembert.compiler._jit import code_target

config.CPU_NAME, config.CPU_FEATURES = code_target()  # as for the drivers: what Numba compiles first decides for all

SLOT = 2
"""The shape of a value that is stored; 1 is that of a constant."""


@njit(inline="always")
def mix(code, first, second):
    """61 bits that are hardly ever the same for different triples (the finalizer of SplitMix, Steele et al. 2014)."""
    h = np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)
    for part in (first, second):
        h = h ^ np.uint64(part)
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        h = h ^ (h >> np.uint64(31))
    return np.int64(h >> np.uint64(3))


@njit(cache=True, nogil=True)
def number_values(codes, to, first, second, bits, special, binary, commutative, table, outputs, kept, operands, keys):
    """Number the distinct values; how many there are. Of each, which instruction gives it first, and its operands.

    `special` are the codes of outputs, constants and inputs. `table` is a hash table of numbers, -1 where it is empty, its
    length a power of two; `keys` are what the numbers stand for.
    """
    registers, count, mask = np.zeros(len(codes) + 1, np.int64), 0, len(table) - 1
    OUTPUT, CONST, INPUT = special
    for k in range(len(codes)):
        code = codes[k]
        if code == OUTPUT:
            outputs[second[k]] = registers[first[k]]
            continue
        a, b = np.int64(-1), np.int64(-1)
        if code != CONST and code != INPUT:
            a = registers[first[k]]
            b = registers[second[k]] if binary[code] else b
        low, high = a, b
        if code == CONST:
            low = bits[k]  # -0.0 is not 0.0, and nan is itself
        elif code == INPUT:
            low = np.int64(second[k])
        elif commutative[code] and b < a:
            low, high = b, a
        place = mix(code, low, high) & mask
        while True:
            number = table[place]
            if number < 0:
                number = count
                table[place], kept[count] = count, k
                operands[count, 0], operands[count, 1] = a, b
                keys[count, 0], keys[count, 1], keys[count, 2] = code, low, high
                count += 1
                break
            if keys[number, 0] == code and keys[number, 1] == low and keys[number, 2] == high:
                break
            place = (place + 1) & mask
        registers[to[k]] = number
    return count


@njit(cache=True, nogil=True)
def mark_dependent(operands, marked):
    """Mark all values that depend on marked ones."""
    for k in range(len(operands)):
        for operand in operands[k]:
            marked[k] |= operand >= 0 and marked[operand]


@njit(cache=True, nogil=True)
def spines(code, operands, uses, family, difference):
    """For every sum (or maximum) the operand that continues it, -1 if none does, and how many terms it has so far."""
    length, spine = np.zeros(len(code), np.int64), np.full(len(code), -1)
    for k in range(len(code)):
        if family[code[k]] < 0:
            continue
        longest = 0
        for which in range(1 if code[k] == difference else 2):
            x = operands[k, which]
            if x >= 0 and length[x] > longest and uses[x] == 1 and family[code[x]] == family[code[k]]:
                longest, spine[k] = length[x], x
        length[k] = 1 + max(longest, 1)
    return length, spine


@njit(cache=True, nogil=True)
def heights(operands):
    """How many operations must be done, one after the other, until a value is known."""
    height = np.zeros(len(operands), np.int64)
    for k in range(len(operands)):
        for operand in operands[k]:
            if operand >= 0:
                height[k] = max(height[k], 1 + height[operand])
    return height


@njit(cache=True, nogil=True)
def tree_shapes(code, operands, leaf, inner, root, sum_of, term_start, terms, commutative, largest):
    """The shape and the level of every value, and which operands are exchanged; pieces that get too long end in a `root`."""
    size = len(code)
    count, shape, level, swapped = np.zeros(size, np.int64), leaf.copy(), np.zeros(size, np.int64), np.zeros(size, np.bool_)
    for k in range(size):
        if leaf[k] != 0 or inner[k]:
            continue
        if sum_of[k] >= 0:
            begin, end = term_start[sum_of[k]], term_start[sum_of[k] + 1]
            shape[k] = begin - end
            for j in range(begin, end):
                level[k] = max(level[k], 1 + level[terms[j]])
            continue
        a, b = operands[k, 0], operands[k, 1]
        first, second = SLOT if root[a] else shape[a], np.int64(0)
        number, height = 1 + (0 if root[a] else count[a]), level[a]
        if b >= 0:
            second = SLOT if root[b] else shape[b]
            number, height = number + (0 if root[b] else count[b]), max(height, level[b])
            if commutative[code[k]] and second > first:
                first, second, swapped[k] = second, first, True
        count[k] = number
        root[k] = root[k] or number > largest
        shape[k] = 3 + mix(code[k], first, second)
        level[k] = height + root[k]
    return shape, level, swapped


@njit(cache=True, nogil=True)
def fill(starts, columns):
    """Compressed rows of L and U together, given those of a matrix with pivots on its diagonal: starts, diagonals, columns.

    The columns of a row are a list in their order, into which the rest of each earlier row that it needs is merged.
    """
    size, count = len(starts) - 1, 0
    filled_starts, diagonal = np.zeros(size + 1, np.int64), np.zeros(size, np.int64)
    filled, following = np.empty(4 * len(columns) + size, np.int64), np.full(size + 1, size)
    for i in range(size):
        last = size  # also where the list begins
        for k in range(starts[i], starts[i + 1]):
            following[last] = columns[k]
            last = columns[k]
        following[last] = size
        j = following[size]
        while j < i:
            before = j
            for k in range(diagonal[j] + 1, filled_starts[j + 1]):
                while following[before] < filled[k]:
                    before = following[before]
                if following[before] != filled[k]:
                    following[filled[k]] = following[before]
                    following[before] = filled[k]
                before = filled[k]
            j = following[j]
        if len(filled) < count + size:
            filled = np.concatenate((filled, np.empty(len(filled) + size, np.int64)))
        j = following[size]
        while j < size:
            if j == i:
                diagonal[i] = count
            filled[count] = j
            count += 1
            j = following[j]
        filled_starts[i + 1] = count
    return filled_starts, diagonal, filled[:count].copy()


@njit(cache=True, nogil=True)
def targets(starts, diagonal, columns):
    """Where each product of the elimination is subtracted, in the order in which they are computed."""
    size, count = len(diagonal), 0
    for i in range(size):
        for k in range(starts[i], diagonal[i]):
            count += starts[columns[k] + 1] - diagonal[columns[k]] - 1
    found, place, count = np.empty(count, np.int64), np.zeros(size, np.int64), 0
    for i in range(size):
        for k in range(starts[i], starts[i + 1]):
            place[columns[k]] = k
        for k in range(starts[i], diagonal[i]):
            j = columns[k]
            for m in range(diagonal[j] + 1, starts[j + 1]):
                found[count] = place[columns[m]]
                count += 1
    return found
