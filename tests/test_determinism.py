"""The same seed and records give the same bytes, whatever the process, the keys' order, the cache or the threads."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel import AdaptiveKernelClassifier, KernelClassifier, KernelRegressor
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian
from streamkernel.state import digest
from tests.parts import expansion_of, inputs_of

LEARN = """
import math
import sys
import numpy as np
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel import KernelClassifier, KernelLeastSquaresClassifier, KernelLeastSquaresRegressor
from streamkernel import KernelMultiTargetRegressor, KernelRegressor, WindowRefit
from streamkernel.growth import UDSG
from streamkernel.window import DSPDC, S3GD

def stream(n):
    for i in range(n):
        a, b = math.sin(37.0 * i * i), math.cos(11.0 * i)
        yield {"a": a, "b": b, 7: i % 5, f"late{i // 90}": a * b, "text": "pqrstuv"[i * i % 7]}

xs = list(stream(450))
for model, ys in (
    (KernelClassifier(seed=3, batch_size=8), [f"class {int(3 * x['a'])}" for x in xs]),
    (KernelRegressor(seed=-4, growth=UDSG(), dtype="float64"), [x["a"] - x["b"] for x in xs]),
    (KernelMultiTargetRegressor(seed=3), [{"a": x["a"], "b": x["b"]} for x in xs]),
    (WindowRefit(KernelClassifier(seed=3, max_features=128), 200, 100), [f"class {int(3 * x['a'])}" for x in xs]),
    (WindowRefit(KernelRegressor(seed=3, max_features=128), 300, 200, S3GD("squared")), [x["a"] for x in xs]),
    (WindowRefit(KernelRegressor(seed=3, max_features=128), 300, 200, DSPDC()), [x["a"] for x in xs]),
    (AdaptiveKernelClassifier(seed=3), [f"class {int(3 * x['a'])}" for x in xs]),
    (AdaptiveKernelRegressor(seed=-4), [x["a"] - x["b"] for x in xs]),
    (KernelLeastSquaresClassifier(seed=3), [f"class {int(3 * x['a'])}" for x in xs]),
    (KernelLeastSquaresRegressor(seed=-4), [x["a"] - x["b"] for x in xs]),
):
    model.advance(xs, ys)
    print(model.state_digest(), repr(model.predict_one(xs[-1])))

rows = np.random.default_rng(2).normal(size=(600, 4))
for model in (KernelClassifier(seed=3), KernelLeastSquaresClassifier(seed=3), KernelLeastSquaresRegressor(seed=-4)):
    for batch in (rows[:300], rows[300:]):
        model.batch_step(batch, (batch[:, 0] * batch[:, 1] > 0).astype(float))
    print(model.state_digest(), repr(model.predict_many(rows[:1])[0]))
