"""All ratios of the hot path in one run: ours, peers side by side, and the machine's limits.

    python -m benchmarks.speed [--quick] [--out DIR]

One thread; CPU time; every round has all alternatives of a ratio, whose value is the median of the rounds.
"""

from benchmarks import learning, limits, predicting
from benchmarks.command import asked
from benchmarks.footprint import measured
from benchmarks.report import publish, table
from benchmarks.rounds import HEADER, Ratio


def memory(m: int, d: int) -> tuple[list[Ratio], list[list[str]]]:
    """Ratio 7, and the megabytes behind it."""
    ratios, rows = [], []
    for name, arguments in (
        ("iid, cache_bytes=0", {"cache_bytes": 0}),
        ("structured", {"structured": True}),
        ("iid, the default cache of 64 MB", {}),
    ):
        found = measured(m=m, d=d, **arguments)
        stored = found["coefficients"]
        rows.append([name, *(f"{found[key] / 1e6:,.1f}" for key in ("account", "working", "restoring"))])
        shown = [found["working"] / stored]
        what = f"memory at m = {m:,}, d = {d}, K = 1, over the coefficients: {name}"
        ratios.append(Ratio(7, f"{what}, peak of predicting 64 rows and learning 32", shown, 3))
    rows.append(["coefficients alone", f"{8 * m / 1e6:,.1f}", "", ""])
    rows.append(["stored W", f"{4 * m * d / 1e6:,.1f}", "", ""])
    return ratios, rows


def main() -> None:
    options = asked(__doc__, quick="small models, few rounds")
    quick = options.quick
    rounds = 3 if quick else 9
    m = 10_000 if quick else 100_000
    ceilings = limits.measure(rounds)
    sums, nanoseconds = predicting.measure(m, rounds)
    fits, microseconds = learning.learn_one(rounds, quick)
    adaptive, rates = learning.adaptive(rounds, quick)
    sizes, megabytes = memory(m if quick else 1_000_000, 784)
    flat, tenths = learning.long_stream(40_000 if quick else 1_000_000)
    kinds, costs = learning.steps(rounds, quick)
    ratios = [*sums, *fits, *adaptive, *sizes, *flat, *kinds]
    missed = sum("missed" in ratio.row()[-1] for ratio in ratios)
    targets = sum(ratio.target is not None for ratio in ratios)
    publish(
        options,
        "speed",
        "Speed",
        f"One thread, float32, CPU time. {rounds} rounds, all alternatives of a ratio in each; a ratio is the median "
        "of the rounds' ratios, with the lowest and the highest. m counts frequencies, and each is a cosine and a "
        f"sine, for the peers as well; m = {m:,} (whole tiles of it) in 1 to 4. Ours of 1 and 2 draws all frequencies "
        "at every call, nothing is cached; 3 and 4 have the default cache.",
        f"## The ratios: {targets - missed} of {targets} targets reached",
        table(HEADER, [ratio.row() for ratio in ratios]),
        "7: resident memory above that of the same process with a small model (below: restoring it, which holds the "
        "given record, a checked copy and the coefficients in the order of the sums). The cache of drawn frequencies "
        "is speed bought with a fixed budget, `cache_bytes`, whatever the size of the model. 8: the model as it "
        "stood at the second tenth learns the last tenth beside the one that has learned everything.",
        "## The limits of the machine, in the same run",
        table(["limit", "measured"], ceilings),
        "## Behind 1 to 4: nanoseconds a feature and record",
        table(["", "", "ns"], nanoseconds),
        "## Behind 5: microseconds of a `learn_one`",
        f"Twenty inputs, dict in, two classes; ours has {learning.FEATURES:,} features, so as many cosines and as many "
        "sines. Every model scales its inputs.",
        table(["", "us"], microseconds),
        "## Behind 6: records a second, Hyperplane of ten inputs",
        table(["", "records/s"], rates),
        "## Behind 7: megabytes",
        table(["", "at rest, own account", "peak of predicting and learning", "peak of restoring"], megabytes),
        "## Behind 8: microseconds a record (`advance`, predict and learn)",
        table(["tenth of the stream", "us"], tenths),
        "## Behind 9: microseconds a record (`advance`, predict and learn)",
        "Twenty inputs, two classes, growth by DSG up to m features. An averaged solution costs each step its "
        "coefficients, and each record the scores of both solutions.",
        table(costs[0], costs[1:]),
    )


if __name__ == "__main__":
    main()
