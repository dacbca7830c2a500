"""The first minute: what a new user waits for, from nothing to a first result.

`python -m benchmarks.first_minute --wheel DIST` measures three ways, each with an empty home folder and cold caches:
pip to the first record, a clone to the first loss, and an own CSV file to predictions. DIST is a wheel, or a folder of
`make dist`. `--checkout FOLDER` measures another commit.
"""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.command import asked
from benchmarks.first_use import MODELS
from benchmarks.report import load, publish, table

ROOT = Path(__file__).parent.parent
#: A record that takes longer, in seconds, has waited for a compiler, or was interrupted.
WAIT = 0.02
#: The user that may write nowhere, where root measures.
NOBODY = 65534

FIRST = """
import random, sys, time
import streamkernel

model = getattr(streamkernel, sys.argv[1])(seed=1)
rng, waits = random.Random(1), []
for i in range(2_001):
    x = {f"x{j}": rng.gauss(0, 1) for j in range(8)}
    y = x["x0"] + x["x1"] * x["x2"]
    begun = time.perf_counter()
    model.predict_one(x)
    model.learn_one(x, y > 0 if sys.argv[1].endswith("Classifier") else y)
    took = time.perf_counter() - begun
    if not i:
        first = time.time()
    elif took > float(sys.argv[2]):
        waits.append(took)
print(first, sum(waits))
"""


def environment(home: Path) -> dict[str, str]:
    """Return the variables of a new user: an empty home, and no settings of ours."""
    own = ("NUMBA", "PYTHON", "STREAMKERNEL", "XDG", "VIRTUAL_ENV")
    return {key: value for key, value in os.environ.items() if not key.startswith(own)} | {"HOME": str(home)}


def stranger(python: Path) -> int | None:
    """Return a user that may write nowhere; None if we are not root, or it may not run this interpreter."""
    path = python.resolve()
    reachable = all(one.stat().st_mode & 0o001 for one in [path, *path.parents])
    return NOBODY if os.getuid() == 0 and reachable else None


def run(folder: Path, *command: str | Path) -> float:
    """Run a command in a folder; return how many seconds it took."""
    begun = time.perf_counter()
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment(folder), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - begun


def first_record(python: Path, folder: Path, model: str) -> tuple[float, float]:
    """Return the seconds from the start of a process to the first record learned, and all later waits together."""
    begun = time.time()
    done = subprocess.run(
        [str(python), "-c", FIRST, model, str(WAIT)],
        cwd=folder,
        env=environment(Path("/nonexistent")),
        user=stranger(python),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    first, waits = map(float, done.stdout.split())
    return first - begun, waits


def installed(wheel: Path, folder: Path, runs: int) -> list[list[str]]:
    """pip to the first record: one install, then processes that can write neither the package nor a home."""
    python = folder / "venv/bin/python"
    run(folder, sys.executable, "-m", "venv", "venv")
    took = run(folder, python, "-m", "pip", "install", "--quiet", wheel.absolute())
    rows = [["pip install, with all packages", f"{took:.0f}", "", ""]]
    for model in MODELS:
        firsts, waits = zip(*(first_record(python, folder, model) for _ in range(runs)), strict=True)
        rows.append(
            [
                f"`{model}`: process start to first record learned",
                f"{statistics.median(firsts):.2f}",
                f"{min(firsts):.2f} to {max(firsts):.2f}",
                f"{statistics.median(waits):.2f}",
            ]
        )
    return rows


def cloned(checkout: Path, folder: Path) -> list[list[str]]:
    """A clone to the first loss: `make run`, and when it says what."""
    run(folder, "git", "clone", "--quiet", checkout, "clone")
    begun = time.perf_counter()
    process = subprocess.Popen(
        ["make", "run"],
        cwd=folder / "clone",
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    packages = loss = 0.0
    for line in process.stdout:
        if "streamkernel run" in line and not packages:
            packages = time.perf_counter() - begun
        if "loss" in line and not loss:
            loss = time.perf_counter() - begun
    if process.wait():
        raise SystemExit("make run failed")
    site = next((folder / "clone/.venv/lib").glob("python*/site-packages"))
    n_packages = len(list(site.glob("*.dist-info")))
    return [
        [f"`make run`: {n_packages} packages are there", f"{packages:.0f}", "", ""],
        ["from there to the first loss on the terminal", f"{loss - packages:.1f}", "", ""],
        ["clone to the end of `make run`", f"{time.perf_counter() - begun:.0f}", "", ""],
    ]


def own_file(wheel: Path, folder: Path, checkout: Path) -> list[list[str]]:
    """An own CSV to predictions: `init`, `check`, `run`."""
    streamkernel = folder / "venv/bin/streamkernel"
    run(folder, folder / "venv/bin/python", "-m", "pip", "install", "--quiet", f"{wheel.absolute()}[daemon]")
    (folder / "own.csv").write_bytes((checkout / "examples/data/bananas.csv").read_bytes())
    commands = "init own.csv > own.yaml", "check own.yaml", "run own.yaml"
    took = {command: run(folder, "sh", "-c", f"{streamkernel} {command}") for command in commands}
    return [
        *([f"`{command}`", f"{seconds:.1f}", "", ""] for command, seconds in took.items()),
        ["own CSV to predictions of 5,300 records", f"{sum(took.values()):.1f}", "", ""],
    ]


def chosen(place: Path) -> Path:
    """Return the wheel of a folder that is for this interpreter; one for every platform where there is none."""
    if place.is_file():
        return place
    tag = f"cp{''.join(platform.python_version_tuple()[:2])}"
    wheels = sorted(place.glob("*.whl"), key=lambda path: tag not in path.name)
    if not wheels:
        raise SystemExit(f"{place} has no wheel: run make dist")
    return wheels[0]


def main() -> None:
    wheels = {"type": Path, "required": True, "help": "a wheel, or a folder with some"}
    clone = {"type": Path, "default": ROOT, "help": "the checkout to clone; default: this one"}
    options = asked(__doc__, threads=None, wheel=wheels, checkout=clone, runs=5)
    wheel, checkout, busy = chosen(options.wheel), options.checkout, load()
    reads_only = os.getuid() != 0 or stranger(Path(sys.executable)) is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # nobody may look into it
        rows = [*installed(wheel, folder, options.runs), *cloned(checkout, folder), *own_file(wheel, folder, checkout)]
    publish(
        options,
        "first_minute",
        "The first minute",
        f"{busy}. Empty home, cold caches. The first record is the median of {options.runs} processes without a home"
        f"{', which cannot write the package folder either' if reads_only else ''}. Waits are all of the next 2,000 "
        f"records that took over {1e3 * WAIT:g} ms. Packages come from the registry that pip is set to.",
        table(["step", "seconds", "lowest to highest", "later waits"], rows),
    )


if __name__ == "__main__":
    main()
