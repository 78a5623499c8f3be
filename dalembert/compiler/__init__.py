"""Symbolic graphs to machine code: one block of memory, straight-line kernels, elimination with a fixed pivot order."""

from dalembert.compiler._elimination import SingularMatrix
from dalembert.compiler._guess import first_guess, first_guesses
from dalembert.compiler._observe import Observer, observer
from dalembert.compiler._program import Program, build_program, build_programs, reduced_step
from dalembert.compiler._reduction import ReducedStep
from dalembert.compiler._step_function import step_function

__all__ = [
    "Observer",
    "Program",
    "ReducedStep",
    "SingularMatrix",
    "build_program",
    "build_programs",
    "first_guess",
    "first_guesses",
    "observer",
    "reduced_step",
    "step_function",
]
