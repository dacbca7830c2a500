"""The broker dies, stops answering, or is not there."""

from __future__ import annotations

import time

from tests.chaos.failure import failure
from tests.chaos.settings import ARRIVAL, FILES, LOGGED, PLAIN, TRANSACTIONS
from tests.chaos.trial import Trial

_AWAY = r"no broker answers"
_BACK = r"a broker answers again"


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
