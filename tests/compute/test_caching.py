"""The cache of compiled code: shared by processes, mended where it is broken, read where it cannot be written."""

import errno
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import caching
from numba.core.caching import IndexDataCacheFile

import streamkernel

PACKAGE = Path(streamkernel.__file__).parent

LEARN = """
from streamkernel import KernelClassifier
import streamkernel
model = KernelClassifier(batch_size=2, block_size=2, seed=1)
for i in range(6):
    model.learn_one({"a": float(i)}, i % 2 == 0)
print(streamkernel.__file__, model.n_steps)
"""


CALL = """
import numpy as np
import streamkernel
from streamkernel.compute.experts import softmax_into
softmax_into(np.zeros(2), 1.0, np.zeros(2))
print(streamkernel.__file__, 3)
"""


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("use", [CALL, pytest.param(LEARN, marks=pytest.mark.long)], ids=["call", "learn"])
def test_an_install_without_a_writable_cache_folder_warns_once_and_works(use, tmp_path):
    """Files where folders would have to be: not even root can cache there."""
    copy = tmp_path / "streamkernel"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    blocked = tmp_path / "file"
    blocked.touch()
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "HOME": str(blocked),
        "XDG_CACHE_HOME": str(blocked / "cache"),
        "NUMBA_CACHE_DIR": str(blocked / "numba"),
    }
    run = subprocess.run(
        [sys.executable, "-W", "always::RuntimeWarning", "-c", use],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert run.stdout.split() == [str(copy / "__init__.py"), "3"], run.stderr
    assert run.stderr.count("RuntimeWarning") == 1
    assert "set NUMBA_CACHE_DIR to a writable folder" in run.stderr


# Whoever has read the index waits, before it writes it, for the other one to read it too.
STORE = """
import os, pathlib, sys, time
from numba.core.caching import IndexDataCacheFile
import kernel

def late(self, overloads, write=IndexDataCacheFile._save_index):
    folder = pathlib.Path(kernel.__file__).parent
    (folder / f"{os.getpid()}.read").touch()
    deadline = time.monotonic() + 1.0
    while len(list(folder.glob("*.read"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    write(self, overloads)

IndexDataCacheFile._save_index = late
print(kernel.twice(eval(sys.argv[1])))
"""


@pytest.mark.usefixtures("processes")
def test_processes_that_compile_at_once_take_nothing_from_each_other(tmp_path, imported):
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE.parent}{os.pathsep}{tmp_path}"}
    started = [
        subprocess.Popen([sys.executable, "-c", STORE, value], env=environment, stdout=subprocess.PIPE, text=True)
        for value in ("3", "0.25")
    ]
    assert [process.communicate()[0] for process in started] == ["6\n", "0.5\n"]
    twice = imported()
    assert (twice(3), twice(0.25)) == (6, 0.5)
    assert sorted(twice.stats.cache_hits.values()) == [1, 1]


@pytest.mark.parametrize(
    "junk", [b"", b"\x80\x04cstreamkernel.compute.arrival\nNoLonger\n.", b"junk"], ids=["empty", "class", "junk"]
)
def test_an_index_that_cannot_be_read_is_made_anew(imported, junk):
    """pip leaves the caches of an earlier release behind, whose indices pickle its classes by name."""
    assert imported()(3) == 6
    twice = imported()
    (index,) = Path(twice.stats.cache_path).glob("kernel.twice-*.nbi")
    begin = index.read_bytes()
    version = pickle.dumps(pickle.loads(begin))
    index.write_bytes(version + junk)
    assert twice(3) == 6
    again = imported()
    assert again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 1


def test_a_cache_that_may_only_be_read_is_read(imported):
    twice = imported()
    assert twice(3) == 6
    lock = Path(twice.stats.cache_path) / "kernel.twice.lock"
    lock.unlink()
    lock.mkdir()
    twice = imported()
    assert twice(3) == 6
    assert sum(twice.stats.cache_hits.values()) == 1


SUMS = """
from streamkernel.compute.jit import jit, jit_reduction

@jit_reduction
def total(values):
    return values.sum()

@jit
def twice(values):
    return 2.0 * total(values)
"""


def test_what_was_loaded_is_linked_into_what_is_compiled(imported, tmp_path):
    (tmp_path / "kernel.py").write_text(SUMS)
    kept = sys.modules[imported().__module__].total
    assert kept(np.arange(4.0)) == 6.0
    twice = imported()
    total = sys.modules[twice.__module__].total
    assert (total(np.arange(4.0)), _sum_of_hits(total)) == (6.0, 1)
    assert (twice(np.arange(4.0)), _sum_of_hits(twice)) == (12.0, 0)


NEEDED = """
import sys
import numpy as np
from numba.core.runtime import rtsys
from streamkernel.compute.gaussians import gaussians
gaussians(np.ones(2, np.uint64), np.ones(2, np.uint64), 1.0, np.empty((2, 2), np.float32))
print(sum(gaussians.stats.cache_hits.values()), "numba.np.arrayobj" in sys.modules, rtsys._init)
"""


@pytest.mark.usefixtures("processes")
def test_loaded_code_needs_no_compiler():
    """One process may have to compile it; the next one loads it."""
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", NEEDED], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["1", "False", "False"]


@pytest.fixture
def unwritable(monkeypatch):
    """Make folders unwritable for numba, also for root; what is in them stays readable."""

    def refused(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(caching.tempfile, "TemporaryFile", refused)
    monkeypatch.setattr(IndexDataCacheFile, "save", refused)


def _sum_of_hits(dispatcher):
    return sum(dispatcher.stats.cache_hits.values())


def test_a_folder_that_cannot_be_written_is_read(imported, request):
    kept = imported()
    assert kept(3) == 6
    request.getfixturevalue("unwritable")
    twice = imported()
    assert (twice(3), twice.stats.cache_path) == (6, kept.stats.cache_path)
    assert _sum_of_hits(twice) == 1
    assert twice(0.25) == 0.5  # what is not there is compiled, and not stored
    assert (imported()(0.25), _sum_of_hits(twice)) == (0.5, 1)
