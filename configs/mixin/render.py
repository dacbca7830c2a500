"""The files of the mixin, as text by their name."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import yaml

from configs.mixin.alerts import alerting_rules
from configs.mixin.dashboards import board_of_the_daemon, board_of_the_service
from configs.mixin.rules import recording_rules
from configs.mixin.settings import MixinSettings

__all__ = ["rendered"]

_HEADER = "# Written by `python -m configs.mixin`, whose options change addresses and bounds.\n"


def rendered(settings: MixinSettings) -> Mapping[str, str]:
    """Return the text of each file."""
    return {
        "alerts.yaml": _yaml(alerting_rules(settings)),
        "dashboards/streamkernel-serve.json": _json(board_of_the_service(settings)),
        "dashboards/streamkernel.json": _json(board_of_the_daemon(settings)),
        "rules.yaml": _yaml(recording_rules()),
    }


def _json(board: dict[str, Any]) -> str:
    return json.dumps(board, indent=2, sort_keys=True) + "\n"


def _yaml(groups: dict[str, object]) -> str:
    # No text has several lines: the `std.parseYaml` of jsonnet 0.18, which Debian has, fails over them.
    return _HEADER + yaml.safe_dump(groups, sort_keys=False, width=math.inf, allow_unicode=True)
