"""The sentence that says why a group refuses a member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import errors

from streamkernel.connectors.ports import SourceError

__all__ = ["refusal"]


def refusal(error: Exception, config: Mapping[str, Any]) -> SourceError | None:
    """Return what an error of a consumer with a group means; None for one that may pass."""
    if isinstance(error, errors.GroupAuthorizationFailedError):
        user = config["sasl_plain_username"]
        who = f"the user {user}" if user else "a user without a name"
        return SourceError(f"{who} is not authorized to use the group: grant it Read on the group")
    if isinstance(error, errors.TopicAuthorizationFailedError):
        return SourceError("the right to read the topic was withdrawn: grant it Read and Describe")
    if isinstance(error, errors.InvalidSessionTimeoutError):
        return SourceError(
            f"the broker does not accept a session_timeout_ms of {config['session_timeout_ms']}: choose one between "
            "its group.min.session.timeout.ms and group.max.session.timeout.ms"
        )
    if isinstance(error, errors.InconsistentGroupProtocolError):
        return SourceError("the group has members of another kind: give source.group its own name")
    if isinstance(error, errors.GroupMaxSizeReachedError):
        return SourceError("the group has as many members as the broker allows (group.max.size)")
    if isinstance(error, errors.RetriableError | RuntimeError):
        return None
    return SourceError(f"the client of Kafka failed: {type(error).__name__}: {error}")
