"""Records of the tests of Spark, and models compared."""

import numpy as np
import pandas as pd


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
