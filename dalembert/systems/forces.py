"""Forces that depend on the forces of constraints, to be used in the `r` of a `da.ODAE`: dry friction.

r=lambda y, z, lam, mu: normal(y) * lam[0] + da.forces.friction(normal(y) * lam[0], z, mu)
domain=lambda z, z0: [da.forces.no_reversal(z, z0)]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert._calls import check_calls as _check_calls

__all__ = ["friction", "no_reversal"]


def friction(normal: Any, velocity: Any, c_f: Any, r_f: Any = 1.0) -> Any:
    """Dry friction opposite to a sliding velocity, as large as a power of the normal force: Coulomb's law for r_f = 1.

        F_f = -c_f |F_N|^r_f v / |v|

    `normal` is the normal force F_N as a vector, or its signed size; `velocity` is that of one body relative to the other.
    L. O. Jay and B. Simeon, (4.2), after V. L. Popov, Contact Mechanics and Friction (2010), section 10.5, where c_f = 0.1 and
    r_f = 0.85 describe steel on teflon. All arguments may be symbols of a model.

    The force is not defined at rest: put `no_reversal` into the model's `domain`. It is not smooth where F_N = 0: there the
    derivative of |F_N| jumps, however |F_N| is written (sqrt(lam^2) is no smoother), that of |F_N|^r_f is infinite if r_f < 1,
    and that of the length of a vector is 0/0. So give the guess `lam0=` of the multipliers, not zero, and keep the force from
    vanishing along the motion, by `domain` if need be. Where F_N is one multiplier times a unit vector, give the multiplier
    itself as `normal`: with r_f = 1, any guess will do then.

    Example:
        >>> import numpy as np, dalembert as da
        >>> da.forces.friction(np.array([0.0, 2.0]), np.array([3.0, 4.0]), 0.5)
        array([-0.6, -0.8])
        >>> round(float(da.forces.friction(-32.0, np.array([0.1]), 0.5, r_f=0.8)[0]), 12)
        -8.0

    """
    normal, velocity = np.asanyarray(normal), np.asanyarray(velocity)
    return -c_f * _size(normal) ** r_f * velocity / _size(velocity)


def no_reversal(velocity: Any, velocity_before: Any) -> Any:
    """v . v_before, positive as long as a sliding velocity does not turn round within a step: for `domain` of a `da.ODAE`.

    `velocity_before` is the velocity at the beginning of the step, which `domain` computes from y0 and z0. Dry friction stops a
    body rather than turning it round; what happens then, rest or sliding back, is not in the model.

    Example:
        >>> import numpy as np, dalembert as da
        >>> block = da.ODAE(                                        # slides on a plane, decelerated by mu g, until it stops
        ...     v=lambda z: z, f=lambda: [0.0, -9.81], g=lambda y: [y[1]], dim_y=2, dim_z=2,
        ...     r=lambda z, lam, mu: np.array([0.0, 1.0]) * lam[0] + da.forces.friction(lam[0], z, mu),
        ...     domain=lambda z, z0, lam: [da.forces.no_reversal(z, z0), lam[0]], params={"mu": 0.5})
        >>> run = da.simulate(block, da.SymplecticEuler(), y0=[0, 0], z0=[5, 0], h=0.01, steps=200, on_failure="return")
        >>> print(run.message)  # doctest: +ELLIPSIS
        step 102 from t = 1.01 failed: the motion leaves the model's domain before t = 1.02: ...

    """
    return np.asanyarray(velocity) @ np.asanyarray(velocity_before)


def _size(x: Any) -> Any:
    return np.abs(x) if np.ndim(x) == 0 else np.abs(x[0]) if len(x) == 1 else np.sqrt(x @ x)


_check_calls(globals())
