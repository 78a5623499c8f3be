"""Data of experiments, computed once a process, and ways to spoil them."""

import functools

import numpy as np

from dalembert import experiments


def computed(name):
    """The data of an experiment; figures of the same runs share them."""
    return _computed(experiments.find(name).compute)


@functools.cache
def _computed(compute):
    return compute(False)


def failed(name, data):
    """The checks that data do not pass."""
    return [check.name for check in experiments.find(name).holds(data) if not check.passes]


def scaled(name, factor):
    return lambda data: {name: factor * data[name]}


def plus(name, offset):
    return lambda data: {name: data[name] + offset}


def copied(target, source):
    return lambda data: {target: data[source]}


def exchanged(a, b):
    return lambda data: {a: data[b], b: data[a]}


def cut(names, stop):
    return lambda data: {name: data[name][:stop] for name in names}


def drifting(name, amount, t="t"):
    """A series with a line added that ends at `amount`."""
    return lambda data: {name: data[name] + amount * data[t] / data[t][-1]}


def replaced(name, index, value):
    """One entry, counted through all rows, is another."""

    def change(data):
        changed = np.array(data[name], dtype=float)
        changed.flat[index] = value
        return {name: changed}

    return change


def broken(name, index=-1):
    return replaced(name, index, np.nan)


def of_order(name, order, h="h"):
    """Errors with the same last value and another slope."""
    return lambda data: {name: data[name][-1] * (data[h] / data[h][-1]) ** order}
