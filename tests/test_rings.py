"""The rings are kept: what ring 1 forbids is noticed, and what it allows exists."""

import sys
import time
from multiprocessing.process import BaseProcess
from types import SimpleNamespace

import pytest

from tests import rings


def test_a_sleep_and_a_process_are_noticed():
    time.sleep(0)
    sys.audit("os.fork")
    with pytest.raises(AttributeError):  # none is started: this is no process
        BaseProcess.start(SimpleNamespace(name="child"))
    noticed = list(rings.forbidden)
    rings.forbidden.clear()
    assert [sentence.split()[0] for sentence in noticed] == ["sleeps", "starts", "starts"]


def test_the_tests_that_may_start_processes_exist(request):
    collected = request.config.stash[rings.RINGS]
    paths = {name.partition("::")[0] for name in collected}
    for name in rings.END_TO_END:
        if name.partition("::")[0] in paths:
            assert 1 in collected[name]
