"""What a topic may hold beside records: transactions in every state, tombstones, gaps, and records that are odd."""

from __future__ import annotations

import time
from itertools import islice

from kafka import KafkaProducer

from tests.chaos.daemons import until
from tests.chaos.failure import failure
from tests.chaos.settings import FILES, LOGGED, PLAIN, TRANSACTIONS
from tests.chaos.stream import SKIPPED, Row, rows
from tests.chaos.trial import Trial
from tests.kafka.producing import consume, produce

_GOES_ON = r"reading kafka topic .* from record [\d,]+ on"


@failure("aborted transactions in the source, control records last", _GOES_ON, TRANSACTIONS, PLAIN, LOGGED, short=False)
def aborted(trial: Trial) -> int:
    """Let others abort and commit, before and while the daemon reads, and end with the marks of an abort."""
    other = f"other-{trial.topics['records']}"
    for count, abort in ((300, True), (500, False), (300, True)):
        trial.produce(count, transactional_id=other, abort=abort)
    daemon = trial.start()
    trial.wait_for(500)
    daemon.kill()
    trial.produce(500, transactional_id=other)
    trial.start()
    trial.produce(300, transactional_id=other, abort=True)
    trial.wait_for(1000)
    return 1


@failure(
    "a transaction in the source that stays open",
    r"warning .*partition 0: the transaction that began at offset 500 has been open for more than \d+ s",
    TRANSACTIONS,
    PLAIN,
    short=False,  # it is told after half a minute
)
def hanging(trial: Trial) -> int:
    """Let somebody's transaction stay open for long, with records behind it, and abort it at last."""
    trial.produce(500)
    producer = KafkaProducer(
        bootstrap_servers=trial.site.broker.bootstrap,
        transactional_id=f"other-{trial.topics['records']}",
        transaction_timeout_ms=600_000,  # by default the broker would end it before both daemons have told of it
    )
    trial.stack.callback(producer.close, timeout=5)
    producer.init_transactions()
    producer.begin_transaction()
    for row in islice(rows(1), 100):
        producer.send(trial.topics["records"], row.value, key=b"never", partition=0)
    producer.flush()
    trial.produce(500)
    for _ in range(2 if trial.long else 1):
        daemon = trial.start()
        trial.wait_for(500)
        daemon.wait_until_it_says("has been open for more than")
        daemon.kill()
    daemon = trial.start()
    producer.abort_transaction()
    return 1


@failure("tombstones and gaps of a compacted topic", _GOES_ON, TRANSACTIONS, PLAIN, FILES, short=False)
def compacted(trial: Trial) -> int:
    """Let two of three records be replaced, one of them by a tombstone, and the broker remove what was replaced."""
    trial.recreate(cleanup_policy="compact", segment_ms=100, min_cleanable_dirty_ratio=0.01)
    name, bootstrap = trial.topics["records"], trial.site.broker.bootstrap
    trial.produce(900)
    newer: list[Row] = [row for number, row in enumerate(islice(rows(2), 900)) if number % 3]
    newer = [row._replace(value=None, fate=SKIPPED) if number % 2 else row for number, row in enumerate(newer)]
    produce(bootstrap, name, [row.value for row in newer], keys=lambda number: newer[number].key)
    trial.replace(newer)

    def compacted() -> bool:
        time.sleep(0.2)
        trial.produce(1)  # a segment that is still written to is not compacted
        held = consume(bootstrap, name)[0]
        return len({record.key for record in held}) == len(held)

    until(compacted, lambda: "the topic was never compacted")
    daemon = trial.start()
    trial.wait_for(250)
    daemon.kill()
    return 1


@failure("records without a key", _GOES_ON, PLAIN, TRANSACTIONS, short=False)
def keyless(trial: Trial) -> int:
    """Produce records that have no key, among others that have."""
    trial.produce(500, keyless=True)
    daemon = trial.start()
    trial.wait_for(500)
    daemon.kill()
    trial.produce(500)
    trial.produce(500, keyless=True)
    return 1


class _NoText(str):
    """A name that is no UTF-8 on the network."""

    def encode(self, *_: object) -> bytes:
        return b"\xff"


@failure(
    "headers whose names are no text",
    _GOES_ON,
    PLAIN,
    TRANSACTIONS,
    short=False,  # tests.kafka.test_source_holes has it
)
def headers(trial: Trial) -> int:
    """Produce a batch with such a record: it is read as every other one."""
    trial.produce(500)
    trial.book(last=True)  # the client of the account cannot read the batch
    trial.produce(20, headers=lambda number: [(_NoText("odd"), b"")] if number == 5 else [])
    trial.produce(500)
    for offset in range(500, 1020):
        trial.expected[0, offset] = trial.made(b"%d" % offset)
    daemon = trial.start()
    trial.wait_for(250)
    daemon.kill()
    return 1
