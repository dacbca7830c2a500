"""Every failure, tried on a real broker: what was lost, what came twice, what the log says.

    python -m tests.chaos [--times N] [--only NAME ...] [--short] [--jobs N] [--seed SEED] [--out FILE]

Needs Java and Maven, as the tests do. The random moments come from the seed. A trial that breaks is a fault of its row
and ends nothing else. Status 1 where something is not as it must be; then the logs are kept, and the last line says
where.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import queue
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from benchmarks.report import write
from tests.chaos.failure import Failure, Outcome, run
from tests.chaos.failures import ALL
from tests.chaos.settings import Setting
from tests.chaos.site import Site
from tests.chaos.table import Row, report, surroundings


class _Trials:
    """Makes trials at several sites at once, and puts together the rows of the table."""

    def __init__(self, sites: list[Site], options: argparse.Namespace) -> None:
        self.rows: list[Row] = []
        self._options = options
        self._free: queue.SimpleQueue[Site] = queue.SimpleQueue()
        self._alone = threading.Lock()
        self._command = "python -m tests.chaos " + " ".join(sys.argv[1:])
        for site in sites:
            self._free.put(site)

    def text(self) -> str:
        """Write down what is known by now."""
        return report([row for row in self.rows if row.trials], self._command, surroundings())

    def begin(self, pool: ThreadPoolExecutor, failure: Failure, setting: Setting) -> list[Future[None]]:
        """Begin all trials of one row."""
        row = Row(failure, setting)
        self.rows.append(row)
        return [pool.submit(self._try, row, number) for number in range(self._options.times)]

    def _try(self, row: Row, number: int) -> None:
        site = self._free.get()
        start = time.monotonic()
        found: Outcome | Exception
        try:
            found = run(site, [row.failure], row.setting, self._options.seed, number, long=not self._options.short)
        except Exception as error:
            found = error
        finally:
            self._free.put(site)
        with self._alone:
            good = row.add(number, found)
            print(
                f"{row.failure.name}, {row.setting.name}, trial {number}: {'good' if good else 'NOT as it must be'}, "
                f"{time.monotonic() - start:.1f} s",
                *([] if good else ["\n".join(row.faults)]),
                *([str(found), *getattr(found, "__notes__", [])] if isinstance(found, Exception) else []),
                sep="\n",
                file=sys.stderr,
            )
            if row.trials == self._options.times:
                print(row.line(), flush=True)
                if self._options.out is not None:
                    # What takes long may be ended from outside: what is known by then stays.
                    self._options.out.write_text(self.text() + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1, help="trials of each failure on each configuration")
    parser.add_argument("--only", nargs="+", default=[""], help="failures whose names hold one of these")
    parser.add_argument("--configurations", nargs="+", default=[""], help="those whose names begin with one of these")
    parser.add_argument("--short", action="store_true", help="no longer than it takes to show it, as in the tests")
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time, each with a broker of its own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    chosen = [each for each in ALL if any(name in each.name for name in options.only)]
    if not chosen:
        parser.error(f"there is no such failure, only: {'; '.join(each.name for each in ALL)}")
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    print(f"seed {options.seed}, {len(chosen)} failures, files in {folder}", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        sites = []
        for number in range(options.jobs):
            (folder / str(number)).mkdir()
            sites.append(stack.enter_context(Site(folder / str(number))))
        trials = _Trials(sites, options)
        with ThreadPoolExecutor(options.jobs) as pool:
            begun = [
                trial
                for failure in chosen
                for setting in failure.settings
                if any(setting.name.startswith(name) for name in options.configurations)
                for trial in trials.begin(pool, failure, setting)
            ]
        for trial in begun:
            trial.result()
    if options.out is not None:
        write(options.out, trials.text())
    else:
        print(trials.text())
    if any(row.faults for row in trials.rows):
        print(f"the logs are in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
