"""How compiled code calls compiled code: both become one module, which LLVM optimizes and translates once.

numba makes each function ready to be called from Python, even where only compiled code calls it: optimized, with a
wrapper, as machine code; and optimizes it again in every caller that it is linked into. Of what a chain of calls takes
to compile, that is most.

This rests on parts of numba that are not public. Where they are others, numba links calls itself: the results are the
same, and compiling takes longer.
"""

# mypy: disable-error-code="no-untyped-call"

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from numba.core import compiler, sigutils
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Flags
from numba.core.registry import cpu_target
from numba.core.typing.templates import make_concrete_template

from streamkernel.compute.levels import ATTRIBUTES


class QuickFlags(Flags):
    """Options of a compilation, quick to compare, and equal to numba's wherever they are set to the same.

    For every operation numba looks up, many times, whether it was compiled under these options before. Its own class
    makes dicts of all options for that. There is no wrapper for calls from C, which nobody asks for.
    """

    __slots__ = ()

    def __init__(self, copy_from: Any = None) -> None:
        super().__init__(copy_from)
        if copy_from is None:
            self.no_cfunc_wrapper = True  # type: ignore[assignment, misc]

    def __hash__(self) -> int:
        return _HASH

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flags):
            return NotImplemented
        mine, others = self._values, other._values
        return mine == others or all(getattr(self, name) == getattr(other, name) for name in {**mine, **others})


#: numba hashes the names of all options, whatever they are set to.
_HASH = hash(Flags())


_NEEDED = {
    JITCodeLibrary: (
        "_ensure_finalized",
        "_finalize_final_module",
        "_optimize_final_module",
        "get_pointer_to_function",
    ),
    JITCPUCodegen: ("_library_class",),
    compiler.Flags: ("_values", "no_cfunc_wrapper"),
}


class Library(JITCodeLibrary):
    """A module that is optimized and becomes machine code when it is to be called, not when another links it in."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._is_loaded = False

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions:
            if ATTRIBUTES and not function.is_declaration:
                # llvmlite knows the attributes without a value by name and refuses others.
                set.add(function.attributes, ATTRIBUTES)
        super().add_ir_module(ir_module)

    def get_pointer_to_function(self, name: str) -> Any:
        """The address of machine code, which is made where it is not there; 0 for a name that the module has not."""
        if not self._is_loaded:
            self._is_loaded = True
            self._ensure_finalized()
            super()._optimize_final_module()
            super()._finalize_final_module()
        return super().get_pointer_to_function(name)

    def _optimize_final_module(self) -> None:
        """Put off."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


def check() -> None:
    """Raise AttributeError where a part of numba is missing."""
    for kind, names in _NEEDED.items():
        for name in names:
            getattr(kind, name)


@contextlib.contextmanager
def linking() -> Iterator[None]:
    """Let what is compiled be linked so; for the holder of numba's compiler lock."""
    codegen = cpu_target.target_context.codegen()
    before = codegen._library_class, compiler.Flags
    codegen._library_class, compiler.Flags = Library, QuickFlags  # type: ignore[misc]
    try:
        yield
    finally:
        codegen._library_class, compiler.Flags = before  # type: ignore[misc]


def link_calls_of(dispatcher: Any, make_inner: Callable[[], Any]) -> None:
    """Let compiled code that calls a function link it in.

    - dispatcher: The function as Python calls it.
    - make_inner: Makes another dispatcher of the same function, which nobody calls; once something is compiled that
      calls it.
    """
    compiled: dict[tuple[Any, ...], Any] = {}
    numbas_template, numbas_overload = dispatcher.get_call_template, dispatcher.get_overload

    def without_wrappers(flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    @functools.cache
    def inner() -> Any:
        made = make_inner()
        made._compiler._customize_flags = without_wrappers
        return made

    def get_call_template(args: Sequence[Any], kws: dict[str, Any]) -> Any:
        try:
            return linked_template(args, kws)
        except (AttributeError, TypeError):  # a part of numba takes other arguments
            return numbas_template(args, kws)

    def linked_template(args: Sequence[Any], kws: dict[str, Any]) -> tuple[Any, ...]:
        pysig, args = inner()._compiler.fold_argument_types(args, kws)
        args = tuple(args)
        result = compiled.get(args)
        if result is None:
            result = inner()._compiler.compile(args, None)
            cpu_target.target_context.insert_user_function(result.library, result.fndesc, [result.library])
        name = dispatcher.py_func.__name__
        template = make_concrete_template(name, key=name, signatures=[result.signature])
        compiled[args] = result
        return template, pysig, args, {}

    def get_overload(signature: Any) -> Any:
        args, _ = sigutils.normalize_signature(signature)
        result = compiled.get(tuple(args))
        return numbas_overload(signature) if result is None else result.library

    dispatcher.get_call_template = get_call_template
    dispatcher.get_overload = get_overload
