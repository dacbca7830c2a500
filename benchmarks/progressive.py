"""One run of the accuracy benchmark: every record predicted, then learned, and scored."""

import math
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean
from typing import Any

from benchmarks.peers import Model
from benchmarks.report import processor
from benchmarks.streams import Pair, Stream, with_lags

CHUNK = 20  # records between two looks at the clock
CLIP = 1e-15
BINS = 15  # of the calibration error
WARM_UP = 300  # records that a model of ours is shown beforehand, so that no compilation is timed


@dataclass
class Result:
    """What a run came to; `reached` < `n_records` where the time limit bit or the model failed."""

    stream: str
    model: str
    seed: int
    n_records: int
    limit: float
    source: str
    processor: str
    reached: int
    seconds: float
    memory: int
    scores: dict[str, float]
    failure: str = ""

    @property
    def finished(self) -> bool:
        return self.reached == self.n_records


@dataclass
class ClassScores:
    """Accuracy, macro-F1 over the classes that occurred, log-loss and expected calibration error.

    No prediction is a wrong one. The calibration error is of the most probable class, over `BINS` equal intervals.
    """

    right: Counter[Any] = field(default_factory=Counter)
    predicted: Counter[Any] = field(default_factory=Counter)
    true: Counter[Any] = field(default_factory=Counter)
    loss: float = 0.0
    surplus: list[float] = field(default_factory=lambda: [0.0] * BINS)  # confidence beyond what was right

    def update(self, y: Any, chances: dict[Any, float]) -> None:
        guess = max(chances, key=chances.__getitem__) if chances else None
        self.true[y] += 1
        self.predicted[guess] += 1
        self.right[y] += guess == y
        total = sum(chances.values())
        if guess is not None and total > 0 and math.isfinite(confidence := chances[guess] / total):
            self.surplus[min(int(confidence * BINS), BINS - 1)] += confidence - (guess == y)
        chance = chances.get(y, 0.0) / total if total > 0 else 0.0  # not every model's chances sum to 1
        self.loss -= math.log(min(max(chance, CLIP), 1.0)) if math.isfinite(chance) else math.log(CLIP)

    def scores(self) -> dict[str, float]:
        n = self.true.total()
        f1 = [2 * self.right[c] / (self.true[c] + self.predicted[c]) for c in self.true]
        return {
            "accuracy": self.right.total() / n,
            "macro_f1": sum(f1) / len(f1),
            "log_loss": self.loss / n,
            "calibration": sum(map(abs, self.surplus)) / n,
        }


@dataclass
class ErrorScores:
    """Mean absolute and root mean squared error. No prediction is a prediction of 0."""

    n: int = 0
    absolute: float = 0.0
    squared: float = 0.0

    def update(self, y: float, guess: float | None) -> None:
        error = abs(y - (guess or 0.0))
        self.n += 1
        self.absolute += error
        # A diverging model's error may be too long to square.
        self.squared += error * error if error < 1e150 else math.inf

    def scores(self) -> dict[str, float]:
        return {"mae": self.absolute / self.n, "rmse": math.sqrt(self.squared / self.n)}


def evaluate(stream: Stream, model: Model, seed: int, limit: float, n_records: int | None) -> Result:
    """Test, then train, until the stream ends or the model has used up its seconds.

    Only the model's own calls are timed, in CPU seconds of the process: the machine may be shared.
    """
    read = stream.records if model.ours else stream.encoded

    def records(limit: int | None) -> Iterator[Pair]:
        given = read(limit)
        return with_lags(given, stream.n_classes) if model.lags and not model.ours else given

    if model.ours:
        follow(model.make(seed, stream.n_classes), list(records(WARM_UP)), stream.n_classes > 0)
    learner = model.make(seed, stream.n_classes)
    tally: ClassScores | ErrorScores = ClassScores() if stream.n_classes else ErrorScores()
    source = iter(records(n_records))
    reached, seconds, failure = 0, 0.0, ""
    while not failure and seconds < limit and (chunk := list(islice(source, CHUNK))):
        guesses: list[Any] = []
        start = time.process_time()
        try:
            follow(learner, chunk, stream.n_classes > 0, guesses)
        except Exception as error:  # a model of River's that breaks is a result, not the end of the benchmark
            failure = f"{type(error).__name__}: {error}"
        seconds += time.process_time() - start
        for (_, y), guess in zip(chunk, guesses, strict=False):
            tally.update(y, guess)
        reached += len(guesses)
    return Result(
        stream=stream.name,
        model=model.name,
        seed=seed,
        n_records=min(stream.n_records, n_records or stream.n_records),
        limit=limit,
        source=model.source(),
        processor=processor(),
        reached=reached,
        seconds=seconds,
        memory=learner._raw_memory_usage,
        scores=tally.scores() if reached else {},
        failure=failure,
    )


def follow(learner: Any, records: Iterable[Pair], classes: bool, guesses: list[Any] | None = None) -> None:
    """Predict and learn record by record; a record that was learned leaves its prediction in `guesses`."""
    predict = learner.predict_proba_one if classes else learner.predict_one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflows of models that diverge: the score shows them
        for x, y in records:
            guess = predict(x)
            learner.learn_one(x, y)
            if guesses is not None:
                guesses.append(guess)


def score(model: Any, records: Iterable[Pair], classes: bool, skip: int = 0) -> float:
    """Predict and learn all records by `advance`; return the accuracy, or the mean absolute error, after the first."""
    xs, ys = map(list, zip(*records, strict=True))
    pairs = list(zip(ys, model.advance(xs, ys).predictions, strict=True))[skip:]
    return fmean(float(y == guess) if classes else abs(y - guess) for y, guess in pairs)
