"""Ratios 5, 6, 8 and 9: what learning costs, beside River and scikit-learn, over a long stream, by kinds of steps."""

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import feature_extraction, linear_model, preprocessing
from river.datasets import synth
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.adaptive_speed import classifiers
from benchmarks.memory import CHUNK, numbers
from benchmarks.rounds import Ratio, interleaved, over, spread
from benchmarks.waves import waves
from streamkernel import KernelClassifier
from streamkernel.growth import DSG
from streamkernel.losses import Log

Pair = tuple[dict[Any, Any], Any]
Learn = Callable[[list[Pair]], None]

OURS = "KernelClassifier"
RIVER = "River's RBFSampler({}), LogisticRegression"
INPUTS, FEATURES, PEER = 20, 1024, 1000
PLAIN = "precondition=False"
AVERAGED = "average=True"
#: What a step costs is compared for models of so many features.
SIZES = FEATURES, 16_384


def stream(n_records: int) -> list[Pair]:
    """Twenty numbers and a non-linear label."""
    return list(waves(n_records, [f"x{i}" for i in range(INPUTS)]))


def one_by_one(model: Any) -> Learn:
    def learn(records: list[Pair]) -> None:
        for x, y in records:
            model.learn_one(x, y)

    return learn


def at_once(model: Any) -> Learn:
    """Predict and learn, by `advance`."""

    def learn(records: list[Pair]) -> None:
        model.advance([x for x, _ in records], [y for _, y in records])

    return learn


def river(n_components: int) -> Learn:
    """`n_components` of River are cosines with a random phase."""
    return one_by_one(
        preprocessing.StandardScaler()
        | feature_extraction.RBFSampler(gamma=1 / INPUTS, n_components=n_components, seed=1)
        | linear_model.LogisticRegression()
    )


def scikit_learn(n_components: int) -> Learn:
    """One record at a time, as a stream brings them."""
    scaler, head = StandardScaler(), SGDClassifier(loss="log_loss", random_state=1)
    sampler = RBFSampler(gamma=1 / INPUTS, n_components=n_components, random_state=1).fit(np.zeros((1, INPUTS)))

    def learn(records: list[Pair]) -> None:
        for x, y in records:
            row = np.array([list(x.values())])
            head.partial_fit(sampler.transform(scaler.partial_fit(row).transform(row)), [y], classes=[False, True])

    return learn


def grown(records: list[Pair], max_features: int = FEATURES, **arguments: Any) -> KernelClassifier:
    """A model that has learned until it is as large as it may be."""
    model = KernelClassifier(max_features=max_features, seed=1, **arguments)
    for start in range(0, len(records), CHUNK):
        at_once(model)(records[start : start + CHUNK])
        if model.n_features == max_features:
            return model
    raise RuntimeError(f"only {model.n_features} features after {len(records)} records: give more of them")


def taking(learn: Learn, records: list[Pair], n: int) -> Callable[[], None]:
    """A call that learns the next n records; the first come again after the last."""

    def chunks() -> Iterator[list[Pair]]:
        while True:
            for start in range(0, len(records) - n + 1, n):
                yield records[start : start + n]

    coming = chunks()
    return lambda: learn(next(coming))


def learn_one(rounds: int, quick: bool) -> tuple[list[Ratio], list[list[str]]]:
    """Ratio 5, and microseconds a record of all."""
    records = stream(20_000)
    lines: dict[str, tuple[Learn, int]] = {
        OURS: (one_by_one(grown(records)), 3_200),
        f"{OURS}(loss=Log()), one output as the peers": (one_by_one(grown(records, loss=Log())), 3_200),
        f"{OURS}({PLAIN})": (one_by_one(grown(records, precondition=False)), 3_200),
        RIVER.format(PEER): (river(PEER), 4 if quick else 40),
        RIVER.format(2 * PEER): (river(2 * PEER), 2 if quick else 20),
        f"scikit-learn's RBFSampler({PEER}), SGDClassifier.partial_fit": (scikit_learn(PEER), 100),
        f"scikit-learn's RBFSampler({2 * PEER}), SGDClassifier.partial_fit": (scikit_learn(2 * PEER), 100),
    }
    took = interleaved({name: taking(learn, records, n) for name, (learn, n) in lines.items()}, rounds, at_least=0)
    each = {name: [1e6 * s / lines[name][1] for s in seconds] for name, seconds in took.items()}
    first, log, plain, *peers = each
    what = "learn_one, times as fast as {}"
    ratios = [
        Ratio(
            5,
            what.format(name),
            over(each[name], each[first]),
            1000 if name == RIVER.format(PEER) else None,
            at_least=True,
        )
        for name in peers
    ]
    what = what.format(RIVER.format(PEER))
    ratios.append(
        Ratio(5, f"{what}, with loss=Log(): one output as the peers", over(each[RIVER.format(PEER)], each[log]))
    )
    ratios.append(Ratio(5, f"{what}, by plain steps: {PLAIN}", over(each[RIVER.format(PEER)], each[plain])))
    return ratios, [[name, spread(values)] for name, values in each.items()]


