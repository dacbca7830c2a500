"""Quantile bands: two quantile machines, between which eight of ten targets fall, wherever the noise is wide or narrow.

python examples/quantile_bands.py [PLOT.png]
"""

import math
import random
import sys

from streamkernel import KernelRegressor
from streamkernel.losses import Quantile

rng = random.Random(1)


def record() -> tuple[dict[str, float], float]:
    """A sine whose noise widens."""
    a = rng.uniform(0, 6)
    return {"a": a}, math.sin(a) + rng.gauss(0, 0.05 + 0.1 * a)


# The mean of the solutions: the last one moves with its last records, by points of coverage.
lower, middle, upper = (
    KernelRegressor(loss=Quantile(alpha), max_features=1024, average=True, seed=1) for alpha in (0.1, 0.5, 0.9)
)
inside = seen = 0
for t in range(12_000):
    x, y = record()
    if t >= 6000:
        seen += 1
        inside += lower.predict_one(x) < y <= upper.predict_one(x)
    for model in (lower, middle, upper):
        model.learn_one(x, y)

print(f"inside the band: {inside / seen:.0%}")

if sys.argv[1:]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 3.5))
    shown = [record() for _ in range(500)]
    axis.scatter([x["a"] for x, _ in shown], [y for _, y in shown], s=6, color="grey")
    at = [i / 50 for i in range(301)]
    low, mid, high = ([model.predict_one({"a": a}) for a in at] for model in (lower, middle, upper))
    axis.fill_between(at, low, high, alpha=0.3, label="from the .1 to the .9 quantile")
    axis.plot(at, mid, label="median")
    axis.set(xlabel="a")
    axis.legend()
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=100)
