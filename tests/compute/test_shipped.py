"""Code that a wheel ships is loaded, not compiled; code of other sources or of another level is not."""

import shutil
from pathlib import Path

import pytest

from streamkernel.compute import caching


@pytest.fixture
def shipped(imported, tmp_path, monkeypatch):
    """Ship the compiled kernel: as if its folder were that of our sources, in which nothing is cached."""
    monkeypatch.setattr(caching, "_FOLDER", tmp_path)
    monkeypatch.setattr(caching, "_stamp", lambda: "these sources")
    monkeypatch.setattr(caching, "SHIPPED", tmp_path / "shipped")
    kept = imported()
    assert kept(3) == 6
    cache = Path(kept.stats.cache_path)
    caching.SHIPPED.mkdir()
    for file in cache.glob("kernel.twice-*.nb[ic]"):
        shutil.move(file, caching.SHIPPED)
    return caching.SHIPPED


def hits(dispatcher):
    return sum(dispatcher.stats.cache_hits.values())


@pytest.mark.usefixtures("shipped")
def test_shipped_code_is_loaded(imported):
    twice = imported()
    assert (twice(3), hits(twice)) == (6, 1)


@pytest.mark.usefixtures("shipped")
def test_shipped_code_of_other_sources_is_not_loaded(imported, monkeypatch):
    monkeypatch.setattr(caching, "_stamp", lambda: "other sources")
    twice = imported()
    assert (twice(3), hits(twice)) == (6, 0)


@pytest.mark.usefixtures("shipped")
def test_shipped_code_of_another_level_is_not_loaded(imported, monkeypatch):
    monkeypatch.setattr(caching, "LEVEL", "another")
    twice = imported()
    assert (twice(3), hits(twice)) == (6, 0)


@pytest.mark.usefixtures("shipped")
def test_shipped_code_is_loaded_where_no_folder_can_be_written(imported, monkeypatch):
    monkeypatch.setattr(caching._ReadableImplementation, "_locator_classes", (caching._Shipped,))
    twice = imported()
    assert (twice(3), hits(twice), twice.stats.cache_path) == (6, 1, None)


def test_the_stamp_is_of_all_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(caching, "_FOLDER", tmp_path)
    stamps = set()
    for name, text in (("a.py", "1"), ("a.py", "2"), ("b.py", "")):
        (tmp_path / name).write_text(text)
        caching._stamp.cache_clear()
        stamps.add(caching._stamp())
    caching._stamp.cache_clear()
    assert len(stamps) == 3
