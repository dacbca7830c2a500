"""The accuracy benchmark's tables: beside linear models, with the target's past, beside published scores."""

from benchmarks import scoreboard
from benchmarks.board import board
from benchmarks.progressive import Result
from benchmarks.streams import FILES, HARD, SIXTEEN, Stream


def _stream(name, group, n_classes):
    return Stream(name, group, 100, n_classes, lambda: iter(()))


def _run(stream, model, value):
    scores = {"accuracy": value} if stream.n_classes else {"mae": value, "rmse": value}
    return Result(stream.name, model, 1, 100, 60.0, "code", "processor", 100, 1.0, 1000, scores)


def test_beside_a_linear_model_the_sixteen_and_the_others_stand_apart():
    scores = [
        (_stream("near", SIXTEEN, 2), 0.900, 0.904),
        (_stream("far", SIXTEEN, 2), 0.900, 0.910),
        (_stream("ahead", HARD, 2), 0.900, 0.800),
        (_stream("numbers", FILES, 0), 1.03, 1.0),
    ]
    runs = [
        _run(s, model, value)
        for s, *values in scores
        for model, value in zip(("Kernel", "Linear"), values, strict=True)
    ]
    text = scoreboard.beside_linear(board([s for s, *_ in scores], runs, None))
    assert text.splitlines()[2:] == [
        "| Kernel | LogisticRegression | all | 3 | 2 | 1 | near (0.40), far (1.00) |",
        "| Kernel | LogisticRegression | the sixteen | 2 | 2 | 1 | near (0.40), far (1.00) |",
        "| Kernel | LogisticRegression | the others | 1 | 0 | 0 |  |",
        "| Kernel | LinearRegression | all | 1 | 1 | 1 | numbers (3.0%) |",
        "| Kernel | LinearRegression | the others | 1 | 1 | 1 | numbers (3.0%) |",
    ]
