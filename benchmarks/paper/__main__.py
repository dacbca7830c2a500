"""The experiments of the DSG and the CDSG paper.

    python -m benchmarks.paper [ridge] [gp] [adult] [eights] [deformed] [cdsg]
        [--data DIR] [--quick] [--out DIR]

Without a name all are run. a9a and mnist.npz are read from --data, and what is not there is left out, saying so. Each
experiment writes a page paper_<name>.md, its looks as paper_<name>.csv and a plot to --out (benchmarks/results); this
command writes paper.md, which says what each is and what is not run. Times are of one thread.
"""

import argparse
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.paper import deformed_eights, posterior, ridge, svm, utilize
from benchmarks.report import table, write

#: By name: what runs it, which section it is, and what it compares.
EXPERIMENTS: dict[str, tuple[Callable[[Path | None, bool, Path], None], str, str]] = {
    "ridge": (ridge.run, "DSG 7.1", "kernel ridge regression in the plane: last and averaged solution, all algorithms"),
    "gp": (posterior.run, "DSG 7.2", "a Gaussian process' posterior in the plane: mean and variance, with NORMA"),
    "adult": (partial(svm.run, svm.ADULT), "DSG 7.3", "kernel support vector machines on Adult, all algorithms"),
    "eights": (partial(svm.run, svm.EIGHTS), "DSG 7.3", "the same on MNIST's 8 against 6"),
    "deformed": (deformed_eights.run_deformed, "DSG 7.3", "8 against 6 from deformed images, by preconditioned DSG"),
    "cdsg": (utilize.run, "CDSG 5.1", "DSG, UDSG, CDSG and SVRG on MNIST, digits and Adult"),
}
#: Experiments of the papers that have no data here, and where they are.
NOT_RUN = [
    ("Forest, 0.5 million rows", "DSG 7.3"),
    ("MNIST-8M: ten classes of 8.1 million on features of a trained net", "DSG 7.4; CDSG 5.2, 5.3"),
    ("CIFAR-10", "DSG 7.4; CDSG 5.1, 5.3"),
    ("ImageNet", "DSG 7.4; CDSG 5.3"),
    ("QuantumMachine and MolecularSpace", "DSG 7.5"),
    ("Epsilon and Year", "CDSG 5.1"),
]


def overview(out: Path) -> str:
    """The page that leads to the others in a folder."""
    return "\n\n".join(
        [
            "# The experiments of the papers",
            "`python -m benchmarks.paper --data DIR` writes these pages; `--quick` is a short form with a few rows "
            "of each data set.",
            table(
                ["page", "section", "what"],
                [
                    [
                        f"[paper_{name}](paper_{name}.md)"
                        if (out / f"paper_{name}.md").exists()
                        else f"{name}: not measured yet",
                        section,
                        what,
                    ]
                    for name, (_, section, what) in EXPERIMENTS.items()
                ],
            ),
            "Not run, for there are no data for them here:",
            table(["data", "section"], NOT_RUN),
            "The networks that these sections compare with are not trained here either: the paper's .5% on MNIST "
            "is on features of a trained convolutional net, not on pixels.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=textwrap.dedent(__doc__ or ""), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "experiments", nargs="*", metavar="experiment", help=f"of {', '.join(EXPERIMENTS)}; all by default"
    )
    parser.add_argument("--data", type=Path, help="folder with a9a and mnist.npz")
    parser.add_argument("--quick", action="store_true", help="one seed and some hundred rows")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results")
    options = parser.parse_args()
    unknown = sorted(set(options.experiments) - set(EXPERIMENTS))
    if unknown:
        parser.error(f"no experiment {', '.join(unknown)}: there are {', '.join(EXPERIMENTS)}")
    with threadpool_limits(1):
        for name in options.experiments or EXPERIMENTS:
            EXPERIMENTS[name][0](options.data, options.quick, options.out)
    write(options.out / "paper.md", overview(options.out))


if __name__ == "__main__":
    main()
