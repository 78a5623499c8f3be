"""Derivatives of runs: sensitivities, gradients by the adjoint, identification of parameters, optimal control."""
