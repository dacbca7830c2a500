"""Columns of data frames by their names, and rows that no solver but one takes, refused by a sentence."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from streamkernel.window import DSPDC, S3GD, SVRG, Exact, Factorized

rng = np.random.default_rng(1)
ROWS = rng.normal(size=(40, 3)) * [3.0, 1.0, 0.3]
NAMES = ["a", "b", "c"]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X),
    "polars": lambda X: pl.DataFrame(X),
    "pyarrow": lambda X: pa.table(X),
}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


def columns(*names):
    return {name: ROWS[:, NAMES.index(name)] for name in names}


@frames
def test_columns_are_found_by_their_names(frame):
    solver = Exact(l2=0.01).fit(frame(columns(*NAMES)), ROWS[:, 0])
    expected = solver.predict(ROWS)
    assert (solver.predict(frame(columns("c", "a", "b"))) == expected).all()
    assert (solver.predict(frame({**columns("b", "a", "c"), "d": ROWS[:, 0]})) == expected).all()
    with pytest.raises(ValueError, match="X lacks the column 'b', which the fitted data had"):
        solver.predict(frame(columns("a", "c")))


def test_names_that_are_attributes_of_a_frame_are_names():
    frame = pd.DataFrame(ROWS, columns=["select", "column_names", "U"])
    solver = Exact(l2=0.01).fit(frame, ROWS[:, 0])
    assert (solver.predict(frame[["U", "select", "column_names"]]) == solver.predict(ROWS)).all()


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("solver", [S3GD(anchors=5), SVRG(), Exact()], ids=lambda s: type(s).__name__)
def test_sparse_rows_are_refused_by_a_sentence(solver, kind):
    with pytest.raises(ValueError, match=r"^X is sparse, which only DSPDC accepts: pass X.toarray\(\)$"):
        solver.clone().fit(kind(ROWS), ROWS[:, 0] > 0)


def test_factors_are_refused_by_a_sentence():
    rows = Factorized(ROWS, np.ones((3, 2)))
    with pytest.raises(ValueError, match="X is a product of two factors, which only DSPDC accepts"):
        Exact().fit(rows, ROWS[:, 0])
    DSPDC(loss="squared", max_passes=1, seed=1).fit(rows, ROWS[:, 0])


def test_a_refusal_is_one_line_and_shows_numbers_as_they_are():
    with pytest.raises(ValueError, match=r"^y has only the label 1\.0: "):
        Exact(loss="log").fit(ROWS, np.ones(40))
    with pytest.raises(ValueError, match=r"^X must be numbers, got  ?a b") as caught:
        Exact().fit(pd.DataFrame({"a": ["x"], "b": ["y"]}), [1.0])
    assert "\n" not in str(caught.value)
