"""Use a distribution as somebody who has only that: empty environments, an empty folder, no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent

#: What the daemon's users take from the folder that `streamkernel configs` writes.
FILES = (
    "configs/quickstart.yaml",
    "configs/systemd/streamkernel.service",
    "configs/systemd/streamkernel@.service",
    "configs/mixin/alerts.yaml",
    "configs/mixin/rules.yaml",
    "configs/mixin/dashboards/streamkernel.json",
    "configs/prometheus/prometheus.yml",
)


class Trial:
    """An empty environment with one distribution, and an empty folder to work in."""

    def __init__(self, folder: Path, requirement: str) -> None:
        self._bin = folder / "venv/bin"
        self._home = folder / "home"
        self._home.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement)

    def run(self, program: str, *arguments: str, status: int = 0, within: str = ".") -> str:
        """Run a program of the environment; return what it printed, after its exit status was looked at."""
        kept = ("PATH", "LANG", "PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            cwd=self._home / within,
            env={name: os.environ[name] for name in kept if name in os.environ} | {"HOME": str(self._home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != status:
            raise SystemExit(f"{program} {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def read(self, path: str) -> str:
        """Return the text of a file in the folder."""
        return (self._home / path).read_text()


def try_wheel(file: Path) -> None:
    """Install a distribution, alone and with the daemon, and use what README promises of each."""
    with tempfile.TemporaryDirectory() as folder:
        alone = Trial(Path(folder, "alone"), str(file.absolute()))
        program, printed = quoted_example((ROOT / "README.md").read_text())
        said = alone.run("python", "-c", program)
        assert printed in said, said
        assert "pip install 'streamkernel[daemon]'" in alone.run("streamkernel", "--version", status=2)

        daemon = Trial(Path(folder, "daemon"), f"{file.absolute()}[daemon]")
        assert daemon.run("streamkernel", "--version").startswith("streamkernel ")
        daemon.run("streamkernel", "configs", "new")
        assert all(daemon.read(f"new/{path}") for path in FILES)
        assert yaml.safe_load(daemon.read("new/configs/mixin/alerts.yaml"))["groups"]
        daemon.run("streamkernel", "run", "configs/quickstart.yaml", "--set", "metrics=null", within="new")
        assert daemon.read("new/out/predictions.jsonl").count("\n") == 5_300
        kafka = daemon.run("streamkernel", "check", "configs/kafka.yaml", within="new", status=2)
        assert "pip install 'streamkernel[kafka]'" in kafka, kafka
    print(f"{file.name}: installed and used", flush=True)


def quoted_example(readme: str) -> tuple[str, str]:
    """Return the README's first Python program, and what it says that prints."""
    (program, printed), *_ = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", readme, re.DOTALL)
    return program, printed
