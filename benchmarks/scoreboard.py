"""The tables of the accuracy benchmark, made of the runs kept in accuracy.jsonl."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import peers
from benchmarks.board import NEAR, Board, Cell, best, board, number, verdict
from benchmarks.progressive import Result
from benchmarks.published import Published, published_table
from benchmarks.ranks import Ranking, ranking
from benchmarks.report import table, versions, write
from benchmarks.streams import FILES, HARD, N_LAGS, SIXTEEN, Stream

TITLES = {SIXTEEN: "The sixteen streams", HARD: "Known to be hard for random features", FILES: "Files"}

MANY = 10  # streams that are not told one by one where a model is behind on each


def main_table(cells: Board, streams: Sequence[Stream], classes: bool, lags: bool = False) -> str:
    """A row a stream, a column a model of those that know as much of the past; the best of all in bold."""
    known = [model.name for model in peers.models() if model.lags is lags]
    rows = [(s, cells[s.name]) for s in streams if s.name in cells and (s.n_classes > 0) is classes]
    rows = [(s, {name: row[name] for name in known if name in row}) for s, row in rows]
    rows = [(s, row) for s, row in rows if row]
    names = [name for name in known if any(name in row for _, row in rows)]
    if not rows:
        return ""
    lines = []
    for stream, row in rows:
        lowest = min(cell.loss for cell in row.values())
        texts = [
            "" if name not in row else f"**{row[name].score()}**" if row[name].loss == lowest else row[name].score()
            for name in names
        ]
        rival = best(row, ours=False, lags=lags)
        lines.append(
            [f"{stream.name} ({next(iter(row.values())).runs[0].n_records:,})", *texts, rival[0] if rival else ""]
        )
    return table([f"{'accuracy %' if classes else 'MAE'} (records)", *names, "best peer"], lines)


def standing(cells: Board, streams: Sequence[Stream], lags: bool = False) -> str:
    """For each model of ours: on how many streams it is ahead of, level with or behind the best peer."""
    lines = []
    for model in (m for m in peers.models() if m.ours and m.lags is lags):
        words: dict[str, list[str]] = {"best": [], "level": [], "behind": []}
        for stream in streams:
            row = cells.get(stream.name, {})
            rival = best(row, ours=False, lags=lags)
            if model.name in row and rival:
                words[verdict(row[model.name], rival[1], NEAR)].append(stream.name)
        count = sum(map(len, words.values()))
        if count:
            lines.append([model.name, count, len(words["best"]), ", ".join(words["level"]), ", ".join(words["behind"])])
    header = ["", "streams", "strictly better than every peer", "within .3 points, or 1% of the MAE", "behind"]
    return table(header, lines) if lines else ""


def beside_linear(cells: Board) -> str:
    """On how many streams our models beat River's linear ones, and the growing the adaptive; and where they do not.

    The sixteen and the others apart, and all together.
    """
    ours = [model.name for model in peers.models() if model.ours and not model.lags]
    compared = [(name, "Linear", task) for name in ours for task in ("LogisticRegression", "LinearRegression")]
    groups = {"all": {SIXTEEN, HARD, FILES}, "the sixteen": {SIXTEEN}, "the others": {HARD, FILES}}
    lines = []
    for name, rival, title in [*compared, ("Kernel", "AdaptiveKernel", "AdaptiveKernel")]:
        pairs = [
            (row[name], row[rival])
            for row in cells.values()
            if {name, rival} <= row.keys() and title in (rival, _linear(row[rival]))
        ]
        for group, members in groups.items():
            chosen = [(own, other) for own, other in pairs if own.stream.group in members]
            behind = [(own, other) for own, other in chosen if own.loss > other.loss]
            far = [own for own, other in behind if verdict(own, other.loss) == "behind"]
            if chosen and (group == "all" or rival == "Linear"):
                named = (
                    ", ".join(_gap(own, other) for own, other in behind)
                    if len(behind) < max(len(chosen), MANY)
                    else "each"
                )
                lines.append([name, title, group, len(chosen), len(behind), len(far), named])
    header = ["model", "beside", "of", "streams", "behind", "by more than .5 points, or 2%", "behind on (by)"]
    return table(header, lines) if lines else ""


def _gap(own: Cell, other: Cell) -> str:
    """A stream, and by how much a model is behind another there: in points, or in per cent of the other's error."""
    gap = 100 * (own.loss - other.loss if own.stream.n_classes else own.loss / other.loss - 1)
    return f"{own.stream.name} ({f'{gap:.2f}' if own.stream.n_classes else f'{gap:.1f}%'})"


def _linear(cell: Cell) -> str:
    return "LogisticRegression" if cell.stream.n_classes else "LinearRegression"


