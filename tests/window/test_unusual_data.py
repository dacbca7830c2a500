"""What every linear solver does with labels, arrays and sizes that are unusual."""

import warnings

import numpy as np
import pytest

from streamkernel.window import DSPDC, S3GD, SVRG, Exact

X = np.random.default_rng(1).normal(size=(30, 3))
LABELS = X[:, 0] > 0
SOLVERS = [DSPDC(loss="log", seed=1), S3GD(anchors=5, seed=1), SVRG(seed=1), Exact(loss="log")]
solvers = pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)


@solvers
@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.where(LABELS, "a", None), "cannot be sorted"),
        (np.where(LABELS, "a", np.array(1, object)), "cannot be sorted"),
        (np.where(LABELS, 1.0, np.nan), "not finite"),
        (np.where(LABELS, 1.0, np.nan).astype(object), "not finite"),
        (np.where(LABELS, np.datetime64("2026-01-01"), np.datetime64("NaT")), "not finite"),
    ],
    ids=["none", "mixed", "nan", "nan object", "no date"],
)
def test_labels_that_are_none_are_refused(solver, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        solver.clone().fit(X, labels)


def test_numbers_of_any_size_give_finite_coefficients_or_a_sentence(subtests):
    for solver in [*SOLVERS, DSPDC(l2=5e-324, seed=1)]:
        for size in [1e-300, 1.0, 1e150, 1e160, 1e307]:
            for of in ["X", "y", "coef_init"]:
                with subtests.test(solver=solver, size=size, of=of):
                    arguments = {"loss": "squared" if of == "y" else "log"}
                    rows, targets, start = X, (X[:, 0] if of == "y" else LABELS), np.zeros(3)
                    if of == "X":
                        rows = rows * size
                    elif of == "y":
                        targets = targets * size
                    else:
                        start += size
                    fitted = solver.clone(arguments)
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        try:
                            fitted.fit(rows, targets, coef_init=start)
                        except ValueError:
                            assert not hasattr(fitted, "coef_")
                            continue
                    assert np.isfinite(fitted.coef_).all()
                    assert np.isfinite(fitted.history_.objective).all()
