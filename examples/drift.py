"""Sensor drift: one gas sensor is replaced, another ages, and a model that keeps learning follows both.

python examples/drift.py [PICTURE.png]
"""

import random
import sys
from typing import Any

import numpy as np
from river import linear_model, preprocessing

from streamkernel import AdaptiveKernelRegressor

N_RECORDS, REPLACED, AGING, AGED = 5000, 1500, 2500, 4000
rng = random.Random(1)


# %% The readings. Three sensors saturate at different levels, and temperature disturbs all of them.
def reading(t: int) -> tuple[dict[str, float], float]:
    """Return the sensors' readings at time t, and the concentration that a laboratory measured."""
    gas, temperature = rng.uniform(0, 10), rng.gauss(20, 5)
    aged = min(max((t - AGING) / (AGED - AGING), 0), 1)
    gains = {"a": 0.5 if t >= REPLACED else 1.0, "b": 1 - 0.6 * aged, "c": 1.0}
    levels = {"a": 5, "b": 10, "c": 15}
    x = {
        name: gain * gas / (1 + gas / levels[name]) * (1 + 0.02 * (temperature - 20)) + rng.gauss(0, 0.1)
        for name, gain in gains.items()
    }
    return x | {"temperature": temperature}, gas


# %% Three models. One of them stops learning before the drift.
linear = preprocessing.TargetStandardScaler(regressor=linear_model.LinearRegression())
models: dict[str, Any] = {
    "AdaptiveKernelRegressor": AdaptiveKernelRegressor(seed=1),
    "the same, frozen": AdaptiveKernelRegressor(seed=1),
    "LinearRegression": preprocessing.StandardScaler() | linear,
}
errors: dict[str, list[float]] = {name: [] for name in models}
for t in range(N_RECORDS):
    x, gas = reading(t)
    for name, model in models.items():
        errors[name].append(abs(gas - model.predict_one(x)))
        if "frozen" not in name or t < REPLACED:
            model.learn_one(x, gas)

# %% The figures: mean absolute errors in each phase.
phases = {
    "before the drift": (500, REPLACED),
    "200 records after replacing a": (REPLACED, REPLACED + 200),
    "while b ages": (AGING, AGED),
    "after that": (AGED, N_RECORDS),
}
for phase, (start, end) in phases.items():
    print(f"{phase}: " + ", ".join(f"{name} {np.mean(errors[name][start:end]):.2f}" for name in models))

# %% The picture
if sys.argv[1:]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    for name in models:
        means = np.convolve(errors[name], np.full(100, 0.01), "valid")
        axes.plot(range(99, N_RECORDS, 20), means[::20], label=name)
    axes.axvline(REPLACED, color="grey", ls="--")
    axes.axvspan(AGING, AGED, color="grey", alpha=0.2, lw=0)
    axes.set(xlabel="records", ylabel="absolute error, last 100 records", yscale="log")
    figure.legend(loc="outside upper center", ncols=3)
    figure.savefig(sys.argv[1], dpi=90)
