"""Runs a target in a child process, and notes cases it dies of or hangs at."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.fuzz.child import DONE, STARTING
from benchmarks.fuzz.process_clock import ProcessClock

_ROOT = Path(__file__).parents[2]

#: What takes longer hangs; the time in which other processes had the processor does not count.
HANG_SECONDS = 5.0
#: Before the first case everything is imported and compiled.
START_SECONDS = 180.0
#: What a process may take more than after its first case: the caches of the models and one large record.
GROWTH_MB = 768.0


@dataclass
class Tried:
    """What came of a target."""

    cases: int = 0
    seconds: float = 0.0
    growth_mb: float = 0.0  #: of the process that grew most, after its first case
    found: list[tuple[int, str]] = field(default_factory=list)  #: a case and a sentence each


def tried(dotted: str, seed: int, seconds: float, folder: Path) -> Tried:
    """Try a target for some seconds; a child that died or hung is followed by another, from the next case on."""
    folder.mkdir(parents=True, exist_ok=True)
    result = Tried()
    start, first = time.monotonic(), 0
    while (left := seconds - (time.monotonic() - start)) > 0:
        (folder / "progress").write_bytes(b"%20d" % STARTING)
        ended = _watched([dotted, str(seed), str(first), str(left), str(folder.resolve())], folder / "progress")
        case = int((folder / "progress").read_bytes())
        if ended is None:
            break
        result.found.append((case, ended))
        if case in (DONE, STARTING):
            break
        result.cases += case + 1 - first
        first = case + 1
    _read(folder / "found", result)
    result.seconds = time.monotonic() - start
    if result.growth_mb > GROWTH_MB:
        result.found.append((-1, f"the memory grew by {result.growth_mb:.0f} MB"))
    return result


def _watched(arguments: list[str], progress: Path) -> str | None:
    """Run a child; a sentence where it did not end well."""
    errors = progress.with_name("errors")
    with errors.open("w") as file:
        command = [sys.executable, "-m", "benchmarks.fuzz.child", *arguments]
        child = subprocess.Popen(command, stderr=file, cwd=_ROOT)
    at, spent = progress.read_bytes(), ProcessClock(child.pid)
    while (status := child.poll()) is None:
        time.sleep(0.1)
        now = progress.read_bytes()
        patience = START_SECONDS if int(now) in (DONE, STARTING) else HANG_SECONDS
        if now != at:
            at = now
            spent.renew()
        elif spent.seconds > patience:
            child.kill()
            child.wait()
            return f"it hung for more than {patience:g} s"
    if status == 0:
        return None
    last = errors.read_text().strip().splitlines()[-1:]
    return f"the process ended with status {status}: {''.join(last):.200}"


def _read(path: Path, result: Tried) -> None:
    for line in path.read_text().splitlines() if path.exists() else []:
        said = json.loads(line)
        if "found" in said:
            result.found.append((said["case"], said["found"]))
        else:
            result.cases += said["cases"]
            result.growth_mb = max(result.growth_mb, said["peak"] - said["start"])
