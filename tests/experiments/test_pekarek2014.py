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
    "pekarek2014.figure1": {
        "another energy": lambda data: {"CVA_energy": data["CVA_energy"] + 1.0},
        "a wall that is not there": lambda data: {"CVA_jump": np.full(3, np.ptp(data["smooth_energy"]))},
        "no impact": lambda data: {"MCVA_impacts": np.array([])},
        "smooth motion that drifts": lambda data: {"smooth_energy": data["smooth_energy"] + 0.5 * data["t"]},
        "a jump that does not fall with h": lambda data: {"CVA_jump": np.full(3, data["CVA_jump"][0])},
        "MCVA that is CVA": lambda data: {"MCVA_jump": data["CVA_jump"]},
        "not a number": lambda data: {"MCVA_jump": np.full(3, np.nan)},
    },
    "pekarek2014.collision_tolerance": {
        "a third-order method": lambda data: {"error": data["h"] ** 3},
        "times better than stated": lambda data: {"times_2": data["times_3"]},
        "times worse than stated": lambda data: {"times_4": data["times_3"]},
        "a tolerance without effect": lambda data: {"times_3": 1e-4 * data["times_3"]},
        "not a number": lambda data: {"times_1": np.full(4, np.nan)},
    },
    "pekarek2014.figure3": {
        "the energy of the paper": lambda data: {"MCVAA_H": data["MCVAA_H"] + 4.0},
        "H in place of the modified Hamiltonian": lambda data: {"MCVAC_modified": data["MCVAC_H"]},
        "a discrete energy that is conserved": lambda data: {"MCVAA_discrete": data["MCVAA_modified"][1:]},
        "an even expansion around eta": lambda data: {"MCVA_even_modified": data["MCVAC_modified"]},
        "an impact too few": lambda data: {"MCVAC_impacts": data["MCVAC_impacts"][1:]},
        "a jump of H~ at the second impact": lambda data: {"MCVAA_modified": data["MCVAA_modified"] + 1e-3 * (data["t"] > 2.2)},
        "not a number": lambda data: {"MCVAC_modified": np.where(data["t"] > 4.95, np.nan, data["MCVAC_modified"])},
        "a discrete energy of nothing": lambda data: {"MCVAC_discrete": np.full_like(data["MCVAC_discrete"], np.nan)},
    },
    "pekarek2014.figure4": {
        "MCVAA not first at one start": lambda data: {"MCVAA_0.01": np.where(data["beta"] > 5.19, 1.0, data["MCVAA_0.01"])},
        "MCVAC as accurate as MCVAA": lambda data: {"MCVAC_0.01": 1.01 * data["MCVAA_0.01"]},
        "SVC in place of SVA": lambda data: {"CVA_SVA_0.032": data["CVA_0.032"]},
        "VCI that is CVA": lambda data: {"VCI_0.032": data["CVA_0.032"]},
        "first order": lambda data: {"MCVAC_0.002": 4 * data["MCVAC_0.002"]},
        "one start of another order": lambda data: {"CVA_0.002": data["CVA_0.002"] * np.where(data["few"] > 5.19, 1.3, 1.0)},
        "a reference that is not converged": lambda data: {"reference_change": data["reference_change"] + 1e-9},
        "not a number": lambda data: {"VCI_0.01": np.full(51, np.nan)},
    },
    "pekarek2014.jaggedness": {
        "VCI that is smooth": lambda data: {"VCI_0.01": 1.1 * data["CVA_0.01"]},
        "impacts somewhere else": lambda data: {"VCI_0.032_fraction": data["VCI_0.032_fraction"][::-1]},
        "swings that grow with h": lambda data: {"VCI_0.032": data["VCI_0.032"] ** 3 / data["CVA_0.032"] ** 2},
        "not a number": lambda data: {"VCI_0.01": np.full_like(data["VCI_0.01"], np.nan)},
    },
    "pekarek2014.table1": {
        "a VCI that is almost symplectic": lambda data: {"VCI_defect": data["VCI_defect"] + 1e-13},
        "MCVA with partial steps of order 2": lambda data: {"MCVAA_defect": data["CVA_defect"]},
        "CVA with the defect of MCVA": lambda data: {"CVA_defect": data["MCVAC_defect"]},
        "H~ of another h": lambda data: {"MCVAC_change": data["MCVAC_change"] + 1e-9},
        "VCI that keeps H~": lambda data: {"VCI_change": data["MCVA_even_change"]},
        "an explicit SVA": lambda data: {"MCVAA_internal": np.array([0])},
        "not a number": lambda data: {"MCVAA_change": np.full(6, np.nan)},
    },
    "pekarek2014.table2": {
        "cheaper steps of SVA": lambda data: {"MCVAA_0.01_free": 0.5 * data["MCVAC_0.01_free"]},
        "impacts for nothing": lambda data: {"MCVAA_0.032": 1.01 * data["MCVAA_0.032_free"]},
        "cheaper impacts of MCVAC": lambda data: {"MCVAC_0.032": 1.02 * data["MCVAC_0.032_free"]},
        "MCVAC slower where impacts are sparse": lambda data: {"MCVAC_0.01": 2 * data["MCVAC_0.01"]},
        "not a number": lambda data: {"MCVAC_0.01": np.full_like(data["MCVAC_0.01"], np.nan)},
    },
    "pekarek2014.many_impacts": {
        "a mean slope": lambda data: {"MCVAA_0.01": data["MCVAA_0.01"] + 1e-6 * data["impacts_0.01"]},
        "CVA in place of MCVAA": lambda data: {"MCVAA_0.032": data["CVA_0.032"]},
        "a spread of twenty millijoule": lambda data: {"MCVA_even_0.01": 200 * data["MCVA_even_0.01"]},
        "CVA that stays": lambda data: {"CVA_0.032": data["MCVAA_0.032"]},
        "eleven starts": lambda data: {"MCVAA_0.032": data["MCVAA_0.032"][1:]},
        "runs that failed": lambda data: {"MCVAA_0.01": np.where(np.arange(101) > 90, np.nan, data["MCVAA_0.01"])},
    },
}
