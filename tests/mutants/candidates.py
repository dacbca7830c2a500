"""Find what may be mutated in a file: expressions inside functions, each with the expression that replaces it."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
_LOGGERS = {"_LOG", "LOG", "log", "_log", "logger", "logging", "warnings"}


@dataclass(frozen=True)
class Key:
    """What finds a mutant again after other lines of its file have changed."""

    file: str
    function: str
    index: int
    """The number of the mutant among those of its function that read alike."""
    operator: str
    before: str
    after: str


@dataclass(frozen=True)
class Candidate:
    """One mutant of the code: a node, and the source to put in its place."""

    key: Key
    node: ast.expr
    replacement: str
    compiled: bool

    def put_into(self, source: bytes) -> bytes:
        """Return the source of the file with this mutant in its place."""
        lines = source.splitlines(keepends=True)
        (first, begin), (last, end) = _span(self.node)
        starts = [sum(map(len, lines[: line - 1])) for line in (first, last)]
        return source[: starts[0] + begin] + f"({self.replacement})".encode() + source[starts[1] + end :]

    def overlaps(self, other: Candidate) -> bool:
        ours, theirs = _span(self.node), _span(other.node)
        return ours[0] < theirs[1] and theirs[0] < ours[1]


def find_candidates(root: Path, file: str, functions: set[str] | None = None) -> list[Candidate]:
    """Return every mutant of a file, or of some of its functions, in the order of its source."""
    tree = ast.parse((root / file).read_bytes())
    compiled = file.startswith("streamkernel/compute/")
    wrapped = _names_given_to_jit(tree) if compiled else set()
    counts: Counter[tuple[str, ...]] = Counter()
    found = []
    for function, name in _functions(tree, ""):
        decorators = {ast.unparse(each) for each in function.decorator_list}
        if decorators & {"overload", "intrinsic"} or (functions is not None and name not in functions):
            continue
        is_compiled = compiled and (any(each.startswith("jit") for each in decorators) or name in wrapped)
        for each in _mutations(function):
            before = ast.unparse(each.shown)
            after = ast.unparse(_replaced(each.shown, each.node, each.replacement))
            counts[name, each.operator, before, after] += 1
            key = Key(file, name, counts[name, each.operator, before, after] - 1, each.operator, before, after)
            found.append(Candidate(key, each.node, ast.unparse(each.replacement), is_compiled))
    return found


@dataclass(frozen=True)
class _Mutation:
    operator: str
    node: ast.expr
    replacement: ast.expr
    shown: ast.AST
    """What is printed of the code: the node, or what is around it where the node alone is a bare number."""


def _span(node: ast.expr) -> tuple[tuple[int, int], tuple[int, int]]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def _names_given_to_jit(tree: ast.AST) -> set[str]:
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and ast.unparse(each.func).startswith("jit")]
    return {ast.unparse(argument) for each in calls for argument in each.args}


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield child, name
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)


def _mutations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Mutation]:
    for statement in function.body:
        for node, parents in _walk(statement, ()):
            yield from _of_statement(node)
            if isinstance(node, ast.expr):
                yield from _of_expression(node, parents)


def _walk(node: ast.AST, parents: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Walk what runs in a function: no definitions, annotations, patterns, messages or points of a kill."""
    if isinstance(
        node,
        ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Raise | ast.Assert | ast.JoinedStr | ast.pattern,
    ) or (isinstance(node, ast.Call) and _is_passed_over(node)):
        return
    yield node, parents
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment", "args") and not isinstance(node, ast.Call):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST):
                yield from _walk(child, (*parents, node))


def _is_passed_over(call: ast.Call) -> bool:
    called = ast.unparse(call.func)
    return called in ("crash.point", "cast", "typing.cast") or called.split(".")[0] in _LOGGERS


def _of_statement(node: ast.AST) -> Iterator[_Mutation]:
    if isinstance(node, ast.Return) and node.value is not None and not _is_nothing(node.value):
        yield _Mutation("return-none", node.value, ast.Constant(None), node)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _is_passed_over(node.value):
        yield _Mutation("drop-call", node.value, ast.Constant(None), node.value)
    if isinstance(node, ast.If | ast.IfExp | ast.While) and "TYPE_CHECKING" not in ast.unparse(node.test):
        if not isinstance(node, ast.While):
            yield _Mutation("condition-true", node.test, ast.Constant(True), node.test)
        if not _is_constant(node.test, bool):
            yield _Mutation("condition-false", node.test, ast.Constant(False), node.test)


def _of_expression(node: ast.expr, parents: tuple[ast.AST, ...]) -> Iterator[_Mutation]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        swapped = _COMPARISONS[type(node.ops[0])]()
        yield _Mutation("compare", node, ast.Compare(node.left, [swapped], node.comparators), node)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _is_text(node):
        yield _Mutation("arithmetic", node, ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right), node)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield _Mutation("and-or", node, ast.BoolOp(other, node.values), node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _Mutation("drop-not", node, node.operand, node)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        changed = not node.value if isinstance(node.value, bool) else node.value + 1
        yield _Mutation("constant", node, ast.Constant(changed), _around(node, parents))
    elif isinstance(node, ast.Call):
        called = node.func
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        if name in _EXTREMES:
            other = copy.deepcopy(called)
            setattr(other, "id" if isinstance(other, ast.Name) else "attr", _EXTREMES[name])
            yield _Mutation("min-max", called, other, node)
    if parents and isinstance(parents[-1], ast.Slice) and not isinstance(node, ast.Constant):
        yield _Mutation("slice", node, ast.BinOp(node, ast.Add(), ast.Constant(1)), _around(node, parents))


def _is_constant(node: ast.expr, kind: type) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, kind)


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(each, ast.JoinedStr) or _is_constant(each, str) for each in (node.left, node.right))


def _around(node: ast.expr, parents: tuple[ast.AST, ...]) -> ast.AST:
    """Return what to print for a number: the expression or the short statement that it stands in."""
    for each in reversed(parents):
        if isinstance(each, ast.Slice | ast.Tuple | ast.keyword | ast.UnaryOp):
            continue
        return each if isinstance(each, ast.expr | ast.Assign | ast.AugAssign | ast.Return) else node
    return node


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.expr, replacement: ast.expr) -> None:
        self._node = node
        self._replacement = replacement

    def visit(self, node: ast.AST) -> ast.AST:
        return self._replacement if node is self._node else self.generic_visit(node)


def _replaced(shown: ast.AST, node: ast.expr, replacement: ast.expr) -> ast.AST:
    """Return a copy of the code with one node replaced."""
    memo = {id(node): node}  # the copy keeps the node itself, by which it is found
    return ast.fix_missing_locations(_Replace(node, replacement).visit(copy.deepcopy(shown, memo)))
