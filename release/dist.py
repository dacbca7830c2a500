"""Build what a release uploads, and try it: `make dist`, or `python -m release.dist FOLDER`.

FOLDER gets the source distribution, a wheel for every platform, and on x86-64 Linux a wheel for this version of Python
that ships compiled code. Each is then installed into an empty environment and used from an empty folder.

The files are those of the last commit.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path

from release.trial import try_wheel

ROOT = Path(__file__).parent.parent
#: numba and llvmlite have wheels for it; their code is what the shipped code calls.
PLATFORM = "manylinux_2_28_x86_64"
_LINK = re.compile(r"(!?)\[([^]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(readme: str, repository: str, version: str) -> str:
    """Return a README whose relative links lead to the repository, as PyPI needs them."""

    def led(link: re.Match[str]) -> str:
        view = "raw" if link[1] else "blob"
        return f"{link[1]}[{link[2]}]({repository}/{view}/v{version}/{link[3]})"

    return _LINK.sub(led, readme)


def build(source: Path, into: Path, *options: str) -> None:
    """Build one distribution."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into), *options, str(source)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def copy_of_commit(folder: Path) -> None:
    """Write the files of the last commit, with the README as PyPI shows it."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    (version,) = re.findall(r'^__version__ = "(.*)"$', (folder / "streamkernel/__init__.py").read_text(), re.MULTILINE)
    readme = folder / "README.md"
    readme.write_text(absolute(readme.read_text(), project["urls"]["Repository"], version))


def main(into: Path) -> None:
    """Build and try everything."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        copy_of_commit(source)
        build(source, into, "--sdist")
        build(source, into, "--wheel")
        if sysconfig.get_platform() == "linux-x86_64" and platform.python_implementation() == "CPython":
            environment = {**os.environ, "PYTHONPATH": folder}
            subprocess.run([sys.executable, "-m", "release.ship"], cwd=folder, env=environment, check=True)
            shutil.rmtree(source / "build")
            tags = f"--python-tag=cp{sys.version_info.major}{sys.version_info.minor} --plat-name={PLATFORM}".split()
            build(source, into, "--wheel", *(f"--config-setting=--build-option={tag}" for tag in tags))
    for file in sorted(into.iterdir()):
        print(f"{file.name}: {file.stat().st_size / 2**20:.1f} MiB", flush=True)
        try_wheel(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
