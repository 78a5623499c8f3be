"""Hilden (2009): numerical methods for nonholonomic mechanics, a Master's thesis that ends with an open question.

`index_reduction` and `orders` are figures 2.1 to 2.4 and 3.4 and table 2.1. The experiments of chapter 4
follow: the upright rolling disk (`disk`), Chaplygin's sleigh (`sleigh`), the contact oscillator (`oscillator`,
`perturbed_oscillator`). `open_question` answers why the thesis saw the energy of the 2-stage SPARK method drift,
`further_work` does what it left for later: McLachlan and Perlmutter's particles, and mixed constraints.
"""

from dalembert.experiments.hilden2009 import (
    disk,
    further_work,
    index_reduction,
    open_question,
    orders,
    oscillator,
    perturbed_oscillator,
    sleigh,
)
from dalembert.experiments.hilden2009._shared import HILDEN

EXPERIMENTS = HILDEN.of_modules(
    index_reduction, orders, disk, sleigh, oscillator, perturbed_oscillator, open_question, further_work
)
