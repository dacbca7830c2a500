"""The measurement of what an iteration of DSPDC costs, on small sizes."""

import pytest

from benchmarks.solvers import slopes


@pytest.mark.parametrize("form", ["factors", "A"])
def test_an_iteration_takes_time(form):
    assert 0 < slopes.iteration_seconds(form, n=60, p=16, d=8, m=2, q=4) < 1


def test_the_gap_falls_faster_than_theorem_2_says():
    m, q, true, theorem, slope, last, thumb, *_ = slopes.gap_slopes(20, 5, n=60, p=10)
    assert (m, q) == ("20", "5")
    assert float(true) > 0
    assert float(thumb) > 0
    assert float(slope) <= float(theorem) < 0
    assert float(last) <= 1e-12