def adaptive(rounds: int, quick: bool) -> tuple[list[Ratio], list[list[str]]]:
    """Ratio 6, and records a second of all, on River's Hyperplane of ten inputs."""
    n = 100 if quick else 500
    warm_up = 500 if quick else 3_000
    records = list(synth.Hyperplane(seed=1, n_features=10).take(warm_up + n * (rounds + 2)))
    calls = {}
    for name, model, go in classifiers():
        go(model, records[:warm_up])
        calls[name] = taking(lambda part, model=model, go=go: go(model, part), records[warm_up:], n)  # type: ignore[misc]
    rates = {name: [n / s for s in seconds] for name, seconds in interleaved(calls, rounds, at_least=0).items()}
    ours = next(iter(rates.values()))
    what = "AdaptiveKernelClassifier, dict in, predict_one + learn_one, records/s"
    ratios = [
        Ratio(6, what, ours, 10_000, at_least=True),
        *(
            Ratio(6, f"times as fast as River's {name}", over(ours, rates[name]), 1, at_least=True)
            for name in ("ARFClassifier", "AMFClassifier", "KNNClassifier")
        ),
    ]
    return ratios, [[name, spread(values)] for name, values in rates.items()]


def long_stream(n_records: int) -> tuple[list[Ratio], list[list[str]]]:
    """Ratio 8, and microseconds a record of every tenth.

    The model as it stood at the second tenth is kept, and learns the last tenth beside the one that has learned all.
    """
    old = KernelClassifier(max_features=512, seed=1)
    young = old
    tenth = n_records // 10
    tenths = [0.0] * 10
    beside: list[tuple[float, float]] = []
    for number, (xs, ys) in enumerate(numbers(n_records)):
        seen = number * CHUNK
        if seen == tenth:
            young = copy.deepcopy(old)
        # In turns: the second of two finds the records in the processor's cache.
        ordered = (old, young)[:: 1 if number % 2 else -1] if seen >= 9 * tenth else (old,)
        took = {id(model): _advance(model, xs, ys) for model in ordered}
        tenths[seen // tenth] += took[id(old)]
        if seen >= 9 * tenth:
            beside.append((took[id(old)], took[id(young)]))
    # Ten rounds: a chunk alone is a few milliseconds.
    step = max(len(beside) // 10, 2)
    sums = [np.sum(beside[i : i + step], axis=0) for i in range(0, len(beside) - step + 1, step)]
    values = [float(last / second) for last, second in sums]
    what = f"{n_records:,} records, the last tenth against the second, max_features = 512, d = 8"
    rows = [[f"{i + 1}", f"{1e6 * seconds / tenth:.2f}"] for i, seconds in enumerate(tenths)]
    return [Ratio(8, what, values, 1.1)], rows


def _advance(model: KernelClassifier, xs: list[dict[str, Any]], ys: list[bool]) -> float:
    before = time.process_time()
    model.advance(xs, ys)
    return time.process_time() - before


def steps(rounds: int, quick: bool) -> tuple[list[Ratio], list[list[str]]]:
    """Ratio 9, and microseconds a record, predicted and learned by `advance`, of the kinds of steps.

    By DSG, which is as large as it may be after the fewest records.
    """
    records = stream(20_000)
    sizes = SIZES[:1] if quick else SIZES
    settings: dict[str, dict[str, Any]] = {
        "growth=DSG()": {},
        PLAIN: {"precondition": False},
        AVERAGED: {"average": True},
        f"{PLAIN}, {AVERAGED}": {"precondition": False, "average": True},
    }
    n = 320 if quick else 1_600
    calls = {
        f"{name}|{m}": taking(at_once(grown(records, m, growth=DSG(), **arguments)), records, n)
        for name, arguments in settings.items()
        for m in sizes
    }
    took = interleaved(calls, rounds, at_least=0)
    ratios = []
    for m in sizes:
        first, plain, averaged, both = (took[f"{name}|{m}"] for name in settings)
        what = f"advance, m = {m:,}"
        ratios += [
            Ratio(
                9,
                f"{what}, preconditioned steps, times as slow as plain ones",
                over(first, plain),
            ),
            Ratio(9, f"{what}, {AVERAGED}, times as slow as without", over(averaged, first)),
            Ratio(9, f"{what}, {AVERAGED} by plain steps, times as slow as without", over(both, plain)),
        ]
    rows = [[name, *(spread([1e6 * s / n for s in took[f"{name}|{m}"]]) for m in sizes)] for name in settings]
    return ratios, [["KernelClassifier", *(f"m = {m:,}, us" for m in sizes)], *rows]
