"""Random feature expansions f(x) = scale . sum_k phi_k(x) . alpha_k: coefficients stored, frequencies drawn again."""
