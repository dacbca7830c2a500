"""Outputs that would overwrite a file that the configuration names, also under another spelling or through a link."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from streamkernel.connectors.files.names import is_pattern, matching
from streamkernel.connectors.files.rotation import is_part_name
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.schema import Config, JournalSourceConfig
from streamkernel.daemon.config.sources import paths_of

__all__ = ["file_problems", "overwritten"]

_Place: TypeAlias = tuple[object, ...]

_STANDARD = "-"
_STANDARD_INPUT, _STANDARD_OUTPUT = 0, 1
# What the daemon keeps in its checkpoint directory, and in a journal.
_RESERVED = re.compile(
    r"lock|learning|learning-labels|order\.log|order-labels\.log|\.?checkpoint-.*"
    r"|journal\.sqlite(-wal|-shm)?"
)


def file_problems(config: Config, path: Path) -> Iterator[Problem]:
    """Yield a problem for each output that would overwrite something else that the configuration names.

    A file that is missing in the working directory is a problem, too, if the folder of the configuration has it. The
    path is that of the configuration itself.
    """
    taken: dict[_Place, str] = {}
    for key, read in _read_files(config, path):
        if place := _place(read, _STANDARD_INPUT):
            taken.setdefault(place, key)
        if os.path.exists(beside := path.parent / read) and not os.path.exists(read):
            where = f"there is no {read} in the working directory {os.getcwd()}, to which paths are relative"
            yield Problem(key, f"{where}: write {beside}, the file next to the configuration")
    if str(path) == _STANDARD:
        own = _place(_STANDARD, _STANDARD_INPUT)
        for key, section in config.sources.items():
            given = getattr(section, "path", None)
            if given == _STANDARD or (own and isinstance(given, str) and _place(given, _STANDARD_INPUT) == own):
                why = "standard input holds the configuration: give that as a file, or name another source"
                yield Problem(f"{key}.path", why)
    for key, written in _outputs(config):
        place = _place(written, _STANDARD_OUTPUT)
        if place is None:
            continue
        if why := _why_taken(config, written, place, taken):
            yield Problem(key, why)
        taken.setdefault(place, key)


def _why_taken(config: Config, written: str, place: _Place, taken: Mapping[_Place, str]) -> str:
    """Return why an output cannot be written there; nothing if it can."""
    if place in taken:
        return f"must differ from {taken[place]}, they are the same file"
    if (source := _arrives_at(config, Path(written))) is not None:
        return f"must not be where {source} looks for files: name another folder"
    if (log := _log_of(config, Path(written))) is not None:
        return f"must not be named like a rotated part of {log}: the source would read it"
    kept = _directories(config) if written != _STANDARD else ()
    return next(filter(None, (_why_kept(Path(written), place, name, Path(folder)) for name, folder in kept)), "")


def overwritten(config: Config, path: Path, file: Path) -> str | None:
    """Return the key of the part of a configuration at `path` that a file would overwrite; None for nothing."""
    place = _place(str(file), _STANDARD_OUTPUT)
    known = [*_read_files(config, path), *_outputs(config)]
    return next((key for key, one in known if place is not None and _place(one, _STANDARD_INPUT) == place), None)


def _outputs(config: Config) -> Iterator[tuple[str, str]]:
    """Yield every file that is written, with the key that names it."""
    for key, section in config.outputs.items():
        if (written := getattr(section, "path", None)) is not None:
            yield f"{key}.path", written


def _log_of(config: Config, path: Path) -> str | None:
    """Return the key of the followed source that would read a file as an earlier part of its log; None for none."""
    real = Path(os.path.realpath(path))
    for key, section in config.sources.items():
        read = getattr(section, "path", None)
        if not isinstance(read, str) or not getattr(section, "follow", False):
            continue
        # The parts are looked for next to the name that was given, also where that is a link.
        beside = os.path.realpath(Path(read).parent) == str(real.parent)
        if beside and is_part_name(Path(read), real.name):
            return f"{key}.path"
    return None


def _arrives_at(config: Config, path: Path) -> str | None:
    """Return the key of the source of several files that would read a file as one of them; None for none."""
    for key, section in config.sources.items():
        for read in paths_of(section):
            pattern = (
                os.path.join(glob.escape(read), "*")
                if getattr(section, "watch", False) and os.path.isdir(read)
                else read
            )
            if is_pattern(pattern) and _matches(Path(os.path.realpath(path)), pattern):
                return f"{key}.path"
    return None


def _matches(real: Path, pattern: str) -> bool:
    """Return whether a file would be found by a pattern, also where it is not there yet."""
    if not fnmatch.fnmatchcase(real.name, os.path.basename(pattern)):
        return False
    above = os.path.dirname(pattern)
    folders = glob.glob(above, recursive=True) if above else ["."]
    return any(os.path.realpath(folder) == str(real.parent) for folder in folders)


def _read_files(config: Config, path: Path) -> Iterator[tuple[str, str]]:
    """Yield every file that is read, with the key that names it."""
    for key, section in config.sources.items():
        for read in paths_of(section):
            if not is_pattern(read):
                yield f"{key}.path", read
            elif not getattr(section, "watch", False):
                for file in matching(read):
                    yield f"{key}.path", file
    for key, client in {**config.sources, **config.outputs}.items():
        options = getattr(client, "options", None)
        for name, value in (options.given() if options is not None else {}).items():
            if name.startswith("ssl_") and name.endswith("file") and isinstance(value, str):
                yield f"{key}.options.{name}", value
        registry = getattr(client, "schema_registry", None)
        for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "descriptor_set"):
            if (value := getattr(registry, name, None)) is not None:
                yield f"{key}.schema_registry.{name}", value
    for key, endpoint in (("metrics", config.metrics), ("serve", config.serve)):
        if endpoint is not None and endpoint.tls is not None:
            yield f"{key}.tls.certificate", endpoint.tls.certificate
            yield f"{key}.tls.key", endpoint.tls.key
    yield "the configuration itself", str(path)


def _place(path: str, standard: int) -> _Place | None:
    """Return what two paths of one file have in common; None for a terminal and other devices, which many may share."""
    try:
        status = os.fstat(standard) if path == _STANDARD else os.stat(path)
    except OSError:
        return None if path == _STANDARD else _missing(path)
    if path == _STANDARD and standard == _STANDARD_OUTPUT and not stat.S_ISREG(status.st_mode):
        return (_STANDARD,)  # lines of two kinds would be mixed there
    return None if stat.S_ISCHR(status.st_mode) else (status.st_dev, status.st_ino)


def _missing(path: str) -> _Place:
    """Return the place of a file that is not there yet: its name in the directory that it would be in."""
    parent, name = os.path.split(os.path.realpath(path))
    try:
        status = os.stat(parent)
    except OSError:
        return (parent, name)
    return (status.st_dev, status.st_ino, name)


def _directories(config: Config) -> Iterator[tuple[str, str]]:
    """Yield every directory with checkpoints and every journal, with the key that names it."""
    if config.checkpoint is not None:
        yield "checkpoint.directory", config.checkpoint.directory
    if config.serve_from is not None:
        yield "serve_from", config.serve_from
    if config.initial_model is not None:
        yield "initial_model.checkpoint", config.initial_model.checkpoint
    for key, source in config.sources.items():
        if isinstance(source, JournalSourceConfig):
            yield f"{key}.directory", source.directory


def _why_kept(path: Path, place: _Place, name: str, directory: Path) -> str:
    """Return why an output cannot be a directory that the daemon keeps, or one of its files; nothing if it is none."""
    if place == _place(str(directory), _STANDARD_OUTPUT):
        return f"must differ from {name}"
    real, kept = Path(os.path.realpath(path)), Path(os.path.realpath(directory))
    try:
        names = [one for one in os.listdir(kept) if _RESERVED.fullmatch(one)]
    except OSError:  # missing or not readable: a run reports that
        names = []
    places = [_place(str(kept / one), _STANDARD_OUTPUT) for one in names]
    reserved = place in places or (real.parent == kept and _RESERVED.fullmatch(real.name))
    return f"must not be a file that the daemon keeps in {name}" if reserved else ""