def speed_table(cells: Board) -> str:
    """Records a second and memory of every model, medians over the streams."""
    lines = []
    for model in (m for m in peers.models() if not m.lags):
        texts: list[object] = [model.name]
        for classes in (True, False):
            own = [
                row[model.name]
                for row in cells.values()
                if model.name in row and (row[model.name].stream.n_classes > 0) is classes
            ]
            texts += (
                [f"{median(c.records_per_second for c in own):,.0f}", f"{median(c.memory for c in own) / 1e3:,.0f}"]
                if own
                else ["", ""]
            )
        lines.append(texts)
    return table(["", "records/s, classes", "kB", "records/s, regression", "kB"], lines)


def _other(cell: Cell, score: str) -> str:
    """A mean score; empty where a run of an earlier day did not take it."""
    if any(score not in run.scores for run in cell.runs):
        return ""
    return number(cell.mean(score), score) if score == "rmse" else f"{cell.mean(score):.3f}"


def details(cells: Board) -> str:
    """Every score of every model on every stream."""
    parts = []
    for classes in (True, False):
        names = ("macro_f1", "log_loss", "calibration") if classes else ("rmse",)
        lines = []
        for name, row in cells.items():
            for model, cell in row.items():
                if (cell.stream.n_classes > 0) is classes:
                    others = [_other(cell, score) for score in names]
                    lines.append(
                        [
                            name,
                            model,
                            cell.score(),
                            *others,
                            f"{cell.records_per_second:,.0f}",
                            f"{cell.memory / 1e3:,.0f}",
                        ]
                    )
        header = ["accuracy %", "macro-F1", "log-loss", "calibration error"] if classes else ["MAE", "RMSE"]
        parts += [table(["stream", "model", *header, "records/s", "kB"], lines)] if lines else []
    return "\n\n".join(parts)


def rankings(cells: Board, streams: Sequence[Stream], lags: bool = False) -> list[Ranking]:
    """Ranks over all of the streams, the classifications and the regressions, of the models that ran on each."""
    found = []
    for title, kinds in (("All", (True, False)), ("Classification", (True,)), ("Regression", (False,))):
        known = [m.name for m in peers.models() if m.lags is lags]
        tasks = [cells[s.name] for s in streams if (s.n_classes > 0) in kinds and s.name in cells]
        tasks = [row for row in tasks if not row.keys().isdisjoint(known)]
        names = [name for name in known if all(name in row for row in tasks)]
        if len(names) > 1 and len(tasks) > 1:
            found.append(ranking(title, names, [[row[name].loss for name in names] for row in tasks]))
    return found


def stopped(results: Board) -> str:
    """The runs that did not reach the end, one phrase each."""
    phrases = [
        f"{stream}, {model}, seed {run.seed}: "
        + (
            f"failed after {run.reached:,} records ({run.failure})"
            if run.failure
            else f"{run.limit:g} s were over after {run.reached:,} records"
        )
        for stream, row in results.items()
        for model, cell in row.items()
        for run in cell.runs
        if not run.finished
    ]
    return (
        "Stopped before the end:\n\n" + "\n".join(f"- {phrase}" for phrase in phrases)
        if phrases
        else "Every run reached the end."
    )


def processors(cells: Board) -> str:
    """Where the seconds were measured: those of different processors do not compare."""
    models: dict[str, set[str]] = {}
    for row in cells.values():
        for name, cell in row.items():
            for run in cell.runs:
                models.setdefault(run.processor, set()).add(name)
    measured = "; ".join(f"{', '.join(sorted(names))} on {processor}" for processor, names in models.items())
    warning = "" if len(models) == 1 else " Speeds on different processors do not compare."
    return f"Medians over the streams. {measured}.{warning}"


def stale(cells: Board) -> str:
    """A warning where scores are of another state of the code, of ours or of what is installed here."""
    current = {model.name: model.source() for model in peers.models() if not model.missing}
    names = sorted(
        {
            name
            for row in cells.values()
            for name, cell in row.items()
            for run in cell.runs
            if run.source != current.get(name, run.source)
        }
    )
    return f"Measured, on some streams, with an older state of the code: {', '.join(names)}." if names else ""


