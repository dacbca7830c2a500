"""A run of the prediction service from its start to its end: what `streamkernel serve` does."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from streamkernel.connectors.journal.writer import JournalWriter
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.base.notifier import Notifier
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.http.server import Server
from streamkernel.daemon.run_state.trained import trained_models
from streamkernel.daemon.serve.endpoints import ServiceEndpoints
from streamkernel.daemon.serve.group_commit import GroupCommit
from streamkernel.daemon.serve.openapi import PAGE_POLICY, openapi_route, page
from streamkernel.daemon.serve.predictor import Predictor
from streamkernel.daemon.serve.roles import ServicePlan, service_plan
from streamkernel.daemon.serve.service_metrics import ServiceMetrics
from streamkernel.daemon.stream.loop import rare_collections
from streamkernel.daemon.stream.stop import StopSignals

__all__ = ["serve"]

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.1
_SWITCH_SECONDS = 0.0005


def serve(plan: Plan, partition: int | None = None) -> None:
    """Serve predictions until a signal comes.

    Parameters
    ----------
    plan
        The configuration of the run that learns, or one in mode predict.
    partition
        With ``source.group``, the partition whose model answers.

    Raises
    ------
    ConfigError
        Where there is nothing to serve.
    CheckpointError
        Where the newest checkpoint is sound and cannot be used.
    ConnectorError
        Where a journal cannot be written.
    ServerError
        Where the port is taken or a certificate cannot be used.

    """
    service = service_plan(plan, partition)
    with ExitStack() as stack:
        stopped = stack.enter_context(StopSignals())
        health = Health()
        stack.enter_context(Notifier(health, stopped))
        start_service(service, stack, health)
        # A thread that loads a checkpoint lets go of the interpreter after so long, each time the event loop asks.
        sys.setswitchinterval(_SWITCH_SECONDS)
        stack.enter_context(rare_collections())
        while not stopped():
            time.sleep(_LOOK_SECONDS)
        _log.info("%s came: finishing the requests in progress", stopped.name)
        health.ready = False


def start_service(service: ServicePlan, stack: ExitStack, health: Health) -> Server:
    """Start the server of a service, which ends when the stack is left: first the requests, then what they need."""
    metrics = ServiceMetrics()
    journals: dict[str, GroupCommit] = {}
    for role in (service.records, service.labels):
        if (settings := role.journal) is not None and role.section not in journals:
            writer = JournalWriter(Path(settings.directory), settings.max_bytes)
            writer.open()
            counters = metrics.journal(role.section, writer.size, settings.max_bytes)
            journals[role.section] = GroupCommit(writer, counters)
            stack.callback(journals[role.section].close)
    reader = trained_models(service.plan)
    predictor = Predictor(service.plan, reader, service.settings.reload, metrics.trained)
    stack.callback(predictor.close)
    predictor.start()
    health.obstacle = lambda: _obstacle(predictor, journals)
    health.policy = PAGE_POLICY
    health.page = lambda: page(service, predictor.obstacle)
    routes = [*ServiceEndpoints(service, predictor, journals, metrics).routes(), openapi_route(service)]
    server = Server(
        service.settings,
        metrics.registry,
        health,
        routes,
        section="serve",
        max_body_bytes=service.settings.max_body_bytes,
    )
    stack.callback(server.close)
    health.ready, health.summary = True, lambda: f"serving predictions at {server.url}"
    _log.info("serving predictions at %s/predict", server.url)
    return server


def _obstacle(predictor: Predictor, journals: dict[str, GroupCommit]) -> str | None:
    """Return why not all requests can be answered; None where they can."""
    troubles = (predictor.obstacle, *(journal.trouble for journal in journals.values()))
    return next((trouble for trouble in troubles if trouble), None)
