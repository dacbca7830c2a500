"""Where a partition begins: one that is idle when the first daemon runs, and one that is added to the topic."""

from __future__ import annotations

from tests.chaos.daemons import Daemon, until
from tests.chaos.failure import Inject, failure
from tests.chaos.settings import ARRIVAL, GROUP, LOGGED, PLAIN, TRANSACTIONS
from tests.chaos.trial import Trial

_GOES_ON = r"reading kafka topic .* from record [\d,]+ on"
_SOON = {"options": {"metadata_max_age_ms": 500}}


def _begun(trial: Trial, daemon: Daemon) -> None:
    """Wait until each partition has a place in a checkpoint."""

    def places() -> int:
        header = trial.header()
        headers = header["partitions"].values() if "partitions" in header else [header]
        return sum(len(each.get("source", {}).get("positions", [])) for each in headers)

    until(
        lambda: places() >= trial.partitions or daemon.status is not None,
        lambda: f"only {places()} of {trial.partitions} partitions have a place:\n{daemon.log[-4000:]}",
    )
    assert daemon.status is None, f"the daemon ended ({daemon.status})"


def _idle(active: bool) -> Inject:
    def begin(trial: Trial) -> int:
        daemon = trial.start()
        _begun(trial, daemon)
        if active:
            trial.produce(500, partition=0)
            trial.wait_for(500)
        for _ in range(2):
            trial.daemons[-1].kill()
            trial.produce(50 * trial.partitions)
            _begun(trial, trial.start())
        return 2

    return begin


for _start in ("earliest", "latest"):
    _settings = [PLAIN, TRANSACTIONS, LOGGED, GROUP]
    _source = {"start": _start}
    _short = _start == "latest"
    failure(f"an idle topic, start: {_start}", _GOES_ON, *_settings, source=_source, short=_short)(_idle(active=False))
    failure(f"idle partitions, start: {_start}", _GOES_ON, LOGGED, ARRIVAL, GROUP, source=_source, short=False)(
        _idle(active=True)
    )


@failure(
    "retention takes what came to an idle topic while down",
    r"error .*partition 0: offsets 0 to 59 \(60 of them\) were removed by retention before they were read",
    PLAIN,
    GROUP,
    source={"on_gap": "skip"},
    short=False,
)
def idle_gap(trial: Trial) -> int:
    """Remove what the daemon would have read, had it been there: nobody but the first checkpoint knows."""
    daemon = trial.start()
    _begun(trial, daemon)
    daemon.kill()
    trial.produce(100 * trial.partitions)
    trial.retain(60)
    return 1


@failure(
    "partitions added to the source while it is read",
    r"info .*has new partitions, which are read from their first record on: 3, 4",
    LOGGED,
    ARRIVAL,
    source=_SOON,
    short=False,  # tests.kafka.test_source has it
)
def added_while_read(trial: Trial) -> int:
    """Add partitions, and kill the daemon when it reads them."""
    daemon = trial.learns(900)
    trial.add_partitions(2)
    trial.produce(1500)
    daemon.wait_until_it_says("has new partitions")
    trial.wait_for(2000)
    daemon.kill()
    trial.produce(1500)
    return 1


@failure("partitions added to the source of a group", r"holding partitions 0, 1, 2, 3, 4", GROUP, short=False)
def added_to_a_group(trial: Trial) -> int:
    """Add partitions: the members share them out."""
    member = trial.learns(900)
    trial.add_partitions(2)
    trial.produce(1500)
    trial.wait_for(1200)
    member.kill()
    trial.produce(1500)
    return 1


@failure("partitions added to the source while down", _GOES_ON, LOGGED, ARRIVAL, GROUP, short=False)
def added_while_down(trial: Trial) -> int:
    """Add partitions: the next start reads them whole."""
    daemon = trial.learns(900)
    daemon.kill()
    trial.add_partitions(2)
    trial.produce(1500)
    return 1


@failure(
    "retention takes the first records of an added partition",
    r"error .*partition 3: offsets 0 to 199 \(200 of them\) were removed by retention before they were read",
    ARRIVAL,
    LOGGED,
    GROUP,
    source={"on_gap": "skip"},
    short=False,
)
def added_gap(trial: Trial) -> int:
    """Remove what was never read: it is a gap, though no place in the partition was known."""
    daemon = trial.learns(900)
    daemon.kill()
    trial.add_partitions(1)
    trial.produce(800, partition=3)
    trial.retain(200, partition=3)
    return 1
