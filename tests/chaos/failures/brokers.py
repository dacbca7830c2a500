"""The broker dies, stops answering or is not there; or the network fails, and the broker knows nothing of it."""

from __future__ import annotations

import time

from tests.chaos.failure import Inject, failure
from tests.chaos.proxy import Proxy
from tests.chaos.settings import ARRIVAL, FILES, LOGGED, PLAIN, TRANSACTIONS, Setting
from tests.chaos.trial import Trial

_AWAY = r"no broker answers"
_BACK = r"a broker answers again"
_READING = r"reading kafka topic"


@failure("broker SIGKILL and restart", _AWAY, TRANSACTIONS, PLAIN, LOGGED, ARRIVAL, FILES)
def killed(trial: Trial) -> int:
    """Kill the broker while records come and go."""
    trial.produce(2000)
    trial.feed(300)
    daemon = trial.start()
    times = 3 if trial.long else 1
    for _ in range(times):
        trial.wait_for(trial.consumed() + 300)
        time.sleep(trial.draw.uniform(0.0, 1.0))
        trial.site.broker.kill()
        daemon.wait_until_it_says(_AWAY)
        trial.site.broker.start()
        trial.recover(_BACK)
    return times


# In the default suite tests/kafka has a broker that stands still, and one that is not there.
@failure("broker SIGSTOP", _AWAY, PLAIN, TRANSACTIONS, LOGGED, short=False)
def stopped(trial: Trial) -> int:
    """Freeze the broker: 30 s in the long form, until it is told of in the short one."""
    daemon = trial.works(2000, 300, 1000)
    time.sleep(trial.draw.uniform(0.0, 1.0))
    trial.site.broker.pause()
    if trial.long:
        time.sleep(30.0)
    daemon.wait_until_it_says(_AWAY)
    trial.site.broker.resume()
    trial.recover(_BACK)
    return 1


@failure("broker down at start", _AWAY, PLAIN, TRANSACTIONS, LOGGED, short=False)
def down(trial: Trial) -> int:
    """Start with no broker there, at first and later; stop one that waits, let another wait until it comes."""
    trial.produce(2000)
    trial.site.broker.kill()
    if trial.long:
        waiting = trial.start()
        waiting.wait_until_it_says(_AWAY)
        assert waiting.stop() == 0, f"status {waiting.status}"
    trial.start().wait_until_it_says(_AWAY)
    trial.site.broker.start()
    trial.recover(_BACK)
    if trial.long:
        trial.produce(2000)
        trial.wait_for(3000)
        trial.daemons[-1].kill()
        trial.site.broker.kill()
        trial.start().wait_until_it_says(_AWAY)
        time.sleep(30.0)
        trial.site.broker.start()
    return 2 if trial.long else 1


@failure("SIGTERM while the broker is frozen", _AWAY, TRANSACTIONS, PLAIN, short=False)
def stopped_while_frozen(trial: Trial) -> int:
    """Ask the daemon to end while nobody answers: what it cannot save it says, and does again later."""
    daemon = trial.works(2000, 300, 1000)
    trial.site.broker.pause()
    daemon.wait_until_it_says(_AWAY)
    assert daemon.stop() in (0, 1), f"status {daemon.status}"
    trial.site.broker.resume()
    return 1


def _works(trial: Trial) -> None:
    trial.works(1000, 300, 500)
    time.sleep(trial.draw.uniform(0.0, 1.0))


def _outage(fail: Inject) -> Inject:
    """Fail while records come, until it is told of, or for half a minute."""

    def inject(trial: Trial) -> int:
        _works(trial)
        fail(trial)
        if trial.long:
            time.sleep(30.0)
        trial.daemons[-1].wait_until_it_says(_AWAY)
        trial.site.network.flow()
        trial.recover(_BACK)
        return 1

    return inject


def _does(name: str, break_it: str, *settings: Setting, short: bool = True) -> None:
    method = getattr(Proxy, break_it)

    def fail(trial: Trial) -> int:
        method(trial.site.network)
        return 1

    failure(name, _AWAY, *settings, short=short, by_network=True)(_outage(fail))


_does("network stall", "stall", TRANSACTIONS, PLAIN, LOGGED)
_does("network refuses connections", "refuse", TRANSACTIONS, PLAIN, LOGGED, short=False)
# It takes as long as a request may, half a minute: whoever swallows them acknowledges each packet.
_does("network swallows everything", "lose", TRANSACTIONS, PLAIN, LOGGED, short=False)


@failure("network resets connections", _READING, PLAIN, TRANSACTIONS, LOGGED, by_network=True)
def cut(trial: Trial) -> int:
    """Reset all connections, again and again: each is created again at once."""
    _works(trial)
    times = 50 if trial.long else 10
    for _ in range(times):
        time.sleep(trial.draw.uniform(0.0, 0.3))
        trial.site.network.cut()
    return times


@failure("network is slow", _READING, TRANSACTIONS, PLAIN, by_network=True, short=False)
def slow(trial: Trial) -> int:
    """Hand everything on a fifth of a second later: nothing is wrong, nothing is complained of."""
    _works(trial)
    trial.site.network.delay(0.2)
    time.sleep(10.0 if trial.long else 1.0)
    return 1


@failure("SIGKILL while the network stalls", _READING, PLAIN, TRANSACTIONS, by_network=True)
def killed_with_lines_under_way(trial: Trial) -> int:
    """Die with requests on the wire that reach the broker when the next life has begun."""
    times = 10 if trial.long else 2
    _works(trial)
    for _ in range(times):
        trial.site.network.stall()
        time.sleep(trial.draw.uniform(0.0, 0.5))
        trial.daemons[-1].kill()
        trial.start()
        time.sleep(trial.draw.uniform(0.0, 1.0))
        trial.site.network.flow()
        time.sleep(trial.draw.uniform(0.5, 1.5))
    return times
