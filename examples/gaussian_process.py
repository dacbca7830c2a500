"""A Gaussian process on a stream: a mean with a band, narrow where records have come and wide where none have.

python examples/gaussian_process.py [PICTURE.png]
"""

import math
import random
import sys

from streamkernel import GaussianProcessRegressor
from streamkernel.kernels import Gaussian

NOISE = 0.15


def function(a: float) -> float:
    """What is to be found out."""
    return math.sin(2 * a) + math.cos(a) / 2


draw = random.Random(1)
model = GaussianProcessRegressor(Gaussian(0.8), noise=0.03, n_features=64, standardize=False, seed=1)
seen = []
for _ in range(150):
    a = draw.choice([draw.uniform(-3, -0.5), draw.uniform(1, 3)])  # nothing from -0.5 to 1
    y = function(a) + draw.gauss(0, NOISE)
    model.learn_one({"a": a}, y)
    seen.append((a, y))

grid = [i / 40 for i in range(-160, 161)]
band = [model.predict_one({"a": a}, with_dist=True) for a in grid]
sigmas = dict(zip(grid, (dist.sigma for dist in band), strict=True))
print(f"sigma: {sigmas[2.0]:.2f} among records, {sigmas[0.25]:.2f} between them, {sigmas[4.0]:.2f} beyond")

if len(sys.argv) > 1:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    low, high = ([dist.mu + side * 1.96 * dist.sigma for dist in band] for side in (-1, 1))
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    axes.fill_between(grid, low, high, alpha=0.25, lw=0, label="95% of the function's values")
    axes.plot(grid, [dist.mu for dist in band], label="mean")
    axes.plot(grid, [function(a) for a in grid], "k--", lw=0.8, label="the function")
    axes.plot(*zip(*seen, strict=True), ".", color="grey", ms=3, label="records")
    axes.set(xlabel="a", ylabel="y", xlim=(-4, 4), ylim=(-2.5, 3))
    axes.legend(fontsize=8, loc="upper left")
    figure.savefig(sys.argv[1], dpi=120)
