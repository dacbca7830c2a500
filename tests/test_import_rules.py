"""Who may import whom: data flows one way through the house."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A module imports its own layer and those above it in this list.
LAYERS = [
    {"compute"},
    {"dates", "domain", "fields", "finite", "input_keys", "losses", "representation", "state"},
    {"records", "kernels"},
    {"expansion"},
    {"adaptive", "growth"},
    {"batch", "gaussian_process", "window"},
    {"estimators"},
    {"daemon", "spark", "__main__"},
]
# The two machines stand side by side: neither knows the other. Nor does what they read know what they learn on.
APART = ({"adaptive"}, {"growth"}), ({"records"}, {"kernels", "expansion"})

# Inside a folder: its parts, lowest first. A part imports those on lines before its own; what shares a line stands
# side by side, and does not know each other.
STACKS = {
    "streamkernel/daemon": [
        {"base"},
        {"checkpoints", "config"},
        {"serving", "stream"},
        {"labels"},
        {"recovery"},
        {"monitoring"},
        {"group", "wiring"},
        {"failure", "fresh", "lifecycle", "warming"},
        {"runtime"},
        {"check", "evaluate", "init", "partition", "predict", "promote", "replay", "service"},
        {"cli"},
    ],
    "connectors": [
        {"os_reason", "passed"},
        {"encode", "ports", "regular"},
        {"class_columns", "decode"},
        {"columns", "passing"},
        {"bulk"},
        {"objects"},
        {"registry"},
        {"files", "kafka", "memory", "river"},
        {"journal", "parquet"},
        {"__init__"},
    ],
    "connectors/registry": [
        {"framing", "settings"},
        {"client", "plain"},
        {"schemas"},
        {"avro", "descriptors", "lookup", "message_count"},
        {"line_schema", "objects", "protobuf"},
        {"reading", "writing"},
        {"__init__"},
    ],
    "connectors/kafka": [
        {"base"},
        {"consumer"},
        {"group", "reading", "writing"},
    ],
}


def _modules(package):
    return sorted(path for path in (ROOT / package).rglob("*.py"))


def _imported(path):
    """The modules of ours that a file imports, as dotted names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
    return {name for name in found if name.split(".")[0] in {"streamkernel", "connectors"}}


def _layer(part):
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


@pytest.mark.parametrize("path", _modules("streamkernel"), ids=lambda path: str(path.relative_to(ROOT)))
def test_streamkernel_imports_downwards(path):
    part = path.relative_to(ROOT / "streamkernel").parts[0].removesuffix(".py")
    if part == "__init__":
        return
    for name in _imported(path):
        package, *rest = name.split(".")
        if package == "connectors":
            assert part in ("daemon", "spark"), f"{path} imports {name}: only the daemon and Spark's job may"
        elif rest:
            assert _layer(rest[0]) <= _layer(part), f"{path} imports {name} from a later layer"
            for one, other in APART:
                assert part not in one or rest[0] not in other, f"{path} imports {name}: they stand apart"
                assert part not in other or rest[0] not in one, f"{path} imports {name}: they stand apart"
        else:
            assert part == "daemon", f"{path} imports the whole package"


def test_spark_is_imported_by_its_command_alone():
    """It needs an extra, which nothing else may come to ask for."""
    named = {
        path
        for path in _modules("streamkernel")
        if any(name.startswith("streamkernel.spark") for name in _imported(path))
    }
    inside = {path for path in named if path.relative_to(ROOT / "streamkernel").parts[0] == "spark"}
    assert {path.relative_to(ROOT).as_posix() for path in named - inside} == {"streamkernel/daemon/cli/distributed.py"}


@pytest.mark.parametrize("path", _modules("connectors"), ids=lambda path: str(path.relative_to(ROOT)))
def test_connectors_know_nothing_of_streamkernel(path):
    assert not {name for name in _imported(path) if name.startswith("streamkernel")}


def _part(path, folder):
    return path.relative_to(folder).parts[0].removesuffix(".py")


def _arrows(root, folder):
    """By part of a folder, the other parts it imports, each with the file that does: at any depth of its code."""
    prefix = folder.replace("/", ".")
    files = {path: _part(path, root / folder) for path in sorted((root / folder).rglob("*.py"))}
    arrows = {part: {} for part in files.values()}
    for path, part in files.items():
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                if name == prefix or name.startswith(f"{prefix}."):
                    other = name.removeprefix(prefix).lstrip(".").partition(".")[0]
                    other = other if other in arrows else "__init__"
                    if other != part:
                        arrows[part].setdefault(other, path.relative_to(root))
    return arrows


