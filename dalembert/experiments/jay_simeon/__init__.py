"""Jay and Simeon: consistent extensions of the symplectic Euler method for a class of overdetermined DAEs.

(4.1) is an artificial problem with a squared multiplier, (4.2) a mass on a surface with friction; both to t = 1. The 'natural'
extension of symplectic Euler does not converge on them, the 'true' one does: `figures` 4.1 to 4.4. `limits` shows what the
natural method converges to instead (section 3.4), `compositions` what the true method can be composed with and to which order.
"""

from dalembert.experiments.jay_simeon import compositions, figures, limits
from dalembert.experiments.jay_simeon._shared import JAY_SIMEON

EXPERIMENTS = JAY_SIMEON.of_modules(figures, limits, compositions)
