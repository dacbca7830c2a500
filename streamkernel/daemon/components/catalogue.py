"""All optional features, and the problems of a configuration that follow from their declarations."""

from __future__ import annotations

from collections.abc import Mapping

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.components.columns import COLUMNS
from streamkernel.daemon.components.declaration import conflicts
from streamkernel.daemon.components.group_mode import GROUP_MODE, GROUP_OPTIONS
from streamkernel.daemon.components.late_labels import LATE_LABELS
from streamkernel.daemon.components.predict_mode import INITIAL_MODEL, PREDICT_MODE, RELOAD, SERVE_FROM
from streamkernel.daemon.components.serving import JOURNAL, SERVING
from streamkernel.daemon.components.several_models import ALL_MODELS, PUBLISH, SEVERAL_MODELS
from streamkernel.daemon.components.sources import SEVERAL_TARGETS, SOURCES
from streamkernel.daemon.components.topics import CHECKPOINT, LOGGED_ORDER, MESSAGES, TOPICS, TRANSACTIONS
from streamkernel.daemon.components.warm_start import WARM_START
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.schema import Config

__all__ = ["feature_problems", "model_problems"]

_COMPONENTS = (
    *(CHECKPOINT, LOGGED_ORDER, SOURCES, LATE_LABELS, WARM_START),
    *(PREDICT_MODE, SERVE_FROM, RELOAD, INITIAL_MODEL),
    *(SEVERAL_MODELS, PUBLISH, ALL_MODELS, SEVERAL_TARGETS),
    *(*COLUMNS, JOURNAL, SERVING, GROUP_MODE, GROUP_OPTIONS, MESSAGES, TOPICS, TRANSACTIONS),
)


def feature_problems(config: Config) -> list[Problem]:
    """Return a problem for each setting that another one rules out, of a configuration valid in each section."""
    return list(conflicts(config, _COMPONENTS))


def model_problems(config: Config, models: Mapping[str, Model], published: str) -> list[Problem]:
    """Return a problem for each setting that does not fit the models, of which one is published."""
    active = (component for component in _COMPONENTS if component.active(config))
    return [problem for component in active for problem in component.model_problems(config, models, published)]
