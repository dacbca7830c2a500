"""The streams of the accuracy benchmark: sixteen that need no download, two known to be hard, and files where given."""

import datetime as dt
import gzip
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from river import datasets
from river.datasets import synth

Pair = tuple[dict[Any, Any], Any]
Rows = Callable[[], Iterator[Pair]]

N_LAGS = 3  # last targets that a regression's records carry where they carry any
SIXTEEN, HARD, FILES = "sixteen", "hard", "files"


@dataclass(frozen=True)
class Stream:
    """Records in their order, the same at every call of `rows`; a regression where `n_classes` is 0."""

    name: str
    group: str
    n_records: int
    n_classes: int
    rows: Rows
    path: Path | None = None

    @property
    def there(self) -> bool:
        """Whether it can be read: its file is there, or it needs none."""
        return self.path is None or self.path.exists()

    def records(self, limit: int | None = None) -> Iterator[Pair]:
        """Inputs and target, dates as ordinals (days, with their fraction)."""
        for x, y in islice(self.rows(), min(self.n_records, limit or self.n_records)):
            yield {key: ordinal(value) if isinstance(value, dt.date) else value for key, value in x.items()}, y

    def encoded(self, limit: int | None = None) -> Iterator[Pair]:
        """The same, strings one-hot (every category known beforehand), booleans as numbers."""
        categories: dict[Any, set[str]] = {}
        for x, _ in self.records(limit):
            for key, value in x.items():
                if isinstance(value, str):
                    categories.setdefault(key, set()).add(value)
        columns = {key: {value: f"{key}={value}" for value in sorted(seen)} for key, seen in categories.items()}
        for x, y in self.records(limit):
            # River's forests sort the names of the inputs, which must then be of one type.
            numbers = {str(key) if columns else key: float(value) for key, value in x.items() if key not in columns}
            for key, names in columns.items():
                numbers.update((name, float(x.get(key) == value)) for value, name in names.items())
            yield numbers, y


def with_lags(records: Iterable[Pair], n_classes: int) -> Iterator[Pair]:
    """The records with the targets before them as inputs: the last three, or of classes the last one, one-hot.

    What is not known yet is 0; a class has a column in the order in which classes come. A record's names become
    strings, for River's forests sort them.
    """
    last = [0.0] * (n_classes or N_LAGS)
    columns: dict[Any, int] = {}
    for x, y in records:
        yield {str(key): value for key, value in x.items()} | {f"lag {i}": value for i, value in enumerate(last, 1)}, y
        if n_classes:
            last = [0.0] * n_classes
            last[columns.setdefault(y, len(columns))] = 1.0
        else:
            last = [float(y), *last[:-1]]


def ordinal(moment: dt.date) -> float:
    """Days since the year 1, with the time of day as a fraction."""
    day = float(moment.toordinal())
    if isinstance(moment, dt.datetime):
        day += (moment.hour + moment.minute / 60 + moment.second / 3600) / 24
    return day


def whole(name: str, n_classes: int, dataset: Any, *, group: str = SIXTEEN, n_records: int | None = None) -> Stream:
    """A dataset bundled with River, or its first records."""
    return Stream(name, group, n_records or dataset.n_samples, n_classes, partial(iter, dataset))


def drawn(name: str, n_classes: int, generator: Any, *, group: str = SIXTEEN) -> Stream:
    """The first 5,000 records of a generator of `river.datasets.synth`."""
    return Stream(name, group, 5_000, n_classes, partial(generator.take, 5_000))


def built_in() -> list[Stream]:
    """The streams that need no file: the sixteen, then those known to be hard for random features."""
    rbf = synth.RandomRBFDrift(
        seed_model=1,
        seed_sample=1,
        n_classes=4,
        n_features=10,
        n_centroids=30,
        change_speed=0.001,
        n_drift_centroids=15,
    )
    hyperplane = synth.Hyperplane(seed=1, n_features=10, n_drift_features=3, mag_change=0.005)
    friedman_drift = synth.FriedmanDrift(drift_type="gra", position=(1500, 3500), seed=1)
    return [
        whole("Phishing", 2, datasets.Phishing()),
        whole("Bananas", 2, datasets.Bananas()),
        whole("ImageSegments", 7, datasets.ImageSegments()),
        whole("Shuttle", 2, datasets.Shuttle(), n_records=8_000),
        drawn("Agrawal", 2, synth.Agrawal(classification_function=3, seed=1)),
        drawn("SEA", 2, synth.SEA(variant=1, seed=1, noise=0.1)),
        drawn("LED", 10, synth.LED(seed=1, noise_percentage=0.1)),
        drawn("RandomRBFDrift", 4, rbf),
        drawn("Hyperplane", 2, hyperplane),
        drawn("Waveform", 3, synth.Waveform(seed=1)),
        whole("TrumpApproval", 0, datasets.TrumpApproval()),
        whole("ChickWeights", 0, datasets.ChickWeights()),
        drawn("Friedman", 0, synth.Friedman(seed=1)),
        drawn("FriedmanDrift", 0, friedman_drift),
        drawn("Planes2D", 0, synth.Planes2D(seed=1)),
        drawn("Mv", 0, synth.Mv(seed=1)),
        drawn("Mixed", 2, synth.Mixed(seed=1), group=HARD),
        whole("WaterFlow", 0, datasets.WaterFlow(), group=HARD),
    ]


