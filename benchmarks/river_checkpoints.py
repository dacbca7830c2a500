"""Which of River's estimators survive a checkpoint: each is tried, and the table in docs/checkpoints.md written.

One process lets every estimator learn some records, dumps it as the daemon does, and goes on. Another, with another
hash seed, builds the estimators again, restores them and continues. Both must give the same bits.

    python benchmarks/river_checkpoints.py            # write the table
    python benchmarks/river_checkpoints.py --check    # fail if the table does not say what is found
"""

import argparse
import functools
import inspect
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import river.api
from river import (
    base,
    cluster,
    compose,
    datasets,
    drift,
    feature_extraction,
    feature_selection,
    imblearn,
    linear_model,
    metrics,
    model_selection,
    neighbors,
    optim,
    preprocessing,
    reco,
    stats,
    time_series,
    tree,
)
from river.checks.utils import seed_params
from river.utils.math import minkowski_distance as distance

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.payload import dump_model, load_model

DOCS = Path(__file__).parents[1] / "docs" / "checkpoints.md"
BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"
LEARNED, CONTINUED = 150, 20
WORDS = [
    *("the", "stream", "of", "records", "never", "ends", "but", "a", "model", "that"),
    *("learns", "from", "it", "must", "fit", "into", "memory"),
]

#: It visits its graph in the order of sets of strings.
HASHED = {"neighbors.SWINN": "is restored; what it gives depends on the hash seed of the process, checkpoint or not"}
SHARES: dict[Any, float] = {False: 0.4, True: 0.6}

#: Estimators that need arguments, and options of others that keep other state.
MODELS: dict[type, Callable[[], list[Any]]] = {
    cluster.STREAMKMeans: lambda: [cluster.STREAMKMeans(chunk_size=20, n_clusters=3, seed=1)],
    cluster.TextClust: lambda: [cluster.TextClust(real_time_fading=False)],
    compose.FuncTransformer: lambda: [compose.FuncTransformer(dict)],
    compose.Grouper: lambda: [compose.Grouper(preprocessing.StandardScaler(), by="is_popular")],
    compose.Pipeline: lambda: [preprocessing.StandardScaler() | linear_model.LogisticRegression()],
    compose.Prefixer: lambda: [compose.Prefixer("a_")],
    compose.Renamer: lambda: [compose.Renamer({"is_popular": "popular"})],
    compose.Suffixer: lambda: [compose.Suffixer("_a")],
    compose.TargetTransformRegressor: lambda: [
        compose.TargetTransformRegressor(linear_model.PARegressor(), func=math.log, inverse_func=math.exp)
    ],
    feature_extraction.Agg: lambda: [feature_extraction.Agg(on="age_of_domain", by="is_popular", how=stats.Mean())],
    feature_extraction.BagOfWords: lambda: [
        feature_extraction.BagOfWords(on="text", stop_words={"the"}, ngram_range=(1, 2))
    ],
    feature_extraction.TargetAgg: lambda: [feature_extraction.TargetAgg(by="is_popular", how=stats.BayesianMean(0, 5))],
    feature_selection.PoissonInclusion: lambda: [feature_selection.PoissonInclusion(p=0.1, seed=1)],
    imblearn.RandomOverSampler: lambda: [imblearn.RandomOverSampler(linear_model.LogisticRegression(), SHARES, seed=1)],
    imblearn.RandomSampler: lambda: [imblearn.RandomSampler(linear_model.LogisticRegression(), SHARES, seed=1)],
    imblearn.RandomUnderSampler: lambda: [
        imblearn.RandomUnderSampler(linear_model.LogisticRegression(), SHARES, seed=1)
    ],
    drift.DriftRetrainingClassifier: lambda: [
        drift.DriftRetrainingClassifier(linear_model.LogisticRegression(), detector)
        for detector in (drift.binary.EDDM(), drift.binary.FHDDM(), drift.binary.HDDMA(), drift.binary.HDDMW())
    ],
    linear_model.LogisticRegression: lambda: [
        linear_model.LogisticRegression(optimizer)
        for optimizer in (optim.Adam(), optim.FTRLProximal(), optim.Averager(optim.SGD(0.1)), optim.AMSGrad())
    ],
    linear_model.PAClassifier: lambda: [linear_model.PAClassifier(mode=mode) for mode in (0, 1, 2)],
    model_selection.SuccessiveHalvingClassifier: lambda: [
        model_selection.SuccessiveHalvingClassifier(
            [tree.HoeffdingTreeClassifier(grace_period=period) for period in (20, 50, 100)], metrics.Accuracy(), 100
        )
    ],
    neighbors.KNNClassifier: lambda: [
        neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=50, dist_func=functools.partial(distance, p=1)))
    ],
    neighbors.SWINN: lambda: [neighbors.KNNClassifier(engine=neighbors.SWINN(maxlen=60, warm_up=50, seed=1))],
    preprocessing.MaxAbsScaler: lambda: [preprocessing.MaxAbsScaler(window_size=9)],
    preprocessing.MinMaxScaler: lambda: [preprocessing.MinMaxScaler(window_size=9)],
    preprocessing.StandardScaler: lambda: [preprocessing.StandardScaler(window_size=9)],
    preprocessing.TargetMinMaxScaler: lambda: [preprocessing.TargetMinMaxScaler(linear_model.LinearRegression())],
    preprocessing.TargetStandardScaler: lambda: [preprocessing.TargetStandardScaler(linear_model.LinearRegression())],
    tree.HoeffdingAdaptiveTreeRegressor: lambda: [
        tree.HoeffdingAdaptiveTreeRegressor(drift_detector=detector, grace_period=50, seed=1)
        for detector in (drift.KSWIN(seed=1), drift.PageHinkley(), drift.DummyDriftDetector(seed=1))
    ],
    tree.HoeffdingTreeClassifier: lambda: [
        tree.HoeffdingTreeClassifier(splitter=splitter, grace_period=50, nominal_attributes=["is_popular"])
        for splitter in (tree.splitter.ExhaustiveSplitter(), tree.splitter.HistogramSplitter())
    ],
    tree.HoeffdingTreeRegressor: lambda: [
        tree.HoeffdingTreeRegressor(splitter=splitter, grace_period=50)
        for splitter in (tree.splitter.EBSTSplitter(), tree.splitter.QOSplitter(), tree.splitter.TEBSTSplitter())
    ],
}


