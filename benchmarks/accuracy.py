"""Our estimators against River's and CapyMOA's, record for record: progressive validation on sixteen streams and more.

    python -m benchmarks.accuracy [--data DIR] [--quick] [--seeds N] [--limit SECONDS] [--streams A,B] [--models A,B]
                                  [--jobs N] [--out DIR] [--fresh]

Every run is kept in accuracy.jsonl as it ends, so that the benchmark can be interrupted and continued: a run that is
there with the same settings and the same code is not repeated. The tables (accuracy.md) are made of that file.
--streams also takes the groups sixteen, hard and files. --quick reads 1,000 records and runs the fast models only, into
out/accuracy-quick. CapyMOA is the extra `peers`, and needs Java; the models of a library that is not there are skipped,
as are the streams whose files are not in --data.
"""

import argparse
import json
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from benchmarks import peers, streams
from benchmarks.command import DATA, RESULTS, asked
from benchmarks.peers import Model
from benchmarks.progressive import Result, evaluate
from benchmarks.published import published
from benchmarks.report import command
from benchmarks.scoreboard import report
from benchmarks.streams import Stream

QUICK_MODELS = {"AdaptiveKernel", "Kernel", "Linear", "HAT", "ALMA", "PA"}
QUICK_RECORDS = 1_000


def task(folder: Path, stream: str, model: str, seed: int, limit: float, n_records: int | None) -> Result:
    """One run, in a process of its own: names are sent, not the streams."""
    named = {m.name: m for m in peers.models()}
    return evaluate(streams.catalog(folder)[stream], named[model], seed, limit, n_records)


def kept(path: Path) -> list[Result]:
    """The runs of earlier days; of a line cut short by a kill nothing is read."""
    results = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            results.append(Result(**json.loads(text)))
        except json.JSONDecodeError:
            print(f"{path}: an incomplete line is left out", file=sys.stderr)
    return results


def file_is_cut(path: Path) -> bool:
    """Whether the last line was cut short by a kill, so that a new one must not continue it."""
    return path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")


def wanted(chosen: Sequence[Stream], models: Sequence[Model], seeds: int) -> list[tuple[Stream, Model, int]]:
    """Every run of the benchmark; a model without chance in it runs once."""
    return [
        (stream, model, seed)
        for stream in chosen
        for model in models
        if model.fits(stream.n_classes)
        for seed in range(1, (seeds if model.seeded else 1) + 1)
    ]


def done(results: Sequence[Result], model: Model, stream: Stream, seed: int, limit: float, n: int | None) -> bool:
    """Whether a run is there already: the same records and code, at the end or with as much time as it has now."""
    size = min(stream.n_records, n or stream.n_records)
    return any(
        (r.stream, r.model, r.seed, r.n_records, r.source) == (stream.name, model.name, seed, size, model.source())
        and (r.finished or bool(r.failure) or r.limit >= limit)
        for r in results
    )


def line(result: Result) -> str:
    """A run in a line of the log."""
    scores = ", ".join(f"{name} {value:.4g}" for name, value in result.scores.items())
    text = f"{result.stream}, {result.model}, seed {result.seed}: {scores}, {result.seconds:.1f} s"
    if result.failure:
        return f"{text}; FAILED after {result.reached:,} records: {result.failure}"
    if not result.finished:
        return f"{text}; STOPPED by the limit of {result.limit:g} s after {result.reached:,} of {result.n_records:,}"
    return text


def choose(options: argparse.Namespace) -> tuple[list[Stream], list[Model]]:
    """The streams and models asked for; of the streams, those that can be read."""
    found, known = streams.catalog(options.data), {model.name: model for model in peers.models()}
    groups = {stream.group for stream in found.values()}
    names = (
        set(options.streams.split(",")) if options.streams else groups - ({streams.FILES} if options.quick else set())
    )
    quick = QUICK_MODELS & set(known) if options.quick else set(known)
    models = set(options.models.split(",")) if options.models else quick
    if unknown := names - set(found) - groups:
        raise SystemExit(f"no stream is called {', '.join(sorted(unknown))}; there are {', '.join([*groups, *found])}")
    if unknown := models - set(known):
        raise SystemExit(f"no model is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = streams.readable(stream for stream in found.values() if stream.name in names or stream.group in names)
    asked = [model for name, model in known.items() if name in models]
    reasons: dict[str, list[str]] = {}
    for model in asked:
        reasons.setdefault(model.missing, []).append(model.name)
    for reason, named in reasons.items():
        if reason:
            print(f"skipped, {reason}: {', '.join(named)}")
    return chosen, [model for model in asked if not model.missing]


def main() -> None:
    options = asked(
        __doc__,
        quick="fast models, 1,000 records, one seed: under two minutes",
        data=DATA,
        seeds=3,
        limit=300.0,
        streams={"help": "names or groups, separated by commas"},
        models={"help": "names, separated by commas"},
        jobs=2,
        fresh={"action": "store_true", "help": "forget the runs there are"},
    )
    seeds, n_records = (1, QUICK_RECORDS) if options.quick else (options.seeds, None)
    out = Path("out/accuracy-quick") if options.quick and options.out == RESULTS else options.out
    chosen, models = choose(options)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "accuracy.jsonl"
    if options.fresh:
        path.unlink(missing_ok=True)
    results = kept(path)
    runs = [
        (stream, model, seed)
        for stream, model, seed in wanted(chosen, models, seeds)
        if not done(results, model, stream, seed, options.limit, n_records)
    ]
    print(f"{len(runs)} runs to do", flush=True)
    with (
        ProcessPoolExecutor(options.jobs, mp_context=multiprocessing.get_context("spawn")) as pool,
        path.open("a") as file,
    ):
        futures = [
            pool.submit(task, options.data, stream.name, model.name, seed, options.limit, n_records)
            for stream, model, seed in runs
        ]
        try:
            for number, future in enumerate(as_completed(futures), 1):
                result = future.result()
                file.write("\n" * file_is_cut(path) + json.dumps(asdict(result)) + "\n")
                file.flush()
                print(f"[{number}/{len(runs)}] {line(result)}", flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # an interrupted benchmark does not run on
            raise
    known = list(streams.catalog(options.data).values())
    report(out, known, kept(path), n_records, command("accuracy"), published(options.data, known))


if __name__ == "__main__":
    main()
