"""What the commands need and exclude of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamkernel.daemon.components.declaration import Component
from streamkernel.daemon.components.predict_mode import PREDICT_MODE
from streamkernel.daemon.components.several_models import SEVERAL_MODELS
from streamkernel.daemon.components.topics import CHECKPOINT
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.schema import Config

__all__ = ["PROMOTE", "REPLAY", "Command"]


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