def npz(path: Path) -> Iterator[Pair]:
    """Rows of `X` and `y` in a NumPy archive."""
    with np.load(path, allow_pickle=True) as data:
        X, y, names = data["X"].astype(float), data["y"].tolist(), data["feature_names"].tolist()
    return ((dict(zip(names, row.tolist(), strict=True)), target) for row, target in zip(X, y, strict=True))


def libsvm(path: Path, n_inputs: int) -> Iterator[Pair]:
    """Binary rows of a LIBSVM file, absent inputs as zeros."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path), n_features=n_inputs)
    for row, target in zip(X.toarray(), (y > 0).tolist(), strict=True):
        yield dict(enumerate(row.tolist())), target


def text(path: Path, header: bool) -> Iterator[Pair]:
    """Rows of a CSV file whose last column is the target."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for row in np.loadtxt(lines, delimiter=",", skiprows=int(header)):
            *inputs, target = row.tolist()
            yield dict(enumerate(inputs)), target


#: Archives of SAMLB's that are whole and keep their name: records and classes.
NAMED_BY_THEIR_FILES = (
    ("moving_squares", 200_000, 4),
    ("synth_RandomRBFDrift", 100_000, 4),
    ("synth_agrawal", 100_000, 2),
    ("MetroTraffic", 48_204, 0),
    ("bike12", 17_379, 0),
    ("cps88wages", 28_155, 0),
    ("elevators", 16_599, 0),
    ("kings_county", 21_613, 0),
)


def from_files(folder: Path) -> list[Stream]:
    """The streams that are read from files of a folder, whether they are there or not."""
    known: list[tuple[str, int, int, str, Callable[[Path], Iterator[Pair]]]] = [
        ("Elec2", 45_312, 2, "electricity_samlb.npz", npz),
        ("shuttle7", 58_000, 7, "shuttle.npz", npz),
        ("a9a", 32_561, 2, "a9a", partial(libsvm, n_inputs=123)),
        ("california_housing", 20_640, 0, "california_housing.npz", npz),
        ("House8L", 22_784, 0, "House8L.npz", npz),
        ("bike", 17_379, 0, "uci_bike.csv.gz", partial(text, header=False)),
        ("fried", 40_768, 0, "fried.csv", partial(text, header=True)),
        *((name, size, classes, f"{name}.npz", npz) for name, size, classes in NAMED_BY_THEIR_FILES),
    ]
    return [
        Stream(name, FILES, n_records, n_classes, partial(read, folder / file), folder / file)
        for name, n_records, n_classes, file, read in known
    ]


@cache
def catalog(folder: Path) -> dict[str, Stream]:
    """Every stream by its name."""
    return {stream.name: stream for stream in [*built_in(), *from_files(folder)]}


def of_names(streams: Iterable[Stream], names: Iterable[str]) -> list[Stream]:
    """Return the streams of these names that can be read.

    Raises
    ------
    SystemExit
        A name is unknown, or no stream can be read. No report is overwritten then.

    """
    known = {stream.name: stream for stream in streams}
    names = list(dict.fromkeys(names))
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no stream is called {', '.join(unknown)}; there are {', '.join(known)}")
    if not (found := readable(known[name] for name in names)):
        raise SystemExit("no stream is left: give the folder of their files by --data, or other names by --streams")
    return found


def readable(asked: Iterable[Stream]) -> list[Stream]:
    """Those streams that can be read; which cannot is printed."""
    chosen = list(asked)
    if missing := [stream.name for stream in chosen if not stream.there]:
        print(f"skipped, no such file in --data: {', '.join(missing)}")
    return [stream for stream in chosen if stream.there]
