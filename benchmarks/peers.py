"""The models of the accuracy benchmark: ours, and River's behind a StandardScaler, all as they come by default."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from river import ensemble, feature_extraction, forest, linear_model, multiclass, neighbors, preprocessing, tree

import streamkernel

Make = Callable[[int, int], Any]


@dataclass(frozen=True)
class Model:
    """A line of the tables; `classifier` and `regressor` take the seed and the number of classes."""

    name: str
    classifier: Make | None
    regressor: Make | None
    seeded: bool = True
    ours: bool = False

    def make(self, seed: int, n_classes: int) -> Any:
        """The model for a stream; `n_classes` 0 asks for a regressor."""
        maker = self.classifier if n_classes else self.regressor
        if maker is None:
            raise ValueError(f"{self.name} has no {'classifier' if n_classes else 'regressor'}")
        model = maker(seed, n_classes)
        return model if self.ours else preprocessing.StandardScaler() | model

    def fits(self, n_classes: int) -> bool:
        """Whether there is such a model for a stream of so many classes (0: a regression)."""
        return (self.classifier if n_classes else self.regressor) is not None

    def source(self) -> str:
        """What a result depends on: River's version, or the library's own code."""
        return own_code() if self.ours else f"river {version('river')}"


@cache
def own_code() -> str:
    """A digest of the library's sources but for the daemon's, which no estimator imports."""
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
    """River's default engine of its neighbours, seeded."""
    engine = neighbors.KNNRegressor().engine
    return neighbors.SWINN(dist_func=engine.dist_func, seed=seed)


def sampler(seed: int) -> feature_extraction.RBFSampler:
    return feature_extraction.RBFSampler(seed=seed)


def own(name: str) -> Make | None:
    """An estimator of ours, all defaults; None while the library has none of that name."""
    kind = getattr(streamkernel, name, None)
    return None if kind is None else lambda seed, _k: kind(seed=seed)


def logistic(n_classes: int) -> Any:
    return binary(linear_model.LogisticRegression(), n_classes)


def models() -> list[Model]:
    """Every model, ours first; one that the library does not have yet is left out."""
    known = [
        Model("AdaptiveKernel", own("AdaptiveKernelClassifier"), own("AdaptiveKernelRegressor"), ours=True),
        Model("Kernel", own("KernelClassifier"), own("KernelRegressor"), ours=True),
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
    ]
    return [model for model in known if model.classifier is not None or model.regressor is not None]
