"""Small experiments that hold, do not hold, fail, kill their process or wait; each start is noted in the file $TOY_LOG."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from dalembert.experiments import Check, Experiment

HOSTILE = '<script>document.title = "taken over"</script>'


def note(name, full):
    if "TOY_LOG" in os.environ:
        with open(os.environ["TOY_LOG"], "a") as log:
            log.write(f"{name}{' full' if full else ''} {os.getpid()}\n")


def draw(data):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 2))
    figure.subplots().plot(data["x"])
    return figure


def toy(name, action=lambda: None, value=2.0, checks=1, **more):
    def compute(full):
        note(name, full)
        action()
        return {"x": np.array([0.0, value])}

    def holds(data):
        return tuple(Check(f"{HOSTILE} x_{k}", float(data["x"][1]), "<=", 3.0) for k in range(checks))

    words = {"document": f"Nobody (1900) {HOSTILE}", "item": f"table 1 {HOSTILE}", "claim": f"Two is at most three {HOSTILE}."}
    return Experiment(name=f"toy.{name}", compute=compute, draw=draw, holds=holds, **(words | more))


def fail():
    print("a line on standard output, which is no reply")
    raise ValueError(f"no luck {HOSTILE}")


def wait():
    while Path(os.environ["TOY_WAIT"]).exists():
        time.sleep(0.05)


good = toy("good", remark="A remark with `code` " + "and_one_very_long_word" * 10 + HOSTILE)
many = toy("many", checks=30, contradicts=f"Nobody says three, it is two {HOSTILE}")
false = toy("false", value=4.0)
nan = toy("nan", value=float("nan"))
failing = toy("failing", fail)
dying = toy("dying", lambda: os.kill(os.getpid(), signal.SIGKILL))
last = toy("last")
