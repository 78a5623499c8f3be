"""Symbolic graphs to machine code: one block of memory, straight-line kernels, elimination with a fixed pivot order."""

from dalembert.compiler._elimination import SingularMatrix
from dalembert.compiler._guess import first_guess, first_guesses
from dalembert.compiler._observe import Observer, flow, flow_observer, observer
from dalembert.compiler._orders import build_program, build_programs, order_errors
from dalembert.compiler._program import Program, reduced_step
from dalembert.compiler._reduction import ReducedStep
from dalembert.compiler._step_function import step_function
from dalembert.compiler._watch import Watch, build_watch, reductions

__all__ = [
    "Observer",
    "Program",
    "ReducedStep",
    "SingularMatrix",
    "Watch",
    "build_program",
    "build_programs",
    "build_watch",
    "first_guess",
    "first_guesses",
    "flow",
    "flow_observer",
    "observer",
    "order_errors",
    "reduced_step",
    "reductions",
    "step_function",
]
