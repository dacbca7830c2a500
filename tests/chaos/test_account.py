"""The harness finds what is wrong: a table of zeros means something only if it would show a one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import islice

import orjson
import pytest

from tests.chaos.account import Findings, Line, Place, account, compare, listen
from tests.chaos.settings import PLAIN
from tests.chaos.site import Site
from tests.chaos.stream import LEARNED, SKIPPED, UNLABELED, Row, rows
from tests.chaos.trial import Trial

EXPECTED: dict[Place, Row] = {(0, number): row for number, row in enumerate(islice(rows(3), 500))}


class Accounts:
    """What a daemon without a fault leaves behind."""

    def __init__(self) -> None:
        self.predictions = [Line(place, b'{"prediction":"yes"}') for place, row in EXPECTED.items() if row.predicted]
        self.letters = [Line(place, orjson.dumps({"reason": row.fate})) for place, row in EXPECTED.items() if row.dead]
        fates = Counter("dead" if row.dead else row.fate for row in EXPECTED.values())
        assert set(fates) == {"dead", LEARNED, SKIPPED, UNLABELED}
        self.account = {**fates, "consumed": len(EXPECTED), "predicted": len(self.predictions)}

    def findings(self) -> Findings:
        return account(EXPECTED, self.predictions, self.letters, self.account)


def a_lost_prediction(books: Accounts) -> None:
    del books.predictions[7]


def a_doubled_prediction(books: Accounts) -> None:
    books.predictions.append(books.predictions[7])


def a_lost_dead_letter(books: Accounts) -> None:
    del books.letters[1]


def a_doubled_dead_letter(books: Accounts) -> None:
    books.letters.insert(0, books.letters[1])


def a_lost_record(books: Accounts) -> None:
    books.account["learned"] -= 1


def a_doubled_record(books: Accounts) -> None:
    books.account["learned"] += 1


def a_record_that_was_never_taken(books: Accounts) -> None:
    books.account["consumed"] -= 1


def a_dead_letter_for_a_good_record(books: Accounts) -> None:
    books.letters.append(Line(books.predictions[7].place, b'{"reason":"not_json"}'))


def a_prediction_for_a_bad_record(books: Accounts) -> None:
    books.predictions.append(Line(books.letters[0].place, b'{"prediction":"yes"}'))


def a_line_for_no_record(books: Accounts) -> None:
    books.predictions.append(Line((1, 0), b'{"prediction":"yes"}'))


def another_reason(books: Accounts) -> None:
    books.letters[0] = books.letters[0]._replace(text=b'{"reason":"too_long"}')


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    found = Accounts().findings()
    assert found.good
    assert (found.records, found.lost, found.doubled, found.faults) == (500, 0, 0, [])


@pytest.mark.parametrize(
    ("harm", "lost", "doubled", "said"),
    [
        (a_lost_prediction, 1, 0, "1 no predictions: 0:"),
        (a_doubled_prediction, 0, 1, "1 doubled predictions: 0:"),
        (a_lost_dead_letter, 1, 0, "1 no dead letters: 0:"),
        (a_doubled_dead_letter, 0, 1, "1 doubled dead letters: 0:"),
        (a_lost_record, 1, 0, "learned is "),
        (a_doubled_record, 0, 1, "learned is "),
        (a_record_that_was_never_taken, 0, 0, "consumed is 499 in the checkpoint, and must be 500"),
        (a_dead_letter_for_a_good_record, 0, 0, "1 dead letters of the other kind of record: 0:"),
        (a_prediction_for_a_bad_record, 0, 0, "1 predictions of the other kind of record: 0:"),
        (a_line_for_no_record, 0, 0, "1 lines without a record: 1:0"),
        (another_reason, 0, 0, "1 another reason for the dead letter: 0:"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_wrong_is_found(harm: Callable[[Accounts], None], lost: int, doubled: int, said: str) -> None:
    books = Accounts()
    harm(books)
    found = books.findings()
    assert not found.good
    assert (found.lost, found.doubled) == (lost, doubled)
    assert any(fault.startswith(said) for fault in found.faults), found.faults


@pytest.mark.parametrize(
    ("ours", "digest", "said"),
    [
        ([b"a", b"b"], "same", []),
        ([b"a", b"b"], "other", ["the model's digest is other, that of an undisturbed run same"]),
        ([b"a", b"c"], "same", ["1 of 2 predictions differ from the 2 of an undisturbed run, the first at 1"]),
        ([b"b", b"a"], "same", ["2 of 2 predictions differ from the 2 of an undisturbed run, the first at 0"]),
        ([b"a"], "same", ["0 of 1 predictions differ from the 2 of an undisturbed run, the first at 1"]),
    ],
)
def test_another_model_and_other_predictions_are_found(ours: list[bytes], digest: str, said: list[str]) -> None:
    found = Findings()
    compare(found, ours, digest, [b"a", b"b"], "same")
    assert found.faults == said
    assert found.good is not bool(said)
    compare(found, [b"a", b"b"], "same", [b"a", b"b"], "same")
    assert found.digest is (digest == "same"), "a good model made one forget the bad one"


def test_a_log_that_does_not_tell_and_one_that_tells_too_much_are_found() -> None:
    found = Findings()
    listen(found, "info    begins\nerror   it broke: mend it", [r"error .*broke"])
    assert found.good
    assert found.said == "error   it broke: mend it"
    listen(found, "info    begins", ["error .*broke"])
    listen(found, "Traceback (most recent call last):", [])
    listen(found, "x.py:1: ResourceWarning: unclosed <socket.socket fd=9>", [])
    assert not found.good
    assert [fault.partition(":")[0] for fault in found.faults] == [
        "the log never says 'error .*broke'",
        "the log says",
        "the log says",
    ]


@pytest.mark.parametrize("group", [False, True], ids=["alone", "in a group"])
def test_what_a_decoder_says_of_a_dead_letter_is_no_fault(group: bool) -> None:
    found = Findings()
    where = "partition 1: " if group else ""
    text = f"warning {where}a dead letter of the records at offset 13: not_json: unexpected end of data"
    listen(found, f"2026-11-22T12:06:34.750Z {text}", [])
    assert found.good, found.faults


@pytest.mark.parametrize(
    ("call", "times", "lost", "doubled"),
    [
        ("streamkernel.connectors.kafka.writing.sink:KafkaSink.write", 0, True, False),
        ("kafka:KafkaProducer.send", 2, False, True),
        ("streamkernel.daemon.stream.learner:AdvancingLearner._advance", 2, False, False),
    ],
    ids=["lines are dropped", "a line is sent twice", "records are learned twice"],
)
def test_a_fault_of_the_daemon_is_found(site: Site, call: str, times: int, lost: bool, doubled: bool) -> None:
    with Trial(site, PLAIN, random.Random(0)) as trial:
        trial.produce(1000)
        trial.start(sabotage=[("miscall", {"call": call, "count": 3, "times": times})])
        trial.finish()
        found = trial.findings([])
    assert not found.good
    assert (bool(found.lost), bool(found.doubled)) == (lost, doubled), found.faults
    # No line is missing, none comes twice, the books are right: only the model itself shows what it was taught twice.
    assert found.digest is (None if lost or doubled else False)
