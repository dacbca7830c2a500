"""All optional features, and the problems of a configuration with them, with its models and with a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.components.columns import COLUMNS
from streamkernel.daemon.components.declaration import Component, conflicts
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

__all__ = ["PROMOTE", "REPLAY", "Command", "feature_problems", "model_problems"]

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


@dataclass(frozen=True)
class Command:
    """A command that not every configuration suits.

    Attributes
    ----------
    needs, excludes
        The features that must be on and off: by the key that turns each on, the feature and the message of the problem.

    """

    needs: Mapping[str, tuple[Component, str]]
    excludes: Mapping[str, tuple[Component, str]]

    def problems(self, config: Config) -> list[Problem]:
        """Return why a configuration does not suit.

        Examples
        --------
        >>> config = Config(source={"kind": "csv", "path": "a.csv"}, model=["a.B"])
        >>> [problem.path for problem in PROMOTE.problems(config)]
        ['models', 'checkpoint']

        """
        missing = [Problem(key, why) for key, (one, why) in self.needs.items() if not one.active(config)]
        return [*missing, *(Problem(key, why) for key, (one, why) in self.excludes.items() if one.active(config))]


PROMOTE = Command(
    needs={
        "models": (SEVERAL_MODELS, "required by promote; a configuration with model has one, which is published"),
        "checkpoint": (CHECKPOINT, "required by promote, which writes the published name into the newest checkpoint"),
    },
    excludes={"mode": (PREDICT_MODE, "must be learn for promote: in mode predict, publish names the model")},
)
REPLAY = Command(
    needs={"checkpoint": (CHECKPOINT, "required by replay, which learns into the newest checkpoint of its directory")},
    excludes={"mode": (PREDICT_MODE, "must be learn for replay: in mode predict, read the fixed records as a source")},
)
