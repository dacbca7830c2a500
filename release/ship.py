"""Compile what the four main estimators need by default, for each level of x86-64, into the folder that a wheel ships.

    python -m release.ship

The estimators learn streams of several kinds, which tells the signatures. These are then compiled for the other levels
in processes of their own; nothing of another level is run, so this machine need not have it.
"""

from __future__ import annotations

import gc
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from numba.core.registry import CPUDispatcher

import streamkernel
from streamkernel.compute.caching import SHIPPED
from streamkernel.compute.levels import LEVEL, LEVELS, VARIABLE
from streamkernel.connectors.compiled import compile_decoders

ESTIMATORS = "AdaptiveKernelClassifier", "AdaptiveKernelRegressor", "KernelClassifier", "KernelRegressor"
N_RECORDS = 2_500
#: By module and function, the arguments' types that it was called with.
Signatures = dict[tuple[str, str], list[tuple[Any, ...]]]


def records(n_classes: int, has_text: bool) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield records of numbers, some missing, whose target changes half way; with a text in each where asked."""
    rng = random.Random(n_classes)
    for i in range(N_RECORDS):
        x: dict[str, Any] = {f"x{j}": rng.gauss(0, 1) for j in range(5)}
        score = x["x0"] * x["x1"] + (x["x2"] if i < N_RECORDS // 2 else -x["x2"])
        if has_text:
            x["text"] = rng.choice("abcd")
            score += x["text"] == "a"
        if i % 7 == 0:
            del x[f"x{i % 5}"]
        yield x, score if n_classes < 2 else int(2 * abs(score)) % n_classes


def learn() -> None:
    """Decode, learn and predict by the default estimators, one record at a time and in chunks."""
    compile_decoders()
    for name in ESTIMATORS:
        for n_classes in (2, 3) if name.endswith("Classifier") else (1,):
            for has_text in (False, True):
                model = getattr(streamkernel, name)(seed=1)
                for x, y in records(n_classes, has_text):
                    model.predict_one(x)
                    model.learn_one(x, y)
                again = pickle.loads(pickle.dumps(model))
                rows = list(records(n_classes, has_text))[:200]
                again.advance([x for x, _ in rows], [y for _, y in rows])
                again.explain_one(rows[0][0])
                assert again.feature_importances_


def signatures() -> Signatures:
    """Return what was compiled in this process."""
    compiled = [one for one in gc.get_objects() if isinstance(one, CPUDispatcher) and one.overloads]
    found = {(one.__module__, one.__name__): list(one.overloads) for one in compiled}
    return {place: kinds for place, kinds in found.items() if place[0].startswith("streamkernel.compute.")}


def compile_all(wanted: Signatures) -> None:
    """Compile functions for arguments of these types."""
    for (module, name), kinds in wanted.items():
        for kind in kinds:
            getattr(import_module(module), name).compile(kind)


def ship() -> None:
    """Fill the folder again."""
    shutil.rmtree(SHIPPED, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        cache, known = Path(folder, "cache"), Path(folder, "signatures")
        for level in sorted(LEVELS, key=lambda level: level != LEVEL):
            environment = {
                **os.environ,
                VARIABLE: level,
                # The few functions of numba that are linked in are compiled for numba's processor.
                "NUMBA_CPU_NAME": level,
                "NUMBA_CPU_FEATURES": "",
                "NUMBA_CACHE_DIR": str(cache),
            }
            subprocess.run([sys.executable, "-m", "release.ship", str(known)], env=environment, check=True)
        SHIPPED.mkdir()
        for file in cache.rglob("*.nb[ic]"):
            shutil.copy(file, SHIPPED)
    size = sum(file.stat().st_size for file in SHIPPED.iterdir())
    print(f"{SHIPPED}: {size / 2**20:.1f} MiB in {len(list(SHIPPED.iterdir()))} files")


def main() -> None:
    """Fill the folder. With the path of a file: compile what it names, or write there what was compiled."""
    if not sys.argv[1:]:
        ship()
        return
    known = Path(sys.argv[1])
    if known.exists():
        compile_all(pickle.loads(known.read_bytes()))
    else:
        learn()
        known.write_bytes(pickle.dumps(signatures()))


if __name__ == "__main__":
    main()
