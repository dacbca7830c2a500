"""Twins of the iterations of DSPDC: the paper's Algorithm 1 on A itself, whatever form the data have."""

import numpy as np

from tests.naive.window_losses import dual_update, elastic_net_step


def _chosen(choices, t):
    order, starts, chosen = choices
    return order[starts[chosen[t]] : starts[chosen[t] + 1]]


def _iterate(kind, records, elastic_net, steps, A, choices, beta, x, xbar):
    """What beta, x and xbar become."""
    y, weights = records
    l2, l1 = elastic_net
    tau, dual_step, dual_ratio, extrapolation = steps
    beta, x, xbar = (np.array(given, float) for given in (beta, x, xbar))
    for t in range(len(choices[0][2])):
        before = beta.copy()
        for i in _chosen(choices[0], t):
            beta[i] = dual_update(kind, before[i], A[i] @ xbar, y[i], dual_step)
        beta_bar = before + dual_ratio * (beta - before)
        old = x.copy()
        for j in _chosen(choices[1], t):
            x[j] = elastic_net_step(old[j] - tau * (A[:, j] @ (weights * beta_bar)) / len(y), tau, l2, l1)
        xbar = old + extrapolation * (x - old)
    return beta, x, xbar


def advance_rows(kind, records, elastic_net, steps, A, choices, dual, primal):
    beta, x, xbar = _iterate(kind, records, elastic_net, steps, A, choices, dual[0], *primal)
    return (beta, A.T @ (records[1] * beta)), (x, xbar)


def advance_sparse(kind, records, elastic_net, steps, A, choices, dual, primal):
    data, indices, indptr = A
    dense = np.zeros((len(indptr) - 1, len(primal[0])))
    for i in range(len(dense)):
        for e in range(indptr[i], indptr[i + 1]):
            dense[i, indices[e]] = data[e]
    return advance_rows(kind, records, elastic_net, steps, dense, choices, dual, primal)


def advance_columns(kind, records, elastic_net, steps, A, choices, dual, primal):
    """`primal` has x, A x and A xbar: xbar is x, as at a start."""
    beta, x, xbar = _iterate(kind, records, elastic_net, steps, A.T, choices, dual[0], primal[0], primal[0])
    return (beta, records[1] * beta), (x, A.T @ x, A.T @ xbar)


def advance_factorized(kind, records, elastic_net, steps, factors, choices, dual, primal):
    """Of columns that are gathered, from where xbar is x; `factors` has V."""
    U, V, _ = factors
    U = U[:, : len(V)]
    beta, x, xbar = _iterate(kind, records, elastic_net, steps, U @ V, choices, dual[0], primal[0][0], primal[0][0])
    return (beta, U.T @ (records[1] * beta)), (x, V @ x, V @ xbar)


def prefetch_record(_i, beta, y, weights):
    """They stay what they are."""
    return beta, y, weights


def prefetch_part(array, _first, _last):
    return array


def prefetch_row(A, _i):
    return A


def _gather(V, x, columns):
    return V[:, columns], x[0, columns]


def _stop(choices, t, x, xbar):
    """Of its `xbar`, what becomes x."""
    columns = range(len(x)) if t < 0 else list(_chosen(choices, t))
    return [x[j] if j in columns else xbar[j] for j in range(len(x))]


def _step_columns(elastic_net, steps, n, columns, ubar, primal):
    tau, _, _, extrapolation = steps
    x, xbar = (np.array(given) for given in primal)
    for j in columns:
        x[j] = elastic_net_step(primal[0][j] - tau / n * ubar[j], tau, *elastic_net)
        xbar[j] = primal[0][j] + extrapolation * (x[j] - primal[0][j])
    return x, xbar
