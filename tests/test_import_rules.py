"""Who may import whom: data flows one way through the house."""

import ast
from pathlib import Path

from tests.sources import sources

ROOT = Path(__file__).parent.parent

# A module imports its own layer and those above it in this list.
LAYERS = [
    {"compute"},
    {"arguments", "domain", "fields", "finite", "losses", "state"},
    {"records", "kernels"},
    {"expansion"},
    {"adaptive", "growth"},
    {"mixture"},
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
        {"components"},
        {"http", "stream"},
        {"labels"},
        {"run_state"},
        {"monitoring"},
        {"group", "assembly"},
        {"failure", "fresh", "trial", "warm_start"},
        {"runtime"},
        {"check", "evaluate", "init", "partition", "predict", "promote", "replay", "serve"},
        {"cli"},
    ],
    "connectors": [
        {"file_system", "moments", "names", "os_reason", "pass_through"},
        {"encode", "ports"},
        {"class_columns", "decode"},
        {"columns", "pass_through_reader"},
        {"target_columns"},
        {"bulk"},
        {"objects"},
        {"registry"},
        {"files", "kafka", "memory", "river"},
        {"compiled", "journal", "parquet"},
        {"__init__"},
    ],
    "connectors/registry": [
        {"framing", "settings"},
        {"client"},
        {"avro", "lookup", "protobuf"},
        {"line_schema", "objects"},
        {"writing"},
        {"__init__"},
    ],
    "connectors/kafka": [
        {"base"},
        {"group", "reading", "writing"},
    ],
}


def _imported(source):
    """The modules of ours that a file imports, as dotted names; a relative import as one that begins with a dot."""
    found = set()
    for node in source.imports:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            found.add("." * node.level + (node.module or ""))
    return {name for name in found if name.split(".")[0] in {"streamkernel", ""}}


def _layer(part):
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


def _wrong_in_streamkernel(part, name):
    """Why a part of the package may not import a name; None where it may."""
    package, *rest = name.split(".")
    if package == "":
        return "relative import"
    if not rest:
        return None if part == "daemon" else "the whole package"
    if rest[0] == "connectors":
        return None if part in ("daemon", "spark") else "only the daemon and Spark's job may"
    if _layer(rest[0]) > _layer(part):
        return "from a later layer"
    pairs = {(part, rest[0]), (rest[0], part)}
    apart = any(a in one and b in other for one, other in APART for a, b in pairs)
    return "they stand apart" if apart else None


def _wrong_layers():
    for path, source in sources(ROOT / "streamkernel").items():
        part = _part(path, ROOT / "streamkernel")
        if part == "__init__":
            continue
        for name in _imported(source):
            if why := _wrong_in_streamkernel(part, name):
                yield f"{path} imports {name}: {why}"
    for path, source in sources(ROOT / "connectors").items():
        for name in _imported(source):
            if not name.startswith(("streamkernel.connectors", "streamkernel.compute")):
                yield f"{path} imports {name}: connectors know nothing of streamkernel but its compiled code"


def _wrong_of_spark():
    """It needs an extra, which nothing else may come to ask for."""
    for path, source in sources(ROOT / "streamkernel").items():
        inside = (
            _part(path, ROOT / "streamkernel") == "spark" or path == ROOT / "streamkernel/daemon/cli/distributed.py"
        )
        if not inside and any(name.startswith("streamkernel.spark") for name in _imported(source)):
            yield f"{path} imports Spark's job, which its command alone may"


def _wrong_of_the_http_server():
    """A daemon without metrics does without the server's libraries, and without the time their import takes."""
    heavy = ("streamkernel.daemon.http", "streamkernel.daemon.serve")
    light = {f"streamkernel.daemon.http{name}" for name in ("", ".published", ".server")}
    for path, source in {**sources(ROOT / "streamkernel"), **sources(ROOT / "connectors")}.items():
        if path.is_relative_to(ROOT / "streamkernel/daemon/http") or path.is_relative_to(
            ROOT / "streamkernel/daemon/serve"
        ):
            continue
        for node in source.at_once:
            for name in [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]:
                library = name.split(".")[0] in {"anyio", "httptools", "starlette", "uvicorn"}
                if library or (name.startswith(heavy) and name not in light):
                    yield f"{path} imports {name} before a server is asked for"


def _wrong_of_numba():
    for path in sources(ROOT / "streamkernel"):
        if "compute" not in path.parts and "numba" in path.read_text().replace("numba.", ""):
            yield f"{path} names numba: compiled code lives in compute"


def _part(path, folder):
    return path.relative_to(folder).parts[0].removesuffix(".py")


def _arrows(root, folder):
    """By part of a folder, the other parts it imports, each with the file that does: at any depth of its code."""
    prefix = folder.replace("/", ".")
    prefix = f"streamkernel.{prefix}" if folder.startswith("connectors") else prefix
    files = {path: (_part(path, root / folder), source) for path, source in sources(root / folder).items()}
    arrows = {part: {} for part, _ in files.values()}
    for path, (part, source) in files.items():
        for node in source.imports:
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = [f"{module}{alias.name}" for alias in node.names]
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


def test_every_import_follows_the_rules():
    stacks = [sentence for folder, stack in STACKS.items() for sentence in _upward(_arrows(ROOT, folder), stack)]
    others = [*_wrong_layers(), *_wrong_of_spark(), *_wrong_of_the_http_server(), *_wrong_of_numba()]
    assert stacks + others == []
