"""The models of the accuracy benchmark, all as they come by default: ours, River's and CapyMOA's.

River's stand behind a StandardScaler. Each comes twice: with the inputs of a record alone, and with what is known of
the target's past.
"""

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from river import (
    dummy,
    ensemble,
    feature_extraction,
    forest,
    linear_model,
    multiclass,
    neighbors,
    preprocessing,
    stats,
    tree,
)

import streamkernel
from benchmarks import capymoa_peers
from benchmarks.streams import N_LAGS

Make = Callable[[int, int], Any]

RIVER, CAPYMOA, OURS = "River", "CapyMOA", "ours"
WITH_LAGS = " (lags)"


@dataclass(frozen=True)
class Model:
    """A line of the tables; `classifier` and `regressor` take the seed and the number of classes.

    `lags`: whether it knows the last targets: ours by its own argument, others by inputs that the benchmark adds.
    """

    name: str
    classifier: Make | None
    regressor: Make | None
    seeded: bool = True
    library: str = RIVER
    lags: bool = False

    @property
    def ours(self) -> bool:
        return self.library == OURS

    @property
    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""
        return capymoa_peers.missing() if self.library == CAPYMOA else ""

    def make(self, seed: int, n_classes: int) -> Any:
        """The model for a stream; `n_classes` 0 asks for a regressor."""
        maker = self.classifier if n_classes else self.regressor
        if maker is None:
            raise ValueError(f"{self.name} has no {'classifier' if n_classes else 'regressor'}")
        model = maker(seed, n_classes)
        return preprocessing.StandardScaler() | model if self.library == RIVER else model

    def fits(self, n_classes: int) -> bool:
        """Whether there is such a model for a stream of so many classes (0: a regression)."""
        return (self.classifier if n_classes else self.regressor) is not None

    def source(self) -> str:
        """What a result depends on: a library's version, or our own code."""
        if self.library == CAPYMOA:
            return capymoa_peers.source()
        return own_code() if self.ours else f"river {version('river')}"


@cache
def own_code() -> str:
    """A digest of the library's sources but for the daemon's."""
    root = Path(streamkernel.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if "daemon" not in path.relative_to(root).parts:
            digest.update(path.read_bytes())
    return f"streamkernel {digest.hexdigest()[:12]}"


def binary(model: Any, n_classes: int) -> Any:
    """A two-class model, or one a class where there are more."""
    return multiclass.OneVsRestClassifier(model) if n_classes > 2 else model


def swinn(seed: int) -> neighbors.SWINN:
    """River's default engine of its neighbors, seeded."""
    engine = neighbors.KNNRegressor().engine
    return neighbors.SWINN(dist_func=engine.dist_func, seed=seed)


def sampler(seed: int) -> feature_extraction.RBFSampler:
    return feature_extraction.RBFSampler(seed=seed)


def own(name: str, **arguments: Any) -> Make | None:
    """An estimator of ours, all else defaults; None while the library has none of that name or with such arguments."""
    kind = getattr(streamkernel, name, None)
    if kind is None or not arguments.keys() <= inspect.signature(kind).parameters.keys():
        return None
    return lambda seed, _k: kind(seed=seed, **arguments)


def logistic(n_classes: int) -> Any:
    return binary(linear_model.LogisticRegression(), n_classes)


def capymoa(name: str, classifier: str, regressor: str) -> Model:
    """CapyMOA's learners of the kinds given, empty for none; they scale what they need scaled."""
    return Model(
        name,
        (lambda s, k: capymoa_peers.Classifier(classifier, s, k)) if classifier else None,
        (lambda s, _k: capymoa_peers.Regressor(regressor, s)) if regressor else None,
        library=CAPYMOA,
    )


def plain() -> list[Model]:
    """Every model that is shown no target but as the label of a record to learn."""
    classifier, regressor = "AdaptiveKernelClassifier", "AdaptiveKernelRegressor"
    return [
        Model("AdaptiveKernel", own(classifier), own(regressor), library=OURS),
        Model("AdaptiveKernel (median)", None, own(regressor, predicts="median"), library=OURS),
        Model("Kernel", own("KernelClassifier"), own("KernelRegressor"), library=OURS),
        Model("Linear", lambda _s, k: logistic(k), lambda _s, _k: linear_model.LinearRegression(), False),
        Model(
            "RBFSampler",
            lambda s, k: sampler(s) | logistic(k),
            lambda s, _k: sampler(s) | linear_model.LinearRegression(),
        ),
        Model(
            "HAT",
            lambda s, _k: tree.HoeffdingAdaptiveTreeClassifier(seed=s),
            lambda s, _k: tree.HoeffdingAdaptiveTreeRegressor(seed=s),
        ),
        Model(
            "KNN",
            lambda s, _k: neighbors.KNNClassifier(engine=swinn(s)),
            lambda s, _k: neighbors.KNNRegressor(engine=swinn(s)),
        ),
        Model("ARF", lambda s, _k: forest.ARFClassifier(seed=s), lambda s, _k: forest.ARFRegressor(seed=s)),
        Model("AMF", lambda s, _k: forest.AMFClassifier(seed=s), lambda s, _k: forest.AMFRegressor(seed=s)),
        Model("ALMA", lambda _s, k: binary(linear_model.ALMAClassifier(), k), None, seeded=False),
        Model(
            "PA",
            lambda _s, k: binary(linear_model.PAClassifier(), k),
            lambda _s, _k: linear_model.PARegressor(),
            seeded=False,
        ),
        Model("SRP", lambda s, _k: ensemble.SRPClassifier(seed=s), lambda s, _k: ensemble.SRPRegressor(seed=s)),
        capymoa("MOA ARF", "ARF", "ARF"),
        capymoa("MOA SRP", "SRP", ""),
        capymoa("MOA LB", "LeveragingBagging", ""),
        capymoa("MOA SAMkNN", "SAMkNN", ""),
        capymoa("MOA SGBT/SGBR", "SGBT", "SGBR"),
        capymoa("MOA SOKNL", "", "SOKNL"),
    ]


def with_lags(models: list[Model]) -> list[Model]:
    """The same information for all: ours told to keep lags, no change at all, and every peer with inputs more."""
    ours = Model(
        f"AdaptiveKernel{WITH_LAGS}",
        own("AdaptiveKernelClassifier", lags=1),
        own("AdaptiveKernelRegressor", lags=N_LAGS),
        library=OURS,
        lags=True,
    )
    no_change = Model(
        "no change",
        lambda _s, _k: dummy.NoChangeClassifier(),
        lambda _s, _k: dummy.StatisticRegressor(stats.Shift(0)),
        seeded=False,
    )
    peers = [replace(model, name=model.name + WITH_LAGS, lags=True) for model in models if not model.ours]
    return [ours, replace(no_change, lags=True), *peers]


def models() -> list[Model]:
    """Every model, first without lags, ours first; one that the library does not have yet is left out."""
    known = plain()
    known += with_lags(known)
    return [model for model in known if model.classifier is not None or model.regressor is not None]
