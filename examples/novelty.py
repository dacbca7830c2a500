"""Novelty detection: a one-class machine learns where records are frequent, and flags one in twenty.

python examples/novelty.py [PLOT.png]
"""

import random
import sys

from streamkernel import KernelNoveltyDetector

rng = random.Random(1)


def record() -> dict[str, float]:
    """Two clusters, and now and then something that is anywhere."""
    if rng.random() < 0.02:
        return {"a": rng.uniform(-4, 8), "b": rng.uniform(-4, 8)}
    center = rng.choice([(0, 0), (4, 3)])
    return {"a": rng.gauss(center[0], 0.7), "b": rng.gauss(center[1], 0.7)}


model = KernelNoveltyDetector(nu=0.05, max_features=1024, seed=1)
flagged = seen = 0
for t in range(12_000):
    x = record()
    if t >= 4000:
        seen += 1
        flagged += model.score_one(x) > 0
    model.learn_one(x)

print(f"flagged: {flagged / seen:.1%}")
for place in ({"a": 4, "b": 3}, {"a": 0, "b": 4}):
    print(place, "novel" if model.score_one(place) > 0 else "usual")

if sys.argv[1:]:
    import matplotlib
    import numpy as np

    matplotlib.use("Agg")
    from matplotlib import colors, pyplot

    grid = np.linspace(-4, 8, 121)
    a, b = np.meshgrid(grid, grid)
    scores = np.reshape(
        [model.score_one({"a": one, "b": other}) for one, other in zip(a.flat, b.flat, strict=True)], a.shape
    )
    shown = [record() for _ in range(1000)]
    novel = [model.score_one(x) > 0 for x in shown]
    figure, axis = pyplot.subplots(figsize=(6, 5))
    axis.contourf(a, b, scores, levels=20, cmap="RdBu_r", norm=colors.TwoSlopeNorm(0), alpha=0.6)
    axis.contour(a, b, scores, levels=[0], colors="black")
    for wanted, color, label in ((False, "tab:blue", "usual"), (True, "tab:red", "flagged")):
        points = [x for x, one in zip(shown, novel, strict=True) if one is wanted]
        axis.scatter([x["a"] for x in points], [x["b"] for x in points], s=8, color=color, label=label)
    axis.legend()
    axis.set(xlabel="a", ylabel="b", title="score tau - f(x); the line is 0")
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=100)