def exported() -> dict[str, type[base.Estimator]]:
    """River's public estimators by their public names; the splitters of trees are no models of their own."""
    found: dict[type[base.Estimator], str] = {}

    def walk(module: Any) -> None:
        for name in getattr(module, "__all__", ()):
            member = getattr(module, name, None)
            if inspect.ismodule(member):
                walk(member)
            elif inspect.isclass(member) and issubclass(member, base.Estimator) and not inspect.isabstract(member):
                found.setdefault(member, f"{module.__name__.removeprefix('river.')}.{name}")

    for name in river.api.__all__:
        if name not in ("base", "datasets", "stream"):
            walk(getattr(river.api, name))
    return {name: cls for cls, name in found.items() if not name.startswith("tree.splitter.")}


def models(cls: type[base.Estimator]) -> list[base.Estimator]:
    """Instances to try: those of River's own unit tests, and those above."""
    made = MODELS[cls]() if cls in MODELS else []
    # These need a seed past `seed_params`, the time of each record, some steps.
    if cls not in (cluster.STREAMKMeans, cluster.TextClust, compose.Pipeline):
        try:
            tested = [cls(**arguments) for arguments in cls._unit_test_params()]
        except TypeError:
            # It has no defaults for its arguments.
            if not made:
                raise
        else:
            # Without a seed two runs of the same model differ, checkpoint or not.
            made += [model.clone(seed_params(model._get_params(), seed=1)) for model in tested]
    return made


def records(model: base.Estimator) -> Iterator[tuple[Any, Any]]:
    """Records that fit the model, the same ones every time."""
    if isinstance(model, reco.base.Ranker):
        for i in itertools.count():
            yield {"user": i % 7, "item": i % 11}, float(i % 5)
    elif isinstance(model, cluster.TextClust):
        for i in itertools.count():
            yield {WORDS[i * step % len(WORDS)]: step for step in range(1, 6)}, i % 2 == 0
    elif isinstance(model, feature_extraction.BagOfWords | preprocessing.GapEncoder):
        for i in itertools.count():
            text = " ".join(WORDS[i * step % len(WORDS)] for step in range(1, 6))
            yield text if model.on is None else {model.on: text}, i % 2 == 0
    else:
        source: Any = datasets.TrumpApproval() if isinstance(model, base.Regressor) else datasets.Phishing()
        if isinstance(model, base.Classifier) and model._multiclass and base.tags.POSITIVE_INPUT not in model._tags:
            source = datasets.ImageSegments()
        for i, (x, y) in enumerate(source):
            if isinstance(model, base.MultiLabelClassifier):
                y = {"a": bool(y), "b": i % 3 == 0}
            elif isinstance(model, base.MultiTargetRegressor):
                y = {"a": y, "b": -y}
            elif isinstance(model, time_series.base.Forecaster):
                y = math.sin(i) + 2
            yield x, y