"""


@pytest.mark.usefixtures("processes")
def test_two_processes_learn_the_same_bytes(capsys):
    """This one, and one with other hashes of strings and another number of threads."""
    others = {"PYTHONHASHSEED": ("1", "2"), "OPENBLAS_NUM_THREADS": ("1", "4"), "NUMBA_NUM_THREADS": ("1", "2")}
    environment = {name: b if os.environ.get(name) == a else a for name, (a, b) in others.items()}
    other = subprocess.run(
        [sys.executable, "-c", LEARN], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    exec(LEARN, {})
    assert capsys.readouterr().out == other.stdout
    assert len(other.stdout.splitlines()) == 13


def _stream(n=260, seed=0):
    rng = np.random.default_rng(seed)
    xs = [
        {"a": float(v), "b": float(w), f"late{i // 50}": 1.0 + i % 3, "text": "pqr"[i % 3], "n": i % 4}
        for i, (v, w) in enumerate(rng.normal(size=(n, 2)))
    ]
    return xs, [x["a"] * x["b"] > 0 for x in xs]


def _learned(xs, ys, adaptive=False, **given):
    if adaptive:
        model = AdaptiveKernelClassifier(**{"seed": 1, "n_features": 16, **given})
    else:
        model = KernelClassifier(**{"seed": 1, "batch_size": 8, "block_size": 8, **given})
    outcome = model.advance(xs, ys)
    return model, outcome


def _without_arguments(model):
    return digest({**model.__getstate__(), "arguments": None})


@pytest.mark.parametrize("adaptive", [False, True])
@settings(max_examples=4)
@given(random=st.randoms(use_true_random=False))
def test_the_order_of_the_keys_changes_no_bit(adaptive, random):
    xs, ys = _stream(260)
    one, results = _learned(xs, ys, adaptive)
    shuffled = []
    for x in xs:
        names = list(x)
        random.shuffle(names)
        shuffled.append({name: x[name] for name in names})
    other, other_results = _learned(shuffled, ys, adaptive)
    assert other.state_digest() == one.state_digest()
    assert other_results.probabilities == results.probabilities


@pytest.mark.parametrize(
    ("growth", "dtype"),
    [(DSG(), "float32"), (UDSG(), "float64"), (CDSG(), "float32"), (CDSG(cap=2.0), "float32")],
    ids=["DSG", "UDSG-float64", "CDSG", "CDSG-2"],
)
def test_the_cache_changes_no_bit(growth, dtype):
    xs, ys = _stream()
    expected, results = _learned(xs, ys, growth=growth, dtype=dtype)
    bare, _ = _learned(xs, ys, growth=growth, dtype=dtype, cache_bytes=0)
    for cache_bytes in (0, 700, 5000, 20_000):
        model, other_results = _learned(xs, ys, growth=growth, dtype=dtype, cache_bytes=cache_bytes)
        assert _without_arguments(model) == _without_arguments(expected)
        assert other_results.probabilities == results.probabilities
        assert other_results.losses.tobytes() == results.losses.tobytes()
        assert model.memory_bytes - bare.memory_bytes <= cache_bytes
    copied = bare.clone(include_attributes=True)
    assert copied.predict_proba_one(xs[0]) == expected.predict_proba_one(xs[0])
    assert copied.memory_bytes == copied.__getstate__()["alpha"].nbytes


def test_the_frequencies_of_an_input_do_not_depend_on_when_it_came():
    xs, ys = _stream()
    early, _ = _learned(xs, ys, kernel=Gaussian(1.0), dtype="float64")
    late, _ = _learned(xs[::-1], ys[::-1], kernel=Gaussian(1.0), dtype="float64")
    assert early.input_names != late.input_names

    def by_name(model):
        """The features of every input that is 1 alone: they follow from its frequencies."""
        keys, expansion = inputs_of(model).columns.keys, expansion_of(model)
        drawn = np.concatenate([expansion.features(block, np.eye(len(keys)), keys) for block in range(6)], axis=1)
        return dict(zip(model.input_names, drawn.tolist(), strict=True))

    assert by_name(early) == by_name(late)


@pytest.mark.parametrize("one", [KernelClassifier(batch_size=8), AdaptiveKernelClassifier(n_features=8)])
def test_no_seed_draws_one_and_a_clone_draws_another(one):
    xs, ys = _stream(60)
    models = [one.clone() for _ in range(3)]
    for model in models:
        model.advance(xs, ys)
    assert len({model.state_digest() for model in models}) == 3
    assert {model.seed for model in models} == {None}


def test_numpy_and_python_random_states_are_neither_used_nor_touched():
    import random

    xs, ys = _stream(60)
    digests = set()
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002 - the global state is what must not matter
        random.seed(seed)
        states = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
        digests.add(_learned(xs, ys)[0].state_digest())
        regressor = KernelRegressor(seed=1)
        regressor.advance(xs, [float(y) for y in ys])
        assert (random.getstate(), np.random.get_state()[1].tobytes()) == states  # noqa: NPY002
    assert len(digests) == 1
