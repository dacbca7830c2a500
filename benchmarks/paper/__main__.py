"""The experiments of the DSG and the CDSG paper.

    python -m benchmarks.paper [--only ridge gp adult eights deformed mnist cdsg] [--data DIR] [--quick] [--out DIR]

Without `--only` all are run. a9a and mnist.npz are read from --data, and what is not there is left out, saying so. Each
experiment writes a page paper_<name>.md, its looks as paper_<name>.csv and a plot to --out (benchmarks/results); this
command writes paper.md, which says what each is and what is not run. Times are of one thread.
"""

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.command import DATA, asked
from benchmarks.paper import deformed_eights, multiclass, posterior, ridge, svm, utilize
from benchmarks.report import publish, table

#: By name: what runs it, which section it is, and what it compares.
EXPERIMENTS: dict[str, tuple[Callable[[Namespace], None], str, str]] = {
    "ridge": (ridge.run, "DSG 7.1", "kernel ridge regression in the plane: last and averaged solution, all algorithms"),
    "gp": (posterior.run, "DSG 7.2", "a Gaussian process' posterior in the plane: mean and variance, with NORMA"),
    "adult": (partial(svm.run, svm.ADULT), "DSG 7.3", "kernel support vector machines on Adult, all algorithms"),
    "eights": (partial(svm.run, svm.EIGHTS), "DSG 7.3", "the same on MNIST's 8 against 6"),
    "deformed": (deformed_eights.run_deformed, "DSG 7.3", "8 against 6 from deformed images, by preconditioned DSG"),
    "mnist": (multiclass.run, "DSG 7.4", "MNIST's ten classes, on pixels"),
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


def rows(out: Path) -> list[list[str]]:
    """Return a row for each experiment, with a link to its page in a folder."""
    pages = {name: f"paper_{name}.md" for name in EXPERIMENTS}
    links = {n: f"[paper_{n}]({p})" if (out / p).exists() else f"{n}: not measured yet" for n, p in pages.items()}
    return [[links[name], section, what] for name, (_, section, what) in EXPERIMENTS.items()]


def main() -> None:
    names = {"nargs": "+", "choices": list(EXPERIMENTS), "default": list(EXPERIMENTS), "help": "all by default"}
    options = asked(__doc__, quick="one seed and some hundred rows", data=DATA, only=names)
    for name in options.only:
        EXPERIMENTS[name][0](options)
    publish(
        options,
        "paper",
        "The experiments of the papers",
        table(["page", "section", "what"], rows(options.out)),
        "Not run, for there are no data for them here:",
        table(["data", "section"], NOT_RUN),
        "The networks that these sections compare with are not trained here either: the paper's .5% on MNIST is on "
        "features of a trained convolutional net, not on pixels.",
    )


if __name__ == "__main__":
    main()
