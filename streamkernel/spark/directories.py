"""Where checkpoints are: those of a model in a directory of the driver, Spark's own at any URI that Spark knows."""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["directory_of", "location_of"]

#: A URI, also as a Path has it, with one slash; one letter is a drive of Windows.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def directory_of(checkpoint: str | PathLike[str]) -> Path:
    """The directory of a model's checkpoints.

    Parameters
    ----------
    checkpoint
        A path, or a URI of the scheme file.

    Raises
    ------
    ValueError
        It is a URI of another scheme.

    Examples
    --------
    >>> directory_of("file:///srv/state").as_posix(), directory_of("state").as_posix()
    ('/srv/state', 'state')
    >>> directory_of("s3://bucket/state")
    Traceback (most recent call last):
    ValueError: checkpoint 's3://bucket/state' is a URI, and checkpoints of the model are local files: name a \
directory of the driver, on storage that outlives it

    """
    text = _text(checkpoint, "checkpoint")
    found = _URI.match(text)
    if found is None:
        return Path(text)
    parts = urlsplit(text)
    if found[1].lower() == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    raise ValueError(
        f"checkpoint {text!r} is a URI, and checkpoints of the model are local files: name a directory of the driver, "
        "on storage that outlives it"
    )


def location_of(location: str | PathLike[str]) -> str:
    """The checkpoint location of Spark as Spark takes it.

    Raises
    ------
    ValueError
        It is a URI that was made a Path, which has lost a slash by that.

    Examples
    --------
    >>> location_of("s3://bucket/spark"), location_of(Path("spark"))
    ('s3://bucket/spark', 'spark')

    """
    text = _text(location, "checkpoint_location")
    found = _URI.match(text)
    if found and found[1].lower() != "file" and not isinstance(location, str):
        raise ValueError(f"checkpoint_location {text!r} is a URI, and a Path removes one of its slashes: pass a string")
    return text


def _text(path: str | PathLike[str], name: str) -> str:
    if not isinstance(path, str | PathLike):
        raise TypeError(f"{name} must be a string or a path, got {path!r}")
    return os.fspath(path)
