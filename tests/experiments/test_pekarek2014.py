"""Data that the experiments of Pekarek & Murphey (2014) must fail on."""

import numpy as np
from experiment_data import copied, plus, scaled

WRONG = {
    "pekarek2014.figure2": {
        "SVC is not what its discrete Lagrangian says": lambda data: {"magnetic_legendre": np.array([1e-11])},
        "a wrong generating function of SVC": copied("cart_pendulum_svc", "cart_pendulum_crossed"),
        "a wrong generating function of SVA": lambda data: {"double_pendulum_sva": np.array([1e-10])},
        "one method implemented twice": copied("cart_pendulum_crossed", "cart_pendulum_svc"),
        "different on the separable system": copied("separable_distance", "magnetic_distance"),
        "a distance of first order": lambda data: {"magnetic_distance": data["magnetic_h"] * 1e-3},
        "not a number": lambda data: {"double_pendulum_crossed": np.array([np.nan])},
    },
    "pekarek2014.truncations": {
        "a wrong last term": copied("SVC_eta_4", "SVC_eta_3"),
        "H in place of the even expansion": copied("SVA_even_4", "SVA_H"),
        "an order too many": copied("SE1_eta_2", "SE1_eta_3"),
        "the even expansion a hundred times larger": scaled("SVC_even_4", 100),
        "not a number": lambda data: {"SVA_eta_5": np.full_like(data["SVA_eta_5"], np.nan)},
    },
    "pekarek2014.figure1": {
        "another energy": plus("CVA_energy", 1.0),
        "a wall that is not there": lambda data: {"CVA_jump": np.full(3, np.ptp(data["smooth_energy"]))},
        "no impact": lambda data: {"MCVA_impacts": np.array([])},
        "smooth motion that drifts": lambda data: {"smooth_energy": data["smooth_energy"] + 0.5 * data["t"]},
        "a jump that does not fall with h": lambda data: {"CVA_jump": np.full(3, data["CVA_jump"][0])},
        "MCVA that is CVA": copied("MCVA_jump", "CVA_jump"),
        "not a number": lambda data: {"MCVA_jump": np.full(3, np.nan)},
    },
    "pekarek2014.collision_tolerance": {
        "a third-order method": lambda data: {"error": data["h"] ** 3},
        "times better than stated": copied("times_2", "times_3"),
        "times worse than stated": copied("times_4", "times_3"),
        "a tolerance without effect": scaled("times_3", 1e-4),
        "not a number": lambda data: {"times_1": np.full(4, np.nan)},
    },
    "pekarek2014.figure3": {
        "the energy of the paper": plus("MCVAA_H", 4.0),
        "H in place of the modified Hamiltonian": copied("MCVAC_modified", "MCVAC_H"),
        "a discrete energy that is conserved": lambda data: {"MCVAA_discrete": data["MCVAA_modified"][1:]},
        "an even expansion around eta": copied("MCVA_even_modified", "MCVAC_modified"),
        "an impact too few": lambda data: {"MCVAC_impacts": data["MCVAC_impacts"][1:]},
        "a jump of H~ at the second impact": lambda data: {"MCVAA_modified": data["MCVAA_modified"] + 1e-3 * (data["t"] > 2.2)},
        "not a number": lambda data: {"MCVAC_modified": np.where(data["t"] > 4.95, np.nan, data["MCVAC_modified"])},
        "a discrete energy of nothing": lambda data: {"MCVAC_discrete": np.full_like(data["MCVAC_discrete"], np.nan)},
    },
    "pekarek2014.figure4": {
        "MCVAA not first at one start": lambda data: {"MCVAA_0.01": np.where(data["beta"] > 5.19, 1.0, data["MCVAA_0.01"])},
        "MCVAC as accurate as MCVAA": lambda data: {"MCVAC_0.01": 1.01 * data["MCVAA_0.01"]},
        "SVC in place of SVA": copied("CVA_SVA_0.032", "CVA_0.032"),
        "VCI that is CVA": copied("VCI_0.032", "CVA_0.032"),
        "first order": scaled("MCVAC_0.002", 4),
        "one start of another order": lambda data: {"CVA_0.002": data["CVA_0.002"] * np.where(data["few"] > 5.19, 1.3, 1.0)},
        "a reference that is not converged": plus("reference_change", 1e-9),
        "not a number": lambda data: {"VCI_0.01": np.full(51, np.nan)},
    },
    "pekarek2014.jaggedness": {
        "VCI that is smooth": lambda data: {"VCI_0.01": 1.1 * data["CVA_0.01"]},
        "impacts somewhere else": lambda data: {"VCI_0.032_fraction": data["VCI_0.032_fraction"][::-1]},
        "swings that grow with h": lambda data: {"VCI_0.032": data["VCI_0.032"] ** 3 / data["CVA_0.032"] ** 2},
        "not a number": lambda data: {"VCI_0.01": np.full_like(data["VCI_0.01"], np.nan)},
    },
    "pekarek2014.table1": {
        "a VCI that is almost symplectic": plus("VCI_defect", 1e-13),
        "MCVA with partial steps of order 2": copied("MCVAA_defect", "CVA_defect"),
        "CVA with the defect of MCVA": copied("CVA_defect", "MCVAC_defect"),
        "H~ of another h": plus("MCVAC_change", 1e-9),
        "VCI that keeps H~": copied("VCI_change", "MCVA_even_change"),
        "an explicit SVA": lambda data: {"MCVAA_internal": np.array([0])},
        "not a number": lambda data: {"MCVAA_change": np.full(6, np.nan)},
    },
    "pekarek2014.table2": {
        "cheaper steps of SVA": lambda data: {"MCVAA_0.01_free": 0.5 * data["MCVAC_0.01_free"]},
        "impacts for nothing": lambda data: {"MCVAA_0.032": 1.01 * data["MCVAA_0.032_free"]},
        "cheaper impacts of MCVAC": lambda data: {"MCVAC_0.032": 1.02 * data["MCVAC_0.032_free"]},
        "MCVAC slower where impacts are sparse": scaled("MCVAC_0.01", 2),
        "not a number": lambda data: {"MCVAC_0.01": np.full_like(data["MCVAC_0.01"], np.nan)},
    },
    "pekarek2014.many_impacts": {
        "a mean slope": lambda data: {"MCVAA_0.01": data["MCVAA_0.01"] + 1e-6 * data["impacts_0.01"]},
        "CVA in place of MCVAA": copied("MCVAA_0.032", "CVA_0.032"),
        "a spread of twenty millijoule": scaled("MCVA_even_0.01", 200),
        "CVA that stays": copied("CVA_0.032", "MCVAA_0.032"),
        "eleven starts": lambda data: {"MCVAA_0.032": data["MCVAA_0.032"][1:]},
        "runs that failed": lambda data: {"MCVAA_0.01": np.where(np.arange(101) > 90, np.nan, data["MCVAA_0.01"])},
    },
}
