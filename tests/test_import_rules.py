"""Who may import whom: data flows one way through the house."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A module imports its own layer and those above it in this list.
LAYERS = [
    {"compute"},
    {"state", "losses"},
    {"records", "kernels"},
    {"expansion"},
    {"adaptive", "growth"},
    {"estimators"},
    {"daemon", "__main__"},
]
# The two machines stand side by side: neither knows the other. Nor does what they read know what they learn on.
APART = ({"adaptive"}, {"growth"}), ({"records"}, {"kernels", "expansion"})


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
            assert part == "daemon", f"{path} imports {name}: only the daemon may"
        elif rest:
            assert _layer(rest[0]) <= _layer(part), f"{path} imports {name} from a later layer"
            for one, other in APART:
                assert part not in one or rest[0] not in other, f"{path} imports {name}: they stand apart"
                assert part not in other or rest[0] not in one, f"{path} imports {name}: they stand apart"
        else:
            assert part == "daemon", f"{path} imports the whole package"


@pytest.mark.parametrize("path", _modules("connectors"), ids=lambda path: str(path.relative_to(ROOT)))
def test_connectors_know_nothing_of_streamkernel(path):
    assert not {name for name in _imported(path) if name.startswith("streamkernel")}


def test_the_http_server_is_imported_where_it_is_started_only():
    # A daemon without metrics does without the server's libraries, and without the time their import takes.
    inside = {"streamkernel.daemon.serving", "streamkernel.daemon.serving.limits"}
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


def test_the_public_names():
    import streamkernel
    import streamkernel.growth
    import streamkernel.kernels

    adaptive, growing = {"AdaptiveKernelClassifier", "AdaptiveKernelRegressor"}, {"KernelClassifier", "KernelRegressor"}
    assert set(streamkernel.__all__) == adaptive | growing
    assert {"CDSG", "DSG", "UDSG"} <= set(streamkernel.growth.__all__)
    assert {"Gaussian"} <= set(streamkernel.kernels.__all__)
    for module in (streamkernel, streamkernel.growth, streamkernel.kernels):
        assert all(hasattr(module, name) for name in module.__all__)
