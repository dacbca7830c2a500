"""The pages of docs/: each is in the menu and leads to what exists, and its code runs and gives what the page shows."""

import importlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.cli import app
from tests.registry.needs import needed

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.md"))
ELSEWHERE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
RUNNING = [page for page in PAGES if page.parent.name in {"estimators", "how-to"} or page.stem == "tutorial"]
_BLOCK = re.compile(r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _in_menu(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        (place,) = entry.values()
        if isinstance(place, str):
            yield place
        else:
            yield from _in_menu(place)


def test_every_page_is_in_the_menu_once():
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]
    pages += [f"results/{page.name}" for page in RESULTS] + ["overview.md", "contributing.md", "changelog.md"]
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(_in_menu(menu)) == sorted(pages)


def test_a_page_links_to_what_exists(subtests):
    for page in PAGES + RESULTS + ELSEWHERE:
        with subtests.test(page=page):
            for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
                path, _, section = target.partition("#")
                linked = page.parent / path if path else page
                assert linked.exists(), target
                if section:
                    titles = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
                    assert section in [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles], (
                        target
                    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like that of a reader who is in the checkout with its environment active."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    return tmp_path


def _blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language, title and text of each block of code."""
    return _BLOCK.findall(page.read_text())


VARIABLES = {"BROKERS": "127.0.0.1:9092", "PORT": "9108", "PASSWORD": "secret", "REGISTRY_PASSWORD": "secret"}
"""What configurations on the pages take from the environment."""


def _follow(page: Path, blocks: list[tuple[str, str, str]]) -> None:
    """A block with a title is a file; of the others Python and the shell run, and text is what Python printed last."""
    names: dict[str, Any] = {}
    printed = ""
    for language, title, body in blocks:
        if title:
            Path(title).write_text(body)
        if title and language == "yaml":
            prepare(Path(title), VARIABLES)
        elif not title and language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(body, str(page), "exec"), names)
            printed = out.getvalue()
        elif language == "sh":
            subprocess.run(["bash", "-euo", "pipefail", "-c", body], capture_output=True, timeout=120, check=True)
        elif language == "text":
            assert body == printed


@pytest.mark.parametrize("page", RUNNING, ids=_name)
@pytest.mark.usefixtures("folder")
def test_a_page_runs_up_to_its_first_shell_command(page):
    if "streamkernel[registry]" in page.read_text():
        needed("fastavro")
    blocks = _blocks(page)
    languages = [language for language, _, _ in blocks]
    _follow(page, blocks[: languages.index("sh")] if "sh" in languages else blocks)


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in RUNNING if "```sh" in page.read_text()], ids=_name)
@pytest.mark.usefixtures("folder")
def test_a_page_runs_to_its_end(page):
    _follow(page, _blocks(page))


def test_the_page_on_the_command_line_has_every_command_and_option():
    """An option stands in the row of its command, or in a paragraph on several that names each of them."""
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    paragraphs = page.replace("\n| ", "\n\n| ").split("\n\n")
    for name, command in typer.main.get_command(app).commands.items():
        rows = [text for text in paragraphs if text.startswith(f"| `streamkernel {name}")]
        assert len(rows) == 1, name
        own = [*rows, *(text for text in paragraphs if not text.startswith("|") and f"`{name}`" in text)]
        for option in command.params:
            if option.param_type_name == "option" and not option.hidden:
                assert all(any(f"`{way}" in text for text in own) for way in option.opts), (name, option.opts)


@pytest.mark.parametrize(
    "module",
    [
        "streamkernel",
        "streamkernel.growth",
        "streamkernel.kernels",
        "streamkernel.losses",
        "streamkernel.window",
        "streamkernel.connectors",
    ],
)
def test_every_public_name_is_in_the_reference(module):
    shown = {found for page in PAGES for found in re.findall(r"^::: (.+)$", page.read_text(), re.MULTILINE)}
    assert module in shown or {f"{module}.{name}" for name in importlib.import_module(module).__all__} <= shown