def _upward(arrows, stack):
    """The arrows that do not lead to a line before their own, as sentences."""
    level = {part: number for number, line in enumerate(stack) for part in line}
    level.setdefault("__init__", len(stack))
    assert arrows.keys() <= level.keys(), f"no line of the stack has {arrows.keys() - level.keys()}"
    return [
        f"{file} imports {other}, which is not below {part}"
        for part, others in arrows.items()
        for other, file in others.items()
        if level[other] >= level[part]
    ]


def _picture(folder):
    """The arrows of a folder as docs/architecture.md shows them: the highest part first."""
    arrows = _arrows(ROOT, folder)
    lines = []
    for line in reversed(STACKS[folder]):
        for part in sorted(line):
            below = [other for lower in STACKS[folder] for other in sorted(lower) if other in arrows[part]]
            lines.append(f"{part} → {', '.join(below)}" if below else part)
    return "\n".join(lines)


@pytest.mark.parametrize("folder", STACKS)
def test_the_parts_of_a_folder_form_a_stack(folder):
    assert _upward(_arrows(ROOT, folder), STACKS[folder]) == []


@pytest.mark.parametrize("folder", STACKS)
def test_the_picture_of_a_folder_is_of_this_code(folder):
    page = (ROOT / "docs/architecture.md").read_text()
    assert f"\n{_picture(folder)}\n" in page, "draw docs/architecture.md anew: python tests/test_import_rules.py"


def test_an_import_counts_wherever_it_stands(tmp_path):
    for name in ("low", "high", "side"):
        (tmp_path / "a" / name).mkdir(parents=True)
    (tmp_path / "a/low/one.py").write_text("if TYPE_CHECKING:\n    from a.high import two\n")
    (tmp_path / "a/high/two.py").write_text("def f():\n    import a.low.one\n    from a import side\n")
    (tmp_path / "a/side/three.py").write_text("from a import anything\n")
    arrows = _arrows(tmp_path, "a")
    assert {part: set(others) for part, others in arrows.items()} == {
        "low": {"high"},
        "high": {"low", "side"},
        "side": {"__init__"},
    }
    assert len(_upward(arrows, [{"low"}, {"high", "side"}])) == 3
    with pytest.raises(AssertionError, match="side"):
        _upward(arrows, [{"low"}, {"high"}])


def test_the_http_server_is_imported_where_it_is_started_only():
    # A daemon without metrics does without the server's libraries, and without the time their import takes.
    light = ("", ".answers", ".bind", ".certificate", ".endpoint", ".limits", ".process", ".published", ".wire")
    inside = {f"streamkernel.daemon.serving{name}" for name in light}
    for path in _modules("streamkernel") + _modules("connectors"):
        if "serving" in path.parts:
            continue
        for node in ast.parse(path.read_text()).body:
            for name in [alias.name for alias in getattr(node, "names", [])] + [getattr(node, "module", None) or ""]:
                assert name.split(".")[0] not in {"anyio", "httptools", "starlette", "uvicorn"}, path
                assert not name.startswith("streamkernel.daemon.serving") or name in inside, path


def test_compiled_code_lives_in_compute_only():
    for path in _modules("streamkernel"):
        if "compute" not in path.parts:
            assert "numba" not in path.read_text().replace("numba.", ""), path


def test_a_class_name_occurs_once():
    places = {}
    for path in [*(ROOT / "streamkernel").rglob("*.py"), *(ROOT / "connectors").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_public_names():
    import streamkernel
    import streamkernel.growth
    import streamkernel.kernels

    adaptive, growing = {"AdaptiveKernelClassifier", "AdaptiveKernelRegressor"}, {"KernelClassifier", "KernelRegressor"}
    others = {"GaussianProcessRegressor", "KernelDensityRatio", "KernelNoveltyDetector", "WindowRefit"}
    by_batches = {"KernelLeastSquaresClassifier", "KernelLeastSquaresRegressor"}
    assert set(streamkernel.__all__) == adaptive | growing | by_batches | others
    assert {"CDSG", "DSG", "UDSG", "OneClassStep"} <= set(streamkernel.growth.__all__)
    assert {"Gaussian"} <= set(streamkernel.kernels.__all__)
    for module in (streamkernel, streamkernel.growth, streamkernel.kernels):
        assert all(hasattr(module, name) for name in module.__all__)


if __name__ == "__main__":
    for one in STACKS:
        print(f"{one}\n\n{_picture(one)}\n")


@pytest.mark.usefixtures("processes")
def test_estimators_are_imported_once_one_is_asked_for():
    program = """
import sys, streamkernel
assert not {"numpy", "numba", "river"} & sys.modules.keys()
assert set(streamkernel.__all__) <= set(dir(streamkernel))
assert not hasattr(streamkernel, "Nothing")
from streamkernel import *
assert KernelClassifier is streamkernel.KernelClassifier
"""
    subprocess.run([sys.executable, "-c", program], check=True)
