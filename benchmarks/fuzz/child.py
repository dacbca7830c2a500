"""One target in a process of its own: `python -m benchmarks.fuzz.child TARGET SEED FIRST SECONDS FOLDER`.

Before each case its number goes to a file, so that whoever watches knows which one it was that did not come back.
"""

import importlib
import json
import logging
import os
import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

#: More address space than this is refused, so that what would fill the machine raises here.
ADDRESS_SPACE = 8 * 2**30
#: Instead of a case: all were tried.
DONE = -1
#: Instead of a case: what they need is imported and compiled.
STARTING = -2


def made(dotted: str, folder: Path) -> Any:
    """A target by its module and name."""
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)(folder)


def draw_of(seed: int, target: str, case: int) -> random.Random:
    """What a case is drawn from: the same for the same number, whatever was tried before."""
    return random.Random(f"{seed} {target.rpartition('.')[2]} {case}")


def resident_mb() -> float:
    """The memory this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(dotted: str, seed: int, first: int, seconds: float, folder: Path) -> None:
    """Try cases until the time is over; write findings, and at the end a summary, as lines of JSON."""
    logging.getLogger().addHandler(logging.NullHandler())
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    progress = os.open(folder / "progress", os.O_RDWR | os.O_CREAT)
    with (folder / "found").open("a", buffering=1) as found:
        target = made(dotted, folder / f"work-{first}")
        target.warm_up()
        end = time.monotonic() + seconds
        case, start, peak = first, 0.0, 0.0
        while time.monotonic() < end:
            os.pwrite(progress, b"%20d" % case, 0)
            sentence = target.case(draw_of(seed, dotted, case))
            memory = max(resident_mb(), target.resident_mb)
            start = start or memory
            peak = max(peak, memory)
            if sentence is not None:
                found.write(json.dumps({"case": case, "found": sentence}) + "\n")
            case += 1
        found.write(json.dumps({"cases": case - first, "start": start, "peak": peak}) + "\n")
        os.pwrite(progress, b"%20d" % DONE, 0)
        target.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5]))
