"""The window solvers beside others: objective and gap against CPU seconds and passes.

    python -m benchmarks.window [--data DIR] [--only NAME] [--quick] [--out DIR]

NAME is dspdc or dspdc_log (the DSPDC paper's factorized data, with its smooth hinge or the logistic loss), a9a (DSPDC
on plain rows) or s3gd (stochastic gradients on a9a, electricity, shuttle and MNIST); without it all are run. a9a,
electricity_samlb.npz, shuttle.npz and mnist.npz are read from --data, and what is not there is left out, saying so.
Each writes a page window_<name>.md, its looks as a CSV file and plots to --out (benchmarks/results); this command
writes window.md, which leads to them. One thread.
"""

import argparse
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from threadpoolctl import threadpool_limits

from benchmarks.report import table, write
from benchmarks.solvers import dspdc_page, s3gd_page

#: By name: what runs it, and what it compares.
EXPERIMENTS: dict[str, tuple[Callable[[Path | None, bool, Path], None], str]] = {
    "dspdc": (dspdc_page.run, "DSPDC, SPDC and SDCA on factorized data, the six settings of the paper"),
    "dspdc_log": (dspdc_page.run_log, "the same and scikit-learn's SAGA, with the logistic loss"),
    "a9a": (dspdc_page.run_adult, "the same on a9a, both losses"),
    "s3gd": (s3gd_page.run, "S3GD, SGD, stratified SGD, SVRG and SCV on four data sets"),
}

#: Pages that commands of their own write, and what they are about.
OTHERS = {
    "window_slopes.md": ("benchmarks.solvers.slopes", "what an iteration of DSPDC costs, against each dimension"),
    "window_matrix.md": ("benchmarks.solvers.matrix_page", "matrix risk and large-margin metrics"),
    "window_refit.md": ("benchmarks.window_refit", "`WindowRefit` on a drifting and on a stationary stream"),
}


def overview(out: Path) -> str:
    """The page that leads to the others in a folder, with what each says first."""
    rows = []
    for name, (_, what) in EXPERIMENTS.items():
        page = out / f"window_{name}.md"
        said = (
            " ".join(page.read_text().split("\n\n")[1].replace("\n- ", " ").lstrip("- ").split())
            if page.exists()
            else ""
        )
        rows.append([f"[window_{name}](window_{name}.md)" if said else f"{name}: not measured yet", what, said])
    return "\n\n".join(
        [
            "# The window solvers beside others",
            "`python -m benchmarks.window --data DIR` writes these pages; `--only NAME` one of them.",
            table(["page", "what is compared", "what came out"], rows),
            *(
                f"[{page.removesuffix('.md')}]({page}), of `python -m {command}`: {what}."
                for page, (command, what) in OTHERS.items()
                if (out / page).exists()
            ),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=textwrap.dedent(__doc__ or ""), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with a9a and the .npz files")
    parser.add_argument("--only", choices=list(EXPERIMENTS), help="one of the pages; all by default")
    parser.add_argument("--quick", action="store_true", help="a few hundred rows and seconds")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    # The solvers' own histories are in CPU seconds too then, which other processes hardly change.
    with threadpool_limits(1), mock.patch("time.perf_counter", time.process_time):
        for name in [options.only] if options.only else EXPERIMENTS:
            EXPERIMENTS[name][0](options.data, options.quick, options.out)
    write(options.out / "window.md", overview(options.out))


if __name__ == "__main__":
    main()
