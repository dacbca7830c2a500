"""Digits without end: MNIST's training images deformed anew for ever, and MNIST itself, through the growing machine.

    python -m benchmarks.digits --data DIR [--quick] [--runs A,B] [--seeds N] [--out DIR] [--fresh]

--data has mnist.npz, with uint8 arrays X_train and X_test of images, y_train and y_test of digits. Every run is kept
in digits.jsonl, look by look; one that is there whole with the same settings
and the same code is not repeated, and --runs chooses some by their names. The tables (digits.md) and the plot
(digits.png) are made of that file. --quick takes scikit-learn's small digits, into out/digits-quick.
"""

import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.command import DATA, NAMES, RESULTS, asked
from benchmarks.digit_runs import Look, Run, Setting, run
from benchmarks.digits_report import report
from benchmarks.images import mnist, small
from benchmarks.peers import own_code

#: Of the squared error nearly a whole solution for each mini-batch, on many more features than it has records: so many
#: that the block adds little noise, and the ridge may be small. Steps fall in the end, which takes the mean over many.
SQUARED: dict[str, Any] = {
    "squared": True,
    "weight": 50.0,
    "step": 0.8,
    "last_step": 0.05,
    "components": 40,
    "bandwidth": 0.45,
}
ENDLESS = [
    Setting("preconditioned", "DSG", 1024, 2048, None, True, 2, step=0.7, last_step=0.1, records=1_000_000),
    Setting("CDSG", "CDSG", 256, 64, 2**16, records=1_000_000),
    Setting("DSG", "DSG", 256, 64, 2**16, records=1_000_000),
]
#: What the estimator learns with its defaults: pixels, and components.
BY_DEFAULT = (("", 0), (" on components", 40))
PASSES = [
    Setting("one pass", "DSG", 2**14, 512, 2**17, True, passes=1, **SQUARED),
    *(Setting(f"defaults{of}", "", 0, 0, None, passes=1, default=True, components=n) for of, n in BY_DEFAULT),
]


def wanted(options: Namespace) -> list[tuple[Setting, int]]:
    """Every run asked for: the endless stream with one seed, MNIST itself with several."""
    endless, passes, seeds = ENDLESS, PASSES, options.seeds
    if options.quick:
        endless = [smaller(one, records=3_000) for one in ENDLESS]
        passes, seeds = [smaller(one) for one in PASSES], 1
    runs = [(one, 1) for one in endless] + [(one, seed) for one in passes for seed in range(1, seeds + 1)]
    names = list(dict.fromkeys(one.name for one, _ in runs))
    chosen = set(options.runs or names)
    if unknown := chosen - set(names):
        raise SystemExit(f"no run is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return [(one, seed) for one, seed in runs if one.name in chosen]


def smaller(setting: Setting, **changes: Any) -> Setting:
    """A setting for small images: a 64th of the features, but no fewer than 16 a block."""
    if setting.default:
        return setting
    block_size = max(setting.block_size // 64, 16)
    most = None if setting.max_features is None else max(setting.max_features // 64, block_size)
    return replace(setting, block_size=block_size, batch_size=64, max_features=most, components=20, **changes)


def kept(path: Path) -> list[Run]:
    """The runs there are."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [
        Run(**{**line, "setting": Setting(**line["setting"]), "looks": [Look(**look) for look in line["looks"]]})
        for line in lines
    ]


def keep(path: Path, others: Sequence[Run], one: Run) -> None:
    """Write the runs, the last one perhaps not at its end, in place of those there are."""
    whole = path.with_suffix(".new")
    whole.write_text("".join(json.dumps(asdict(each)) + "\n" for each in [*others, one]))
    whole.replace(path)


def main() -> None:
    fresh = {"action": "store_true", "help": "forget the runs there are"}
    small_images = "scikit-learn's small digits: seconds"
    options = asked(__doc__, quick=small_images, threads=None, data=DATA, runs=NAMES, seeds=3, fresh=fresh)
    if not options.quick and not (options.data / "mnist.npz").exists():
        raise SystemExit("no mnist.npz in --data: give the folder that has it, or --quick")
    if options.quick and options.out == RESULTS:
        options.out = Path("out/digits-quick")
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "digits.jsonl"
    if options.fresh:
        path.unlink(missing_ok=True)
    images, runs, code = small() if options.quick else mnist(options.data), kept(path), own_code()
    for setting, seed in wanted(options):
        if any(one.whole and (one.setting, one.seed, one.code) == (setting, seed, code) for one in runs):
            continue
        others = [one for one in runs if (one.setting.name, one.seed) != (setting.name, seed)]
        runs = [*others, run(setting, images, seed, code, partial(keep, path, others))]
    report(options, runs, images.name)


if __name__ == "__main__":
    main()
