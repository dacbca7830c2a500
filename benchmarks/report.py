"""What every benchmark prints: the machine it ran on, and tables in Markdown."""

import os
import platform
import statistics
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def machine() -> str:
    """Return the processor and the versions that matter, in a line."""
    return f"{processor()}, {versions()}"


def processor() -> str:
    """Return the processor's name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def versions() -> str:
    """Return the versions that matter."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("river", "numpy", "numba"))
    return f"Python {platform.python_version()}, {packages}"


def load() -> str:
    """Return how busy the machine is."""
    return f"{os.cpu_count()} processors, load {os.getloadavg()[2]:.1f} in the last 15 minutes"


def command(module: str) -> str:
    """Return the command of this run, without its folders."""
    words = sys.argv[1:]
    for option, shown in (("--out", []), ("--data", ["--data", "DIR"])):
        if option in words:
            at = words.index(option)
            words = [*words[:at], *shown, *words[at + 2 :]]
    return " ".join(["python -m", f"benchmarks.{module}", *words])


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def span(values: Sequence[float], form: str = ",.0f") -> str:
    """Return the median of values and, of several, the lowest and the highest."""
    middle = f"{statistics.median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}} to {max(values):{form}})"


def publish(options: Namespace, page: str, title: str, *parts: str, module: str = "") -> None:
    """Write a page into the folder of ``--out``: title, command and machine, then the parts that have text."""
    head = f"`{command(module or page.replace('-', '_'))}` on {machine()}."
    write(options.out / f"{page}.md", "\n\n".join([f"# {title}", head, *filter(None, parts)]))


def write(path: Path, text: str) -> None:
    """Print a report and keep it.

    Raises
    ------
    SystemExit
        It cannot be kept. It was printed.

    """
    print(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip() + "\n")
    except OSError as error:
        raise SystemExit(f"{path} is not written ({error.strerror}): give another folder by --out") from error
    print(f"written to {path}")
