"""The tables and the plot of the runs of benchmarks.digits."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from benchmarks.digit_runs import Run
from benchmarks.report import table, versions, write

#: What is asked for: the test error in per cent and, where there is one, minutes on two cores.
ENDLESS_TARGET, ENDLESS_MINUTES = 1.0, 40
ONE_PASS_TARGET, PASSES_TARGET, PASSES_MINUTES = 1.9, 1.5, 10
#: Seeds whose mean error is asked for.
SEEDS = 3
#: Records after which errors are in the table, or the last look before.
MARKS = (10_000, 50_000, 100_000, 200_000, 400_000, 700_000, 1_000_000)
COLORS = ("#0072B2", "#009E73", "#E69F00", "#CC79A7")


def report(runs: Sequence[Run], images: str, out: Path, quick: bool) -> None:
    """Write digits.md and digits.png.

    Parameters
    ----------
    runs
        All there are.
    images
        What the images are called.
    out
        The folder.
    quick
        Whether these are the runs of --quick.

    """
    endless = [run for run in runs if run.setting.records]
    passes = [run for run in runs if run.setting.passes]
    curves = {
        f"{images}, deformed anew for ever": endless,
        f"{images} itself": [run for run in passes if len(run.looks) > 1],
    }
    curves = {title: of_title for title, of_title in curves.items() if of_title}
    if curves:
        plot(curves, out / "digits.png")
    processors = ", ".join(sorted({run.processor for run in runs}))
    text = [
        "# Digits without end",
        f"`python -m benchmarks.digits {'--quick' if quick else '--data DIR'}` on {processors}, {versions()}. "
        "Inputs are principal components of the pixels, fitted on training images; test images are never deformed. "
        "Core-seconds are those of the process on all cores, from the images to the last step and without the looks at "
        "the test set; *making* is their share for deforming and projecting images. Seconds by the clock are of "
        "learning alone, and depend on what else the machine did. The bandwidth is in median distances of training "
        "images. The ridge of a preconditioned step is divided by the weight of the records; steps are by the default "
        "rule where nothing else is said. CDSG is the paper's, with cap = 2.",
        *([] if quick else [verdict(endless, passes)]),
        *(["![test error against records and core-seconds](digits.png)"] if curves else []),
    ]
    if endless:
        text += [
            f"## {images}, deformed anew for ever",
            "Each record is a training image shifted, scaled, sheared, rotated and displaced smoothly "
            "(`benchmarks/deformed.py`), and learned once. Asked for: at most "
            f"{ENDLESS_TARGET}% after 1,000,000 records in {ENDLESS_MINUTES} minutes on two cores.",
            endless_table(endless),
            "Test error % after so many records (the last look before):",
            errors_table(endless),
        ]
    if passes:
        text += [
            f"## {images} itself",
            f"No deformation. Asked for: a mean of three seeds of at most {ONE_PASS_TARGET}% after one pass, and at "
            f"most {PASSES_TARGET}% in {PASSES_MINUTES} minutes on two cores.",
            table(["machine", *SETTINGS], sorted({(run.setting.name, *settings(run)) for run in passes})),
            passes_table(passes),
        ]
    write(out / "digits.md", "\n\n".join(text))


def verdict(endless: Sequence[Run], passes: Sequence[Run]) -> str:
    """What is asked for and what was reached, a line each; what no run shows is not run."""
    best = min(
        (
            (run.looks[-1].error, run.looks[-1].learning, run.setting.name)
            for run in endless
            if run.whole and run.looks[-1].learning <= 60 * ENDLESS_MINUTES
        ),
        default=None,
    )
    lines = [line(f"Deformed digits, {ENDLESS_MINUTES} minutes", ENDLESS_TARGET, best)]
    for title, target, most, minutes in (
        ("one pass", ONE_PASS_TARGET, 1, PASSES_MINUTES),
        (f"{PASSES_MINUTES} minutes", PASSES_TARGET, None, PASSES_MINUTES),
    ):
        lines.append(line(f"No deformation, {title}", target, best_of_passes(passes, most, minutes)))
    return "\n".join(lines)


def line(title: str, target: float, best: tuple[float, float, str] | None) -> str:
    """What is asked for, beside the error, the seconds and the name of the best run."""
    if best is None:
        return f"- **{title}: at most {target}% asked for, not run.**"
    error, seconds, name = best
    word = "reached" if 100 * error <= target else "missed"
    return f'- **{title}: at most {target}% asked for, {word}**: {100 * error:.2f}% by "{name}" in {seconds:,.0f} s.'


def best_of_passes(passes: Sequence[Run], most: int | None, minutes: int) -> tuple[float, float, str] | None:
    """The least mean error of three seeds or more, after so many passes at most, within some minutes of each."""
    found = []
    for name in dict.fromkeys(run.setting.name for run in passes):
        seeds = [run for run in passes if run.setting.name == name]
        for number in range(min(len(run.looks) for run in seeds)):
            looks = [run.looks[number] for run in seeds]
            seconds = max(look.learning for look in looks)
            if len(seeds) >= SEEDS and (most is None or number < most) and seconds <= 60 * minutes:
                found.append((float(np.mean([look.error for look in looks])), seconds, name))
    return min(found, default=None)


def settings(run: Run) -> list[str]:
    """What a machine is, in cells."""
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


SETTINGS = ["steps", "loss", "weight", "components, bandwidth", "B", "F", "blocks a step", "`max_features`"]


def endless_table(runs: Iterable[Run]) -> str:
    rows = []
    for run in runs:
        last = run.looks[-1]
        rows.append(
            [
                run.setting.name,
                *settings(run),
                f"{last.records:,}",
                f"{100 * last.error:.2f}",
                f"{last.features:,}",
                f"{last.core_seconds:,.0f}",
                f"{100 * last.making_core / last.core_seconds:.0f}%",
                f"{last.learning:,.0f}",
            ]
        )
    head = [
        "machine",
        *SETTINGS,
        "records",
        "test error %",
        "features",
        "core-seconds",
        "making",
        "seconds by the clock",
    ]
    return table(head, rows)


def errors_table(runs: Iterable[Run]) -> str:
    rows = []
    for run in runs:
        errors = []
        for mark in MARKS:
            before = [look.error for look in run.looks if look.records <= mark]
            errors.append(f"{100 * before[-1]:.2f}" if before and mark <= run.looks[-1].records else "")
        rows.append([run.setting.name, *errors])
    return table(["machine", *(f"{mark:,}" for mark in MARKS)], rows)


def passes_table(runs: Sequence[Run]) -> str:
    """A row for each machine and pass, over the seeds that came so far."""
    rows = []
    for name, group in groupby(runs, key=lambda run: run.setting.name):
        of_seeds = list(group)
        for number in range(max(len(run.looks) for run in of_seeds)):
            looks = [run.looks[number] for run in of_seeds if number < len(run.looks)]
            rows.append(
                [
                    name,
                    str(number + 1),
                    f"{100 * np.mean([look.error for look in looks]):.2f}",
                    ", ".join(f"{100 * look.error:.2f}" for look in looks),
                    f"{looks[0].features:,}",
                    f"{np.mean([look.core_seconds for look in looks]):,.0f}",
                    f"{max(look.learning for look in looks):,.0f}",
                ]
            )
    seconds = ["core-seconds", "most seconds by the clock"]
    return table(["machine", "passes", "mean test error %", "of each seed", "features", *seconds], rows)


def plot(curves: dict[str, list[Run]], path: Path) -> None:
    """Test error against records and against core-seconds, a row each title."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(len(curves), 2, figsize=(11, 4.2 * len(curves)), squeeze=False, sharey="row")
    for (title, runs), row in zip(curves.items(), axes, strict=True):
        colors = dict(zip(dict.fromkeys(run.setting.name for run in runs), COLORS, strict=False))
        for axis, label in zip(row, ("records", "core-seconds"), strict=True):
            named = set[str]()
            for run in runs:
                name = run.setting.name
                axis.plot(
                    [look.records if label == "records" else look.core_seconds for look in run.looks],
                    [100 * look.error for look in run.looks],
                    marker="o",
                    markersize=3.5,
                    color=colors[name],
                    label=None if name in named else name,
                )
                named.add(name)
            is_endless = bool(runs[0].setting.records)
            axis.set(xscale="log" if is_endless else "linear", yscale="log", xlabel=label, title=title)
            axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 3, 5)))
            axis.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
            axis.yaxis.set_minor_formatter(ticker.NullFormatter())
            if is_endless:
                axis.xaxis.set_minor_formatter(ticker.NullFormatter())
            target = ENDLESS_TARGET if is_endless else PASSES_TARGET
            axis.axhline(target, color="grey", linewidth=1, linestyle="--")
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(alpha=0.25)
        row[0].set_ylabel("test error %")
        row[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
