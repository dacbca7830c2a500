"""A broker, a stream and the daemon between them, on this machine, until the time is up or Ctrl-C.

    make kafka-demo                                   # 30 seconds at 500 records a second
    python -m examples.kafka_demo --rate 2000 --seconds 120

Replays the bundled data as JSON into a topic, runs the daemon on configs/kafka.yaml, prints once in five seconds what
its metrics say, and ends by comparing what was produced with what was predicted. The broker is the one of the tests:
it needs Java 17 and Maven, listens on loopback only, and is gone afterwards.
"""

import argparse
import itertools
import math
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from examples.replay import Replay, rows
from tests.kafka.broker import Broker
from tests.kafka.producing import consume

ROOT = Path(__file__).parents[1]
TOPIC, PREDICTIONS, DEAD_LETTERS = "bananas", "bananas-predictions", "bananas-dead-letters"
TOLD_SECONDS = 5.0
# The very first run on a machine compiles while the records wait.
CATCH_UP_SECONDS = 180.0


def _metrics(page: str) -> dict[str, float]:
    """What the daemon exports, by name and labels; nothing before it serves."""
    try:
        text = urllib.request.urlopen(f"{page}/metrics", timeout=1).read().decode()
    except (urllib.error.URLError, OSError):
        return {}
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name.removeprefix("streamkernel_"): float(value) for name, value in pairs}


def _tell(page: str, produced: int) -> None:
    now = _metrics(page)
    lag = sum(value for name, value in now.items() if name.startswith("consumer_lag_records"))
    accuracy = now.get('rolling_metric{metric="accuracy",window="1000"}', math.nan)
    print(
        f"produced {produced:,}, learned {now.get('records_learned_total', 0):,.0f}, lag {lag:,.0f}, "
        f"progressive loss {now.get('progressive_loss', math.nan):.4f}, accuracy {accuracy:.3f}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=500, help="records a second (500)")
    parser.add_argument("--seconds", type=float, default=30, help="how long (30); 0: until Ctrl-C")
    parser.add_argument("--port", type=int, default=9108, help="of the daemon's page (9108)")
    options = parser.parse_args()
    page = f"http://127.0.0.1:{options.port}"
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        for topic in (TOPIC, PREDICTIONS, DEAD_LETTERS):
            broker.create_topic(topic)
        config = Path(folder, "kafka.yaml")
        text = (ROOT / "configs/kafka.yaml").read_text().replace("127.0.0.1:9092", broker.bootstrap)
        config.write_text(text.replace("port: 9108", f"port: {options.port}"))
        print(f"a broker at {broker.bootstrap}, the daemon's page at {page}", flush=True)
        daemon = subprocess.Popen([sys.executable, "-m", "streamkernel", "run", str(config)], cwd=folder)
        values = itertools.cycle(rows(ROOT / "examples/data/bananas.csv", ["label"]))
        replay = Replay(broker.bootstrap, TOPIC, values, options.rate)
        replay.start()
        try:
            started = time.monotonic()
            while daemon.poll() is None and (not options.seconds or time.monotonic() < started + options.seconds):
                time.sleep(TOLD_SECONDS)
                _tell(page, replay.produced)
        except KeyboardInterrupt:  # the daemon, in the same terminal, has got it too
            print()
        replay.stop()
        replay.join()
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while daemon.poll() is None and time.monotonic() < deadline:
            if _metrics(page).get("records_consumed_total", 0) >= replay.produced:
                break
            time.sleep(0.2)
        if daemon.poll() is None:
            daemon.send_signal(signal.SIGTERM)
        status = daemon.wait()
        predicted = len(consume(broker.bootstrap, PREDICTIONS)[0])
    print(f"produced {replay.produced:,}, predicted {predicted:,}")
    if replay.failure is not None:
        print(f"the stream ended: {replay.failure}", file=sys.stderr)
    return 1 if status or replay.failure is not None else 0


if __name__ == "__main__":
    sys.exit(main())
