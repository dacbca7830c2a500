"""Records of the tests of Spark, and models compared."""

import numpy as np
import pandas as pd
import pytest

from streamkernel.spark import learn_batch_of

#: Relative differences of arrays, by dtype; what is tied within that may be decided otherwise.
BOUNDS = {"float64": 1e-6, "float32": 1e-4}


def records(n, seed=0, labels=False):
    """n records of four numbers, one of which is missing at times, and a string."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.loc[rng.random(n) < 0.05, "d"] = np.nan
    frame["word"] = np.where(X[:, 3] > 0, "up", "down")
    frame["y"] = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "middle")) if labels else y
    return frame


def differences(model, other):
    """The largest relative difference of the arrays of two models' states, and the names of what else differs."""
    mine, theirs = model.__getstate__(), other.__getstate__()
    assert mine.keys() == theirs.keys()
    largest, others = 0.0, []
    for name, value in mine.items():
        if not isinstance(value, np.ndarray):
            same = value == theirs[name] or (isinstance(value, float) and np.isclose(value, theirs[name], rtol=1e-9))
            others += [] if same else [name]
        elif value.shape != theirs[name].shape:
            others.append(name)
        elif value.size:
            scale = max(float(np.abs(theirs[name]).max()), 1e-300)
            largest = max(largest, float(np.abs(value - theirs[name]).max()) / scale)
    return largest, others


def learn_both(spark, here, there, target, labels=False, partitions=3, sizes=(600, 500)):
    """Have a model learn batches in this process, and another one the same on Spark."""
    for number, n in enumerate(sizes):
        frame = records(n, number, labels)
        data = spark.createDataFrame(frame if n else records(1)).limit(n).repartition(partitions)
        tally = learn_batch_of(data, there, target)
        result = here.batch_step(frame.drop(columns=target), frame[target].tolist())
        assert tally.n == n
        if np.isfinite(result.losses).all() and n:
            assert tally.mean_loss == pytest.approx(result.losses.mean(), rel=1e-6)
