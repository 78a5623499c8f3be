"""Data that the experiments of Pekarek & Murphey (2014) must fail on."""

from __future__ import annotations

import numpy as np

WRONG = {
    "pekarek2014.figure2": {
        "SVC is not what its discrete Lagrangian says": lambda data: {"magnetic_legendre": np.array([1e-11])},
        "a wrong generating function of SVC": lambda data: {"cart_pendulum_svc": data["cart_pendulum_crossed"]},
        "a wrong generating function of SVA": lambda data: {"double_pendulum_sva": np.array([1e-10])},
        "one method implemented twice": lambda data: {"cart_pendulum_crossed": data["cart_pendulum_svc"]},
        "different on the separable system": lambda data: {"separable_distance": data["magnetic_distance"]},
        "a distance of first order": lambda data: {"magnetic_distance": data["magnetic_h"] * 1e-3},
        "not a number": lambda data: {"double_pendulum_crossed": np.array([np.nan])},
    },
    "pekarek2014.truncations": {
        "a wrong last term": lambda data: {"SVC_eta_4": data["SVC_eta_3"]},
        "H in place of the even expansion": lambda data: {"SVA_even_4": data["SVA_H"]},
        "an order too many": lambda data: {"SE1_eta_2": data["SE1_eta_3"]},
        "the even expansion a hundred times larger": lambda data: {"SVC_even_4": 100 * data["SVC_even_4"]},
        "not a number": lambda data: {"SVA_eta_5": np.full_like(data["SVA_eta_5"], np.nan)},
    },
    "pekarek2014.figure3": {
        "the energy of the paper": lambda data: {"SVA_H": data["SVA_H"] + 4.0},
        "H in place of the modified Hamiltonian": lambda data: {"SVC_modified": data["SVC_H"]},
        "a discrete energy that is conserved": lambda data: {"SVA_discrete": data["SVA_modified"][1:]},
        "a drift of three micro-joule a second": lambda data: {"SVC_even": data["SVC_even"] - 3e-6 * data["t"]},
        "not a number": lambda data: {"SVC_even": np.where(data["t"] > 0.7, np.nan, data["SVC_even"])},
    },
}