def step(model: Any, x: Any, y: Any) -> Any:
    """One record: test, then train, or the other way round where an estimator cannot answer before it has learned."""
    given: Any
    if isinstance(model, reco.base.Ranker):
        given = model.predict_one(**x)
        model.learn_one(**x, y=y)
    elif isinstance(model, time_series.base.Forecaster):
        model.learn_one(y=y)
        try:
            given = model.forecast(horizon=2)
        except IndexError:  # fewer records than a season has
            given = None
    elif isinstance(model, neighbors.base.BaseNN):
        model.append(x)
        given = model.search(x, n_neighbors=3)
    elif isinstance(model, base.SupervisedAnomalyDetector):
        model.learn_one(x, y)
        given = model.score_one(x, y)
    elif isinstance(model, base.AnomalyDetector | base.AnomalyFilter):
        given = model.score_one(x)
        model.learn_one(x)
    elif isinstance(model, base.Clusterer):
        model.learn_one(x)
        given = model.render_ascii() if isinstance(model, cluster.ODAC) else model.predict_one(x)
    elif isinstance(model, base.BaseTransformer):
        model.learn_one(x, y) if model._supervised else model.learn_one(x)  # type: ignore[attr-defined]
        given = model.transform_one(x)
    else:
        try:
            given = model.predict_proba_one(x)
        except (AttributeError, NotImplementedError):
            given = model.predict_one(x)
        model.learn_one(x, y)
    return given


def plain(value: Any) -> Any:
    """What a model gives, as JSON can hold it, whatever the order of its dictionaries."""
    if isinstance(value, dict):
        return sorted([repr(key), plain(item)] for key, item in value.items())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else type(value).__name__


def go_on(model: base.Estimator) -> list[Any]:
    """Outputs for the records after the checkpoint."""
    return [plain(step(model, x, y)) for x, y in itertools.islice(records(model), LEARNED, LEARNED + CONTINUED)]


def learned(model: base.Estimator) -> base.Estimator:
    """The same model at the time of the checkpoint."""
    for x, y in itertools.islice(records(model), LEARNED):
        step(model, x, y)
    return model


def write(directory: Path) -> None:
    """The first process: checkpoints, what the models give after them, and verdicts where there is no checkpoint."""
    given: dict[str, list[Any]] = {}
    verdicts: dict[str, str] = {}
    for name, cls in exported().items():
        try:
            for i, model in enumerate(models(cls)):
                (directory / f"{name}-{i}").write_bytes(dump_model(learned(model)))
                given[f"{name}-{i}"] = go_on(model)
        except CheckpointError:
            verdicts[name] = "is refused when its first checkpoint is written"
        except RuntimeError as error:
            verdicts[name] = f"was not tried: {str(error).rstrip('.')}"
    (directory / "given.json").write_text(json.dumps(given))
    (directory / "verdicts.json").write_text(json.dumps(verdicts))


def compare(directory: Path) -> None:
    """The second process: restores, goes on, and adds its verdicts; "" is good."""
    given: dict[str, list[Any]] = json.loads((directory / "given.json").read_text())
    verdicts: dict[str, str] = json.loads((directory / "verdicts.json").read_text())
    classes = exported()
    for case, before in given.items():
        name, _, i = case.rpartition("-")
        try:
            model = load_model((directory / case).read_bytes(), models(classes[name])[int(i)])
        except CheckpointError as error:
            verdicts[name] = f"cannot be restored: {error}"
            continue
        if json.loads(json.dumps(go_on(model))) != before and name not in HASHED:
            verdicts[name] = "is restored, and goes on differently"
        verdicts.setdefault(name, HASHED.get(name, ""))
    (directory / "verdicts.json").write_text(json.dumps(verdicts))


def table() -> str:
    """Try every estimator, and tell in Markdown how it went."""
    with tempfile.TemporaryDirectory() as directory:
        for seed, phase in (("1", "--write"), ("2", "--compare")):
            command = [sys.executable, __file__, phase, directory]
            subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        verdicts: dict[str, str] = json.loads((Path(directory) / "verdicts.json").read_text())
    lines = ["| module | survive | do not |", "| --- | --- | --- |"]
    for module, names in itertools.groupby(sorted(verdicts), key=lambda name: name.rpartition(".")[0]):
        good: list[str] = []
        bad: list[str] = []
        for name in names:
            (bad if verdicts[name] else good).append(name.rpartition(".")[2])
        lines.append(f"| `{module}` | {', '.join(good)} | {', '.join(bad)} |")
    lines.append("")
    lines += [f"- `{name}` {verdict}." for name, verdict in sorted(verdicts.items()) if verdict]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed table instead of writing it")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--compare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.write:
        write(options.write)
    elif options.compare:
        compare(options.compare)
    else:
        text = DOCS.read_text()
        before, rest = text.split(BEGIN)
        committed, after = rest.split(END)
        found = table()
        if not options.check:
            DOCS.write_text(before + BEGIN + found + END + after)
        elif found != committed:
            sys.exit(f"{DOCS.name} does not say what was found; run this without --check. Found:\n{found}")


if __name__ == "__main__":
    main()
