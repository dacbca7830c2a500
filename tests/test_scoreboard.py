"""The accuracy benchmark's tables: beside linear models, with the target's past, beside published scores."""

from dataclasses import replace

from benchmarks import peers, scoreboard
from benchmarks.board import board
from benchmarks.progressive import Result
from benchmarks.published import FILE, published, published_table
from benchmarks.streams import FILES, HARD, SIXTEEN, Stream, from_files


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


def test_what_knows_the_past_of_the_target_stands_beside_its_like_only():
    stream = _stream("numbers", FILES, 0)
    runs = [
        _run(stream, model, value)
        for model, value in {"Kernel": 5.0, "Linear": 4.0, "HAT (lags)": 3.0, "no change": 2.0}.items()
    ]
    cells = board([stream], runs, None)
    assert scoreboard.main_table(cells, [stream], False).splitlines()[0::2] == [
        "| MAE (records) | Kernel | Linear | best peer |",
        "| numbers (100) | 5.000 | **4.000** | Linear |",
    ]
    assert scoreboard.main_table(cells, [stream], False, lags=True).splitlines()[0::2] == [
        "| MAE (records) | no change | HAT (lags) | best peer |",
        "| numbers (100) | **2.000** | 3.000 | no change |",
    ]
    assert scoreboard.standing(cells, [stream]).splitlines()[2:] == ["| Kernel | 1 | 0 |  | numbers |"]
    assert scoreboard.standing(cells, [stream], lags=True) == ""


def test_every_peer_comes_with_lags_too_and_ours_only_by_its_own_argument():
    models = peers.models()
    assert len({model.name for model in models}) == len(models)
    plain = {model.name for model in models if not (model.ours or model.lags)}
    lagged = {model.name for model in models if model.lags and not model.ours}
    assert lagged == {f"{name} (lags)" for name in plain} | {"no change"}
    assert peers.own("AdaptiveKernelRegressor", no_such_argument=1) is None


def _publish(folder, *rows):
    (folder / FILE).write_text("\n".join(["dataset,framework,n,value,seeds,metric", *rows]))


def test_published_scores_are_found_by_the_names_of_the_files(tmp_path):
    streams = from_files(tmp_path)
    assert published(tmp_path, streams) == {}
    _publish(
        tmp_path,
        "electricity_samlb,ARF,45312,0.9,10,accuracy",
        "electricity_samlb,ASML,45312,0.92,10,accuracy",
        "elevators,ARF,16599,0.002,10,mae",
        "another,ARF,10,0.9,10,accuracy",
    )
    scores = published(tmp_path, streams)
    assert scores == {"Elec2": {"ARF": 0.9, "ASML": 0.92}, "elevators": {"ARF": 0.002}}
    by_name = {stream.name: stream for stream in streams}
    runs = [_run(by_name["Elec2"], "Kernel", 0.918), _run(by_name["elevators"], "Kernel", 0.001)]
    cells = board(streams, [_at_full_length(run, by_name[run.stream]) for run in runs], None)
    assert published_table(cells, streams, scores, True).splitlines()[0::2] == [
        "| accuracy % | Kernel | best published | ARF | ASML |",
        "| Elec2 | 91.80, level | ASML 92.00 | 90.00 | 92.00 |",
    ]
    assert published_table(cells, streams, scores, False).splitlines()[2] == (
        "| elevators | 0.001000, best | ARF 0.002000 | 0.002000 |"
    )


def _at_full_length(run, stream):
    return replace(run, n_records=stream.n_records, reached=stream.n_records)