def method(seeds: int, limits: Sequence[float]) -> str:
    """How the scores came about, and what they do not say."""
    budgets = " or ".join(f"{limit:g}" for limit in limits)
    repeats = "one seed" if seeds == 1 else f"up to {seeds} seeds"
    return (
        "Every record is predicted, then learned. All models have their defaults. River's stand behind a "
        "StandardScaler, with OneVsRest where a model knows two classes only; CapyMOA's (MOA) get the inputs unscaled, "
        "and as their classes the first, second, ... that came; for both strings are one-hot (every category known "
        "beforehand) and dates ordinals. Ours get the records as they are, but for the dates. Linear is "
        "LogisticRegression or LinearRegression, and stands behind the RBFSampler too. MOA LB is LeveragingBagging. "
        f"Mean ± deviation of {repeats}; a model without chance in it runs once. A model that has used up its "
        f"{budgets} CPU seconds on a stream is stopped: its score is then that of the records it reached, printed in "
        "brackets with their number; it compares with no other, is left out of 'best peer' and ranks last. A "
        "record without a prediction counts as a wrong class, or as a prediction of 0. Records/s: CPU time of the "
        "model's own calls, predict and learn, in one thread (MOA: of the Java machine too, which compiles first); "
        "memory: River's `_raw_memory_usage` at the end, of MOA by how much the Java heap grew; log-loss "
        "clipped at 1e-15."
    )


WITH_LAGS = (
    f"Every model with the same past of the target: the last {N_LAGS} known targets, or the last label. Ours is told "
    "so (`lags`); all others get them as inputs more, labels one-hot. Labels come at once: the label of a record is "
    "known when the next one is predicted. 'no change' predicts the last target."
)
PUBLISHED = (
    "Means of ten seeds that SAMLB published (its own scripts on its own machines; targets standardized online and "
    "mapped back), on the same records in the same order to their end, without lags. Behind each score of ours how it "
    "stands against the best of them (level: within .3 points, or 1% of the MAE)."
)


def ranked(cells: Board, streams: Sequence[Stream], title: str, lags: bool) -> list[str]:
    """A heading, the mean ranks, and who is left out; nothing where there is nothing to rank."""
    found = rankings(cells, streams, lags)
    if not found:
        return []
    names = list(dict.fromkeys(name for result in found for name in result.models))
    rows = [
        [name, *(f"{result.rank(name):.2f}" if name in result.models else "" for result in found)] for name in names
    ]
    rows.append(["critical difference (Nemenyi, 5%)", *(f"{result.critical:.2f}" for result in found)])
    there = {
        model.name for model in peers.models() if model.lags is lags and any(model.name in r for r in cells.values())
    }
    out = sorted(there - set(names))
    head = ["mean rank, 1 is best", *(f"{result.title} ({result.n_streams})" for result in found)]
    return [
        f"## {title}",
        table(head, rows),
        f"Not ranked, for not run on all of them: {', '.join(out)}." if out else "",
    ]


def report(
    out: Path,
    streams: Sequence[Stream],
    results: Sequence[Result],
    n_records: int | None,
    command: str,
    scores: Published,
) -> None:
    """Write accuracy.md."""
    cells = board(streams, results, n_records)
    runs = [run for row in cells.values() for cell in row.values() for run in cell.runs]
    limits = sorted({run.limit for run in runs if not run.finished} or {run.limit for run in runs})
    seeds = max((len(cell.runs) for row in cells.values() for cell in row.values()), default=0)
    parts = [
        "# Accuracy: progressive validation against River and CapyMOA",
        f"`{command}` with {versions()}.",
        method(seeds, limits),
    ]
    for group, title in TITLES.items():
        chosen = [s for s in streams if s.group == group and s.name in cells]
        if chosen:
            parts += [
                f"## {title}",
                *(main_table(cells, chosen, kind) for kind in (True, False)),
                standing(cells, chosen),
            ]
    if "bike" in cells:
        parts.append(
            "Two inputs of `bike` add up to the exponential of its target: it asks for a function, not a forecast."
        )
    if n_records is None and (missing := [s.name for s in streams if s.name not in cells]):
        parts.append(f"Not measured: {', '.join(missing)}.")
    lagged = [main_table(cells, streams, kind, lags=True) for kind in (True, False)]
    if any(lagged):
        parts += ["## With the past of the target", WITH_LAGS, *lagged, standing(cells, streams, lags=True)]
    if n_records is None and (beside := [published_table(cells, streams, scores, kind) for kind in (True, False)]):
        parts += ["## Beside published scores", PUBLISHED, *beside] if any(beside) else []
    if beside_river := beside_linear(cells):
        text = (
            "By the same scores. The defaults of Kernel were chosen on seventeen streams, which "
            "docs/growing-mixture.md names. In brackets: points of accuracy, or per cent of the other model's MAE."
        )
        parts += ["## Beside a linear model", text, beside_river]
    sixteen = [s for s in streams if s.group == SIXTEEN]
    parts += ranked(cells, sixteen, "Ranks on the sixteen", False)
    parts += ranked(cells, streams, "Ranks on all streams", False)
    parts += ranked(cells, streams, "Ranks with the past of the target", True)
    parts += ["## Speed and memory", processors(cells), speed_table(cells), stopped(cells), stale(cells)]
    parts += ["## Every score", details(cells)]
    write(out / "accuracy.md", "\n\n".join(part for part in parts if part))
