"""The tables and the plot of the runs of benchmarks.digits."""

from argparse import Namespace
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from benchmarks.digit_runs import Run
from benchmarks.plots import COLORS, panels
from benchmarks.report import publish, table

#: What is asked for: the test error in per cent, and minutes on two cores.
ENDLESS_TARGET, ENDLESS_MINUTES = 1.0, 40
ONE_PASS_TARGET, PASSES_TARGET, PASSES_MINUTES = 1.9, 1.5, 10
#: Records after which errors are in the table, or the last look before.
MARKS = (10_000, 50_000, 100_000, 200_000, 400_000, 700_000, 1_000_000)
SETTINGS = ["steps", "loss", "weight", "components, bandwidth", "B", "F", "blocks a step", "`max_features`"]


def report(options: Namespace, runs: Sequence[Run], images: str) -> None:
    """Write digits.md and digits.png, of all runs there are over images of this name."""
    endless = [run for run in runs if run.setting.records]
    passes = [run for run in runs if run.setting.passes]
    if endless:
        plot(f"{images}, deformed anew for ever", endless, options.out / "digits.png")
    processors = ", ".join(sorted({run.processor for run in runs}))
    publish(
        options,
        "digits",
        "Digits without end",
        f"Runs on {processors}. Inputs are principal components of the pixels, fitted on training images; test images "
        "are never deformed. Core-seconds are those of the process on all cores, from the images to the last step "
        "and without the looks at the test set; *making* is their share for deforming and projecting images. Seconds "
        "by the clock are of learning alone, and depend on what else the machine did. The bandwidth is in median "
        "distances of training images. The ridge of a preconditioned step is divided by the weight of the records; "
        "steps are by the default rule where nothing else is said. CDSG is the paper's, with cap = 2.",
        "![test error against records and core-seconds](digits.png)" if endless else "",
        *(of_endless(endless, images) if endless else []),
        *(of_passes(passes, images) if passes else []),
    )


def judged(error: float, target: float, seconds: float, minutes: float) -> str:
    """Return whether an error in per cent, and the seconds to it, are as asked for."""
    word = "reached" if error <= target and seconds <= 60 * minutes else "missed"
    return f"{word} by {error:.2f}% in {seconds:,.0f} s"


def of_endless(runs: Sequence[Run], images: str) -> list[str]:
    """Return the part on deformed images."""
    rows, errors = [], []
    for run in runs:
        last = run.looks[-1]
        counts = f"{last.records:,}", f"{100 * last.error:.2f}", f"{last.features:,}", f"{last.core_seconds:,.0f}"
        making = f"{100 * last.making_core / last.core_seconds:.0f}%"
        rows.append([run.setting.name, *settings(run), *counts, making, f"{last.learning:,.0f}"])
        cells = []
        for mark in MARKS:
            before = [look.error for look in run.looks if look.records <= mark]
            cells.append(f"{100 * before[-1]:.2f}" if before and mark <= last.records else "")
        errors.append([run.setting.name, *cells])
    best = min((run.looks[-1] for run in runs), key=lambda look: look.error)
    head = ["machine", *SETTINGS, "records", "test error %", "features", "core-seconds", "making"]
    return [
        f"## {images}, deformed anew for ever",
        "Each record is a training image shifted, scaled, sheared, rotated and displaced smoothly "
        f"(`benchmarks/deformed.py`), and learned once. Asked for: at most {ENDLESS_TARGET}% after 1,000,000 records "
        f"in {ENDLESS_MINUTES} minutes on two cores, "
        f"{judged(100 * best.error, ENDLESS_TARGET, best.learning, ENDLESS_MINUTES)}.",
        table([*head, "seconds by the clock"], rows),
        "Test error % after so many records (the last look before):",
        table(["machine", *(f"{mark:,}" for mark in MARKS)], errors),
    ]


def of_passes(runs: Sequence[Run], images: str) -> list[str]:
    """Return the part on the images themselves: a row for each machine and pass, over the seeds that came so far."""
    rows, found = [], []
    for name, group in groupby(runs, key=lambda run: run.setting.name):
        of_seeds = list(group)
        for number in range(max(len(run.looks) for run in of_seeds)):
            looks = [run.looks[number] for run in of_seeds if number < len(run.looks)]
            errors, seconds = [100 * look.error for look in looks], max(look.learning for look in looks)
            found.append((float(np.mean(errors)), seconds))
            shown = f"{found[-1][0]:.2f}", ", ".join(f"{error:.2f}" for error in errors), f"{looks[0].features:,}"
            core = f"{np.mean([look.core_seconds for look in looks]):,.0f}"
            rows.append([name, str(number + 1), *shown, core, f"{seconds:,.0f}"])
    error, seconds = min(found)
    head = ["machine", "passes", "mean test error %", "of each seed", "features", "core-seconds"]
    return [
        f"## {images} itself",
        f"No deformation. Asked for: a mean of three seeds of at most {ONE_PASS_TARGET}% after one pass, and at most "
        f"{PASSES_TARGET}% in {PASSES_MINUTES} minutes on two cores, "
        f"{judged(error, PASSES_TARGET, seconds, PASSES_MINUTES)}.",
        table(["machine", *SETTINGS], sorted({(run.setting.name, *settings(run)) for run in runs})),
        table([*head, "most seconds by the clock"], rows),
    ]


def settings(run: Run) -> list[str]:
    """Return what a machine is, in cells."""
    one = run.setting
    inputs = str(one.components) if one.components else "pixels"
    if one.default:
        return ["the mixture, by default", "softmax", "1", inputs, *4 * ["by default"]]
    steps = "plain" if not one.precondition else "preconditioned"
    if one.step is not None:
        falls = one.last_step is not None and one.last_step != one.step
        steps += f", {one.step:g}, falling to {one.last_step:g}" if falls else f", each {one.step:g}"
    return [
        f"{one.growth}, {steps}",
        "squared error" if one.squared else "softmax",
        f"{one.weight:g}",
        f"{inputs}, {one.bandwidth:g}",
        f"{one.batch_size:,}",
        f"{one.block_size:,}{'' if one.structured else ', independent'}",
        str(one.blocks_per_step),
        "none" if one.max_features is None else f"{one.max_features:,}",
    ]


def plot(title: str, runs: Sequence[Run], path: Path) -> None:
    """Draw test error against records and against core-seconds."""
    with panels(path, 1, 2, (5.5, 4.2), sharey="row") as (_, axes):
        for axis, label in zip(axes[0], ("records", "core_seconds"), strict=True):
            for run, color in zip(runs, COLORS, strict=False):
                x, y = [getattr(look, label) for look in run.looks], [100 * look.error for look in run.looks]
                axis.loglog(x, y, marker=".", color=color, label=run.setting.name)
            axis.axhline(ENDLESS_TARGET, color="grey", linewidth=1, linestyle="--")
            axis.set(xlabel=label.replace("_", "-"), title=title)
        axes[0][0].set_ylabel("test error %")
        axes[0][0].legend(frameon=False)
