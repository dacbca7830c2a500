"""What metrics and page cost a daemon that learns, counted: the processor's time in all that is done for them.

    python -m benchmarks.monitoring_counted [--records N] [--out DIR] [--quick]

Beside `benchmarks.monitoring`, which compares daemons and has the noise of the machine: here each call is timed by the
clock of its thread, in one process that learns, while it is scraped every second and a page polls every two.
"""

import argparse
import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import yaml

from benchmarks.daemon import FEATURES, make_streams
from benchmarks.monitoring import LEARNING, POLLED, SCRAPED, configure
from benchmarks.report import machine, table, write
from benchmarks.watched_daemon import start_client
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.http.published import PublishedMetrics
from streamkernel.daemon.lifecycle import LifecycleListener
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.status import StatusBoard
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.runtime import run

COUNTED = {
    "counting a chunk": (Exporter, "chunk"),
    "the view, gauges and snapshots, twice a second": (Watch, "refresh"),
    "answering scrapes": (PublishedMetrics, "answer"),
    "answering the page": (StatusBoard, "to_json"),
}


class Watched(LifecycleListener):
    """Starts the clients when the metrics are served, and the clock when records are read."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self.began = 0.0

    def serving(self, host: str, port: int) -> None:  # noqa: ARG002
        self.clients = [start_client(port, one) for one in (SCRAPED, POLLED)]

    def reading(self, record: int) -> None:  # noqa: ARG002
        self.spent.clear()
        self.began = time.process_time()

    def count(self, name: str, owner: type, method: str) -> None:
        """Time each call of a method."""
        called = getattr(owner, method)

        def counted(*arguments: Any) -> Any:
            start = time.thread_time()
            try:
                return called(*arguments)
            finally:
                self.spent[name] += time.thread_time() - start

        setattr(owner, method, counted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="few records, to see that it works")
    options = parser.parse_args()
    n_records = 50_000 if options.quick else options.records
    watched = Watched()
    for name, (owner, method) in COUNTED.items():
        watched.count(name, owner, method)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_streams(folder, n_records)
        config = folder / "config.yaml"
        document = configure(folder, folder / "stream.jsonl", LEARNING["growing"], {"port": 0})
        config.write_text(yaml.safe_dump(document))
        view = run(prepare(config), fresh=True, listener=watched)
    total = time.process_time() - watched.began
    for client in watched.clients:
        client.communicate()
    rows = [[name, f"{watched.spent[name] / total:.2%}"] for name in COUNTED]
    write(
        options.out / "monitoring-counted.md",
        "\n\n".join(
            [
                "# What being watched costs, counted",
                f"`python -m benchmarks.monitoring_counted` on {machine()}; `KernelClassifier(max_features={FEATURES}, "
                f"precondition=False)`, {n_records:,} records at {view.rate:,.0f} a second, scraped every second, and "
                "a page that polls. Shares of the processor's time of the daemon.",
                table(["what", "share"], [*rows, ["all", f"{sum(watched.spent.values()) / total:.2%}"]]),
            ]
        ),
    )


if __name__ == "__main__":
    main()
