"""Several threads use one estimator: every prediction is right, and the state is that of learning alone."""

import math
import os
import sys
import threading

import pytest

import streamkernel as sk
from streamkernel.kernels import Gaussian

MODELS = {
    "adaptive classifier": lambda: sk.AdaptiveKernelClassifier(n_features=8, n_trees=2, lags=1, seed=1),
    "adaptive regressor": lambda: sk.AdaptiveKernelRegressor(n_features=8, n_trees=2, seed=1),
    "lagged regressor": lambda: sk.AdaptiveKernelRegressor(n_features=8, n_trees=2, lags=2, seed=1),
    "growing classifier": lambda: sk.KernelClassifier(Gaussian(2.0), batch_size=8, max_features=128, seed=1),
    "growing regressor": lambda: sk.KernelRegressor(batch_size=8, average=True, max_features=128, seed=1),
    "mixture classifier": lambda: sk.KernelClassifier(max_features=64, seed=1),
    "mixture regressor": lambda: sk.KernelRegressor(max_features=64, seed=1),
    "several labels": lambda: sk.KernelMultiLabelClassifier(Gaussian(2.0), batch_size=8, max_features=128, seed=1),
    "several labels of a mixture": lambda: sk.KernelMultiLabelClassifier(max_features=64, seed=1),
    "structured": lambda: sk.KernelRegressor(Gaussian(2.0, structured=True), batch_size=8, seed=1),
    "least squares classifier": lambda: sk.KernelLeastSquaresClassifier(n_features=8, seed=1),
    "least squares regressor": lambda: sk.KernelLeastSquaresRegressor(n_features=8, seed=1),
    "Gaussian process": lambda: sk.GaussianProcessRegressor(n_features=8, seed=1),
    "novelty": lambda: sk.KernelNoveltyDetector(kernel=Gaussian(2.0), batch_size=8, max_features=64, seed=1),
    "density ratio": lambda: sk.KernelDensityRatio(0, 1, kernel=Gaussian(2.0), batch_size=8, max_features=64, seed=1),
    "window": lambda: sk.WindowRefit(sk.KernelRegressor(Gaussian(2.0), max_features=64, seed=1), 40, 30),
}
PROBES = [{"a": -1.0, "b": 2.0}, {"a": 1.5, "b": -0.5}, {"a": 0.25, "b": 0.0}]


@pytest.fixture(autouse=True)
def _many_switches():
    """Let the threads take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def _stream(name, n):
    for i in range(n):
        x = {"a": math.sin(i), "b": math.cos(1.7 * i)}
        if i > n // 2:  # an input and a class that come late change the shape of everything
            x["kind"] = "pq"[i % 2]
        label = int(x["a"] > 0) + (i > n // 2 and name.endswith("classifier") and i % 5 == 0)
        if name.startswith("several labels"):
            yield x, {"right": bool(label), **({"late": x["b"] > 0} if i > n // 2 else {})}
            continue
        yield x, label if name.endswith(("classifier", "ratio")) else x["a"] * x["b"]


def _learn(model, x, y):
    model.learn_one(x) if isinstance(model, sk.KernelNoveltyDetector) else model.learn_one(x, y)


def _ask(model, x):
    if isinstance(model, sk.KernelNoveltyDetector):
        return model.score_one(x)
    if hasattr(model, "predict_proba_one"):
        return repr(model.predict_proba_one(x))
    return model.predict_one(x)


def _threads(ask):
    """Start a thread for each probe, which collects what `ask` gives for it."""
    found = [[] for _ in PROBES]
    threads = [
        threading.Thread(target=lambda own=own, x=x: own.extend(ask(x))) for own, x in zip(found, PROBES, strict=True)
    ]
    for thread in threads:
        thread.start()
    return threads, found


@pytest.mark.filterwarnings("ignore:1,000 records in a row were scored")  # while one learns
@pytest.mark.parametrize("name", MODELS)
def test_learning_beside_predictions_is_learning_alone_and_each_prediction_that_of_a_prefix(name):
    records = [*_stream(name, 90)]
    alone, of_prefixes = MODELS[name](), [set() for _ in PROBES]
    for x, y in [(None, None), *records]:
        if x is not None:
            _learn(alone, x, y)
        for known, probe in zip(of_prefixes, PROBES, strict=True):
            known.add(_ask(alone, probe))
    model, done = MODELS[name](), threading.Event()

    def ask(x):
        yield _ask(model, x)
        while not done.is_set():
            yield _ask(model, x)

    threads, found = _threads(ask)
    for x, y in records:
        _learn(model, x, y)
    done.set()
    for thread in threads:
        thread.join()
    assert model.state_digest() == alone.state_digest()
    assert [set(own) - known for own, known in zip(found, of_prefixes, strict=True)] == [set()] * len(PROBES)
    assert all(found)


@pytest.mark.usefixtures("processes")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_that_is_forked_while_a_thread_learns_predicts():
    model, ended = sk.KernelClassifier(batch_size=8, max_features=64, seed=1), threading.Event()
    model.learn_one(PROBES[0], 0)

    def learn():
        while not ended.is_set():
            for x, y in _stream("growing classifier", 50):
                model.learn_one(x, y)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if sum(model.predict_proba_one(PROBES[1]).values()) > 0.99 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        ended.set()
        thread.join()
