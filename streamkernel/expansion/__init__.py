"""f(x) = scale . sum_k phi_k(x) . alpha_k: coefficients that are stored, frequencies that are regenerated."""
