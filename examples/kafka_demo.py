"""A broker, a stream and the daemon between them, on this machine, until the time is up or Ctrl-C.

    make kafka-demo                                   # 30 seconds at 500 records a second
    python -m examples.kafka_demo --rate 2000 --seconds 120

Starts a broker, makes the topics of configs/kafka.yaml and runs the daemon on that file. Sends records that River's
generator Sine makes: two numbers, and a label that says on which side of a sine wave they are. No record repeats, so
each prediction is for a record that the model has not seen. Prints one line for each step, and the loss and accuracy
every five seconds. At the end it compares how many records were sent with how many were predicted.

The broker is the one of the tests. It needs Java 17 and Maven, listens on loopback only, and is gone afterwards.
"""

import argparse
import math
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from river.datasets import synth

from examples.replay import Replay
from tests.kafka.broker import Broker
from tests.kafka.distribution import UnavailableError, distribution
from tests.kafka.producing import consume

ROOT = Path(__file__).parents[1]
TOPIC, PREDICTIONS, DEAD_LETTERS = "demo", "demo-predictions", "demo-dead-letters"
REPORT_SECONDS = 5.0
# The first run on a machine may compile while records wait.
PATIENCE_SECONDS = 180.0


def stream() -> Iterator[dict[str, float | bool]]:
    """Generate records without end; the same ones in each run."""
    for x, y in synth.Sine(classification_function=2, seed=1):
        yield {"x": x[0], "y": x[1], "label": bool(y)}


def _metrics(page: str) -> dict[str, float]:
    """Return the daemon's metrics by name and labels; empty while it does not serve."""
    try:
        text = urllib.request.urlopen(f"{page}/metrics", timeout=1).read().decode()
    except (urllib.error.URLError, OSError):
        return {}
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name.removeprefix("streamkernel_"): float(value) for name, value in pairs}


def _report(page: str, sent: int) -> None:
    now = _metrics(page)
    lag = sum(value for name, value in now.items() if name.startswith("consumer_lag_records"))
    accuracy = now.get('rolling_metric{metric="accuracy",window="1000"}', math.nan)
    print(
        f"{sent:,} records sent, {now.get('records_learned_total', 0):,.0f} learned, lag {lag:,.0f}, "
        f"progressive loss {now.get('progressive_loss', math.nan):.4f}, "
        f"accuracy on the last 1,000 {accuracy:.3f}",
        flush=True,
    )


def _wait(daemon: subprocess.Popen[bytes], done: Callable[[], bool]) -> None:
    """Wait until something is done; give up when the daemon ends or time is up."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while daemon.poll() is None and time.monotonic() < deadline and not done():
        time.sleep(0.1)


@contextmanager
def _step(text: str) -> Iterator[None]:
    """Say what is awaited, then how long it took."""
    started = time.monotonic()
    print(f"{text} ...", end=" ", flush=True)
    yield
    print(f"done in {time.monotonic() - started:.1f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=500, help="records a second (500)")
    parser.add_argument("--seconds", type=float, default=30, help="how long to send (30); 0: until Ctrl-C")
    parser.add_argument("--port", type=int, default=9108, help="port of the daemon's page (9108)")
    options = parser.parse_args()
    page = f"http://127.0.0.1:{options.port}"
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        try:
            with _step("1/5 Looking for Kafka; the first time, Maven downloads it, a minute"):
                distribution()
        except UnavailableError as error:
            print(f"\nerror: {error}", file=sys.stderr)
            return 1
        with _step("2/5 Starting a broker and making three topics"):
            broker = stack.enter_context(Broker())
            for topic in (TOPIC, PREDICTIONS, DEAD_LETTERS):
                broker.create_topic(topic)
        config = Path(folder, "kafka.yaml")
        text = (ROOT / "configs/kafka.yaml").read_text().replace("127.0.0.1:9092", broker.bootstrap)
        config.write_text(text.replace("port: 9108", f"port: {options.port}"))
        with _step("3/5 Starting the daemon on configs/kafka.yaml"):
            daemon = subprocess.Popen([sys.executable, "-m", "streamkernel", "run", str(config)], cwd=folder)
            _wait(daemon, lambda: bool(_metrics(page)))
        until = f"for {options.seconds:g} seconds" if options.seconds else "until Ctrl-C"
        print(f"4/5 Sending {options.rate:g} records a second to {broker.bootstrap} {until}; watch {page}", flush=True)
        replay = Replay(broker.bootstrap, TOPIC, stream(), options.rate)
        replay.start()
        try:
            started = time.monotonic()
            while daemon.poll() is None and (not options.seconds or time.monotonic() < started + options.seconds):
                time.sleep(REPORT_SECONDS)
                _report(page, replay.produced)
        except KeyboardInterrupt:  # the daemon has the same terminal: it was stopped, too
            print()
        replay.stop()
        replay.join()
        with _step("5/5 Waiting until the daemon has read them all"):
            _wait(daemon, lambda: _metrics(page).get("records_consumed_total", 0) >= replay.produced)
        if daemon.poll() is None:
            daemon.send_signal(signal.SIGTERM)
        status = daemon.wait()
        predicted = len(consume(broker.bootstrap, PREDICTIONS)[0])
    print(f"{replay.produced:,} records sent, {predicted:,} predictions in {PREDICTIONS}")
    if replay.failure is not None:
        print(f"error: the stream ended: {replay.failure}", file=sys.stderr)
    return 1 if status or replay.failure is not None else 0


if __name__ == "__main__":
    sys.exit(main())
