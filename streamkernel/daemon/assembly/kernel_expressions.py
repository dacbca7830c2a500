"""What to write in place of a kernel's Python expression, as `kernel: Gaussian() + Cauchy()`."""

from __future__ import annotations

import ast
import inspect

from streamkernel import kernels

__all__ = ["written_out"]

_LONGEST = 500
_OURS = "streamkernel.kernels"


def written_out(text: str) -> str | None:
    """Return a kernel's Python expression as a configuration has it, in one line; None where it is none.

    The text is read, not run.

    Examples
    --------
    >>> written_out("0.5 * Matern(2.5)")
    '{streamkernel.kernels.Scaled: {kernel: {streamkernel.kernels.Matern: {nu: 2.5}}, factor: 0.5}}'
    >>> written_out("gauss + 1")

    """
    if len(text) > _LONGEST:
        return None
    try:
        return _kernel(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _kernel(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _call(node)
    if not isinstance(node, ast.BinOp):
        raise ValueError("no kernel")
    if isinstance(node.op, ast.Add):
        return f"{{{_OURS}.Sum: {{left: {_kernel(node.left)}, right: {_kernel(node.right)}}}}}"
    if not isinstance(node.op, ast.Mult):
        raise ValueError("no operation of kernels")
    for factor, kernel in ((node.left, node.right), (node.right, node.left)):
        if isinstance(factor, ast.Constant):
            return f"{{{_OURS}.Scaled: {{kernel: {_kernel(kernel)}, factor: {_literal(factor)}}}}}"
    return f"{{{_OURS}.Product: {{left: {_kernel(node.left)}, right: {_kernel(node.right)}}}}}"


def _call(node: ast.Call) -> str:
    name = ast.unparse(node.func).rpartition(".")[2]
    if name not in kernels.__all__:
        raise ValueError("none of the kernels")
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    given = inspect.signature(getattr(kernels, name)).bind_partial(*node.args, **keywords).arguments
    arguments = ", ".join(f"{argument}: {_literal(value)}" for argument, value in given.items())
    return f"{{{_OURS}.{name}: {{{arguments}}}}}"


def _literal(node: ast.expr) -> str:
    if isinstance(node, ast.Call | ast.BinOp):
        return _kernel(node)
    value = ast.literal_eval(node)
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
