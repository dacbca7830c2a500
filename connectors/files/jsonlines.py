"""Records that are JSON objects, one a line."""

from __future__ import annotations

from os import PathLike

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.files.source import LineSource
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.target_columns import Target


class JsonLinesSource(LineSource):
    """Read JSON lines in UTF-8; see `streamkernel.connectors.objects.JsonObjects` for what becomes of their values.

    Parameters
    ----------
    path
        A file, plain or ending in .gz or .zst, or ``"-"`` for standard input.
    target
        The key of the target, or those of several; None: no target, every record is unlabeled.
    target_type
        ``"str"``, ``"int"``, ``"bool"`` or ``"float"``; see `streamkernel.connectors.decode.TargetDecoder`.
    follow
        Whether to wait for more at the end of a plain file, and to go on in the next one when it is rotated.
    max_record_bytes
        The longest line, in bytes; a longer one is a fault.
    max_string
        The most characters of a name or a string value; more is a fault.
    inputs
        Which keys are inputs, and how they are read; None: all but the target, each as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b'{"a": 1, "b": null, "y": true}\\n[1, 2]\\n')
    ...     file.flush()
    ...     with JsonLinesSource(file.name, target="y", target_type="bool") as source:
    ...         source.open()
    ...         records = source.poll(10, timeout=0)
    >>> records[0].x, records[0].y
    ({'a': 1}, True)
    >>> records[1].fault
    Fault(reason='not_an_object', detail='a list, not an object')

    """

    kind = "jsonl"

    def __init__(
        self,
        path: str | PathLike[str],
        target: Target = None,
        target_type: str = "str",
        follow: bool = False,
        max_record_bytes: int = 2**20,
        max_string: int = 256,
        inputs: InputSettings | None = None,
    ) -> None:
        super().__init__(path, follow, max_record_bytes)
        rules = None if inputs is None else ColumnRules(inputs, max_string)
        self._decoder = JsonObjects(target, target_type, max_string, rules)
