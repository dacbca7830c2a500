"""Targets that go wrong in a way of their own, each at its fourth case."""

import os
import time

from benchmarks.fuzz.child import draw_of


class Stub:
    resident_mb = 0.0

    def __init__(self, _folder):
        self._fourth = draw_of(7, type(self).__name__, 3).random()

    def warm_up(self):
        pass

    def case(self, draw):
        time.sleep(0.01)
        return self.go_wrong() if draw.random() == self._fourth else None

    def go_wrong(self):
        return None

    def close(self):
        pass


class Finding(Stub):
    def go_wrong(self):
        return "a finding"


class Failing(Stub):
    def warm_up(self):
        raise RuntimeError("no start")


class Crashing(Stub):
    def go_wrong(self):
        os.abort()


class Hanging(Stub):
    def go_wrong(self):
        time.sleep(60)


class Growing(Stub):
    def go_wrong(self):
        self.kept = b"x" * 2**27
