"""Demand with lags: hourly demand for power, forecast a day ahead from temperature and past demand.

python examples/demand.py [PICTURE.png]
"""

import math
import random
import sys
from typing import Any

from river import linear_model, metrics

from streamkernel import AdaptiveKernelRegressor

DAY, WEEK, N_HOURS = 24, 168, 24 * 7 * 26
rng = random.Random(1)


# %% The series: workdays and weekends, heating and cooling, and a slow disturbance.
def series() -> tuple[list[float], list[float]]:
    """Return temperature and demand for half a year of hours, from January on."""
    temperatures, demands, weather, disturbance = [], [], 0.0, 0.0
    for t in range(N_HOURS):
        hour, weekend = t % DAY, t % WEEK >= 5 * DAY
        weather = 0.98 * weather + rng.gauss(0, 0.7)
        disturbance = 0.99 * disturbance + rng.gauss(0, 0.4)
        temperature = (
            12 - 12 * math.cos(math.tau * t / (365 * DAY)) + 5 * math.sin(math.tau * (hour - 9) / DAY) + weather
        )
        morning, evening = math.exp(-((hour - 8) ** 2) / 8), math.exp(-((hour - 19) ** 2) / 12)
        usual = 50 + (10 if weekend else 25) * morning + 20 * evening
        air = 1.5 * max(15 - temperature, 0) + 2 * max(temperature - 22, 0)
        temperatures.append(temperature)
        demands.append(usual + air + disturbance + rng.gauss(0, 1))
    return temperatures, demands


temperatures, demands = series()


def features(t: int) -> dict[str, float]:
    """Return what is known a day before hour t, and the forecast of the temperature (here a perfect one)."""
    lags = {f"{lag} h ago": demands[t - lag] for lag in (DAY, DAY + 1, 2 * DAY, WEEK)}
    clock = {"sin": math.sin(math.tau * t / DAY), "cos": math.cos(math.tau * t / DAY), "weekend": t % WEEK >= 5 * DAY}
    return {**lags, **clock, "temperature": temperatures[t], "temperature 24 h ago": temperatures[t - DAY]}


# %% Two models. Each forecasts an hour, and learns it a day later.
models: dict[str, Any] = {
    "AdaptiveKernelRegressor": AdaptiveKernelRegressor(seed=1),
    "BayesianLinearRegression": linear_model.BayesianLinearRegression(),
}
forecasts: dict[str, list[float]] = {name: [] for name in models}
for t in range(WEEK, N_HOURS):
    for name, model in models.items():
        if t >= WEEK + DAY:
            model.learn_one(features(t - DAY), demands[t - DAY])
        forecasts[name].append(model.predict_one(features(t)))

# %% The figures: mean absolute errors after the first two weeks of forecasts.
forecasts |= {"same hour yesterday": demands[WEEK - DAY : -DAY], "same hour a week ago": demands[:-WEEK]}
for name, values in forecasts.items():
    mae = metrics.MAE()
    for y, forecast in zip(demands[3 * WEEK :], values[2 * WEEK :], strict=True):
        mae.update(y, forecast)
    print(f"{name:24}  MAE {mae.get():.2f}")

# %% The picture: the last three days
if sys.argv[1:]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(demands[-3 * DAY :], "k", label="demand")
    for name in (*models, "same hour yesterday"):
        axes.plot(forecasts[name][-3 * DAY :], lw=1, label=name)
    axes.set(xlabel="hours", ylabel="demand", xticks=range(0, 73, 24))
    figure.legend(loc="outside upper center", ncols=4, fontsize=8)
    figure.savefig(sys.argv[1], dpi=90)
