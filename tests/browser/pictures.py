"""Pictures of the status page for the documentation: `python -m tests.browser.pictures` makes them again.

A daemon learns, for some minutes, a stream of two rings whose labels are turned round half way, with a few records
that it cannot use; then Chromium takes the page in light, in dark, and on a phone.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import yaml

from tests.browser.chromium import Opened, chromium
from tests.daemon.conftest import program

_ROOT = Path(__file__).parents[2]
_DOCS = _ROOT / "docs" / "images"
_RATE = 250
_PICTURES = (("light", 1200, 900), ("dark", 1200, 900), ("phone", 360, 780))


def configuration() -> dict[str, object]:
    """A classifier that adapts to drift, on a file that grows."""
    return {
        "source": {"kind": "csv", "path": "stream.csv", "target": "inside", "follow": True},
        "model": [{"streamkernel.AdaptiveKernelClassifier": {"seed": 1}}],
        "predictions": {"kind": "jsonl", "path": "out/predictions.jsonl"},
        "dead_letters": {"kind": "jsonl", "path": "out/dead-letters.jsonl"},
        "checkpoint": {"directory": "out/state", "every_records": 5000},
        "metrics": {"port": 0, "report": ["accuracy", "macro_f1"]},
    }


def line(draw: random.Random, turned: bool) -> str:
    """A record; one of ten thousand is broken."""
    x, y, speed = draw.gauss(0, 1), draw.gauss(0, 1), draw.random()
    inside = bool((x * x + y * y < 1.2) ^ turned ^ (draw.random() < 0.04))
    kind = draw.random()
    color = draw.choice(["red", "green", "blue"])
    if kind < 0.00005:
        return f"inf,{y:.4f},{speed:.3f},{color},{inside}"
    if kind < 0.0001:
        return f"{x:.4f},{y:.4f},<script>alert(1)</script>"
    return f"{x:.4f},{y:.4f},{speed:.3f},{color},{inside}"


def feed(path: Path, seconds: float, ended: threading.Event) -> None:
    """Append to the stream at a steady rate until the end; what is inside is turned round half way."""
    draw = random.Random(1)
    begun = time.monotonic()
    written = 0
    with path.open("a") as file:
        while not ended.wait(0.05):
            passed = time.monotonic() - begun
            for _ in range(int(passed * _RATE) - written):
                file.write(line(draw, passed > seconds / 2) + "\n")
                written += 1
            file.flush()


def take(url: str, folder: Path) -> None:
    """Take the pictures of a page."""
    folder.mkdir(exist_ok=True)
    with chromium(program("chromium")) as browser:
        for name, width, height in _PICTURES:
            scheme = "dark" if name == "dark" else "light"
            size = {"width": width, "height": height}
            opened = Opened(browser, url, color_scheme=scheme, viewport=size)
            opened.wait_for(lambda text: "Progressive loss" in text)
            if name == "phone":
                opened.page.screenshot(
                    path=folder / f"status-{name}.png", clip={"x": 0, "y": 0, **size, "height": 1560}, full_page=True
                )
            else:
                opened.page.screenshot(path=folder / f"status-{name}.png", full_page=True)
            opened.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=200.0, help="how long the daemon learns")
    parser.add_argument("--to", type=Path, default=_DOCS, help="the folder of the pictures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rings.yaml").write_text(yaml.safe_dump(configuration()))
        (folder / "stream.csv").write_text("x,y,speed,color,inside\n")
        log = folder / "log"
        with log.open("w") as errors:
            daemon = subprocess.Popen(
                [sys.executable, "-m", "streamkernel", "run", "rings.yaml"],
                cwd=folder,
                env={"PYTHONPATH": str(_ROOT), "PATH": "/usr/bin:/bin"},
                stderr=errors,
            )
        ended = threading.Event()
        feeding = threading.Thread(target=feed, args=(folder / "stream.csv", given.seconds, ended))
        try:
            while not (found := re.search(r"serving metrics at (http://\S+)/metrics", log.read_text())):
                assert daemon.poll() is None, log.read_text()
                time.sleep(0.1)
            feeding.start()
            time.sleep(given.seconds)
            take(found[1], given.to)
        finally:
            ended.set()
            daemon.terminate()
            daemon.wait()
            if feeding.ident is not None:
                feeding.join()


if __name__ == "__main__":
    main()
