"""The window solvers beside others: objective and gap against CPU seconds and passes.

    python -m benchmarks.window [--only dspdc dspdc_log a9a s3gd] [--data DIR] [--quick] [--out DIR]

Without `--only` all are run: dspdc and dspdc_log (the DSPDC paper's factorized data, with its smooth hinge or the
logistic loss), a9a (DSPDC on plain rows) and s3gd (stochastic gradients on a9a, electricity, shuttle and MNIST). a9a,
electricity_samlb.npz, shuttle.npz and mnist.npz are read from --data, and what is not there is left out, saying so.
Each writes a page window_<name>.md, its looks as a CSV file and plots to --out (benchmarks/results); this command
writes window.md, which leads to them. One thread.
"""

import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from benchmarks.command import DATA, asked
from benchmarks.report import publish, table
from benchmarks.solvers import dspdc_page, s3gd_page

#: By name: what runs it, and what it compares.
EXPERIMENTS: dict[str, tuple[Callable[[Namespace], None], str]] = {
    "dspdc": (dspdc_page.run, "DSPDC, SPDC and SDCA on factorized data, the six settings of the paper"),
    "dspdc_log": (dspdc_page.run_log, "the same and scikit-learn's SAGA, with the logistic loss"),
    "a9a": (dspdc_page.run_adult, "the same on a9a, both losses"),
    "s3gd": (s3gd_page.run, "S3GD, SGD, stratified SGD, SVRG and SCV on four data sets"),
}
#: Pages that commands of their own write, and what they are about.
OTHERS = {
    "window_slopes": ("benchmarks.solvers.slopes", "what an iteration of DSPDC costs, against each dimension"),
    "window_matrix": ("benchmarks.solvers.matrix_page", "matrix risk and large-margin metrics"),
    "window_refit": ("benchmarks.window_refit", "`WindowRefit` on a drifting and on a stationary stream"),
}


def rows(out: Path) -> list[list[str]]:
    """Return a row for each experiment: a link to its page in a folder, and what the page says came out."""
    found = []
    for name, (_, what) in EXPERIMENTS.items():
        page = out / f"window_{name}.md"
        parts = page.read_text().split("\n\n")[1:] if page.exists() else []
        said = next((part for part in parts if not part.startswith("`")), "")  # after the command
        link = f"[window_{name}](window_{name}.md)" if said else f"{name}: not measured yet"
        found.append([link, what, said.replace("\n- ", " ").lstrip("- ")])
    return found


def main() -> None:
    names = {"nargs": "+", "choices": list(EXPERIMENTS), "default": list(EXPERIMENTS), "help": "all by default"}
    options = asked(__doc__, quick="a few hundred rows and seconds", data=DATA, only=names)
    # The solvers' own histories are in CPU seconds too then, which other processes hardly change.
    with mock.patch("time.perf_counter", time.process_time):
        for name in options.only:
            EXPERIMENTS[name][0](options)
    publish(
        options,
        "window",
        "The window solvers beside others",
        table(["page", "what is compared", "what came out"], rows(options.out)),
        *(
            f"[{page}]({page}.md), of `python -m {command}`: {what}."
            for page, (command, what) in OTHERS.items()
            if (options.out / f"{page}.md").exists()
        ),
    )


if __name__ == "__main__":
    main()
