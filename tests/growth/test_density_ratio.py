"""Density ratios: against the closed form of two Gaussians, with samples of any shares, and as a drift alarm."""

import math

import numpy as np
import pytest

from streamkernel import KernelDensityRatio
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import ChiSquared, Hellinger


def gaussians(n, shift=1.0, scale=1.0, share=0.5, d=2, seed=1):
    """Rows of p = N(shift e_1, scale^2 I) and q = N(0, I), which are of p, and KL(p, q)."""
    rng = np.random.default_rng(seed)
    of_p = rng.random(n) < share
    X = rng.normal(size=(n, d))
    X[of_p] = X[of_p] * scale + np.eye(d)[0] * shift
    return X, of_p, (d * scale**2 + shift**2 - d - 2 * d * math.log(scale)) / 2


def ratio(**given):
    return KernelDensityRatio(**{"p": True, "q": False, "max_features": 1024, "seed": 1, **given})


def dicts(X):
    return [dict(enumerate(row)) for row in X.tolist()]


@pytest.mark.parametrize(
    ("case", "given"),
    [
        ({"share": 0.2}, {}),
        ({"d": 1}, {"precondition": False, "growth": DSG()}),
        ({"share": 0.2}, {"precondition": False, "growth": UDSG()}),
        ({"share": 0.8, "scale": 0.7}, {"precondition": False, "growth": CDSG(cap=3.0)}),
        ({"d": 1, "shift": 0.0}, {}),
    ],
)
def test_the_divergence_is_that_of_two_gaussians(case, given):
    X, of_p, kl = gaussians(15_000, **case)
    model = ratio(window=5000, **given)
    model.learn_many(X, of_p)
    assert model.divergence == pytest.approx(kl, abs=0.1)
    assert model.sample_shares[True] == pytest.approx(case.get("share", 0.5), abs=0.03)


def test_shares_and_divergence_follow_from_predictions_made_before():
    """Of a plain twin: exponential weights, a mini-batch at a time."""
    B, window = 10, 50
    X, of_p, _ = gaussians(40 * B, share=0.3)
    w = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    model = ratio(batch_size=B, window=window)
    model.learn_many(X[: 20 * B], of_p[: 20 * B], w[: 20 * B])  # past the records that fix the bandwidth
    state = model.__getstate__()
    counts, sizes, means = (state[f"sample_{name}"] for name in ("counts", "sizes", "means"))
    memory = 1 - 1 / window
    for start in range(20 * B, 40 * B, B):
        part = slice(start, start + B)
        f = np.array(model.advance(dicts(X[part]), of_p[part].tolist(), w[part]).predictions)
        for side, values in ((0, np.exp(f)), (1, f)):
            own = of_p[part] == side
            mine, total = values[own], w[part][own].sum()
            counts[side] = counts[side] * memory**B + total
            kept = sizes[side] * memory ** own.sum()
            if own.any():
                means[side] = (means[side] * kept + w[part][own] @ mine) / (kept + total)
                sizes[side] = kept + total
    assert model.divergence == pytest.approx(means[1] - means[0] + 1, abs=1e-9)
    assert model.sample_shares[True] == pytest.approx((counts[1] + 1) / (counts.sum() + 2))


@pytest.mark.parametrize("offset", [-1.0, 0.0, 0.5])
def test_the_other_form_of_the_divergence_has_that_of_two_gaussians_whatever_the_offset(offset):
    """With f = log p/q + offset of N(1, 1) and N(0, 1): E_p f = 1/2 + offset, E_q exp f = exp(offset)."""
    model = ratio()
    model._targets.sizes, model._targets.means = np.ones(2), np.array([np.exp(offset), 0.5 + offset])
    assert model.donsker_varadhan == pytest.approx(0.5)
    assert model.divergence == pytest.approx(1.5 + offset - np.exp(offset))
    assert model.donsker_varadhan >= model.divergence - 1e-12


def test_a_drift_of_the_live_stream_rings():
    """The reference as q, the live stream as p: about 0 until it drifts."""
    model = KernelDensityRatio(p="live", q="reference", window=1000, max_features=1024, seed=1)
    rng = np.random.default_rng(1)
    quiet = []
    for t in range(6000):
        model.learn_one({"a": rng.normal(), "b": rng.normal()}, "reference")
        model.learn_one({"a": rng.normal() + (2.0 if t >= 4000 else 0.0), "b": rng.normal()}, "live")
        if 1000 <= t < 4000:
            quiet.append(model.divergence)
    assert max(quiet) < 0.1
    assert model.divergence > 0.5


def test_a_record_of_neither_sample():
    model = KernelDensityRatio(seed=1)
    model.learn_one({"a": 1.0}, None)
    assert model.n_records == 0
    before = model.state_digest()
    with pytest.raises(ValueError, match=r"'r'.*p='p' and q='q'"):
        model.advance([{"a": 1.0}] * 2, ["p", "r"])
    with pytest.raises(ValueError, match="the sample is 'r'"):
        model.loss_of("r", 0.0)
    assert model.state_digest() == before


@pytest.mark.parametrize("origin", ["p", "q"])
def test_a_record_far_from_all_others_is_taken_as_the_clip(origin):
    """Under a kernel without bound, whose scores have none either."""
    kernel = Hellinger() * ChiSquared()
    model = KernelDensityRatio(kernel=kernel, batch_size=8, max_features=64, seed=1)
    xs = [{"a": a} for a in np.random.default_rng(1).gamma(2.0, size=160)]
    model.advance(xs, ["p", "q"] * 80)
    far = {"a": 1e100}
    ratio = model.predict_one(far)
    assert abs(ratio) == model.clip
    assert model.predict_many(np.array([[1e100]]))[0] == ratio
    advanced = model.advance([far, *xs[:7]], [origin] * 8)
    assert advanced.predictions[0] == ratio
    assert ratio > 0 or advanced.losses[0] == model.loss_of(origin, ratio)
    assert abs(model.divergence) < model.clip + math.exp(model.clip)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"p": "a", "q": "a"}, "q must differ from p, got p='a' and q='a'"),
        ({"p": 1, "q": True}, "q must differ from p, got p=1 and q=True"),
        ({"p": 1.5}, "p must be the label of a sample, a string, boolean or whole number, got 1.5"),
        ({"q": None}, "q must be the label of a sample, a string, boolean or whole number, got None"),
        ({"clip": 0}, "clip must be a number above 0, 50 at most, got 0"),
        ({"clip": 51.0}, "clip must be a number above 0, 50 at most, got 51.0"),
        ({"clip": math.nan}, "clip must be a number above 0, 50 at most, got nan"),
        ({"clip": "5"}, "clip must be a number above 0, 50 at most, got '5'"),
        ({"window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"window": 2.5}, "window must be a whole number of at least 1, got 2.5"),
        ({"regularization": -1}, "regularization must be a number from 0 up, got -1"),
    ],
)
def test_arguments_out_of_range(given, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        KernelDensityRatio(**given)
