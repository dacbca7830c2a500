"""What every benchmark prints: the machine it ran on, and tables in Markdown."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def machine() -> str:
    """The processor and the versions that matter, in a line."""
    return f"{processor()}, {versions()}"


def processor() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def versions() -> str:
    """The versions that matter."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("river", "numpy", "numba"))
    return f"Python {platform.python_version()}, {packages}"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def write(path: Path, text: str) -> None:
    """Print a report and keep it.

    Raises
    ------
    SystemExit
        It cannot be kept; printed it is.

    """
    print(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.rstrip() + "\n")
    except OSError as error:
        raise SystemExit(f"{path} is not written ({error.strerror}): give another folder by --out") from error
    print(f"written to {path}")
