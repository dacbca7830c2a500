"""Clicks with many ids: 400 users and 200 ads, whose click rates are better features than the ids.

python examples/clicks.py [PICTURE.png]
"""

import math
import random
import sys
from typing import Any

import numpy as np
from river import compose, feature_extraction, linear_model, preprocessing, stats

from streamkernel import AdaptiveKernelClassifier

N_VIEWS, N_USERS, N_ADS = 5000, 400, 200
TOPICS = ("cars", "games", "music", "news", "sports", "travel")
rng = random.Random(1)


# %% The views. Each user likes one topic, and the hours of phones are not those of desktops.
likes = [rng.choice(TOPICS) for _ in range(N_USERS)]
ads = [(rng.choice(TOPICS), rng.gauss(0, 0.7)) for _ in range(N_ADS)]


def view() -> tuple[dict[str, Any], bool, float]:
    """Return the features of a view, whether it was clicked, and the probability of that."""
    user, ad = int(N_USERS * rng.random() ** 2), int(N_ADS * rng.random() ** 2)  # a few come often, most seldom
    phone, hour = float(rng.random() < 0.5), rng.uniform(0, 24)
    topic, appeal = ads[ad]
    peak = 1.5 * math.cos(math.tau * (hour - (20 if phone else 11)) / 24)
    p = 1 / (1 + math.exp(3 - appeal - 2.5 * (likes[user] == topic) - peak))
    return {"user": f"u{user}", "ad": f"a{ad}", "topic": topic, "phone": phone, "hour": hour}, rng.random() < p, p


# %% Three models: ours on click rates, logistic regression on click rates and on hashed ids.
def rates(*others: str) -> Any:
    """Return a transformer of ids into the click rates so far, next to other features as they are."""
    found: Any = compose.Select(*others)
    for by in ("user", "ad", ["user", "topic"]):
        found += feature_extraction.TargetAgg(by=by, how=stats.BayesianMean(prior=0.15, prior_weight=10))
    return found


numbers = compose.Select("hour", "phone") | preprocessing.StandardScaler()
hashed = compose.SelectType(str) | preprocessing.FeatureHasher(4096, seed=1)
scaled = rates("hour", "phone") | preprocessing.StandardScaler()
encoded = compose.Select("topic") | preprocessing.OneHotEncoder()
models: dict[str, Any] = {
    "AdaptiveKernelClassifier, click rates": rates("hour", "phone") | AdaptiveKernelClassifier(seed=1),
    "LogisticRegression, click rates": scaled + encoded | linear_model.LogisticRegression(),
    "LogisticRegression, hashed ids": numbers + hashed | linear_model.LogisticRegression(),
}
losses: dict[str, list[float]] = {name: [] for name in (*models, "best possible")}
for _ in range(N_VIEWS):
    x, clicked, p = view()
    predicted = {name: model.predict_proba_one(x).get(True, 0.0) for name, model in models.items()}
    for name, q in {**predicted, "best possible": p}.items():
        losses[name].append(-math.log(max(q if clicked else 1 - q, 1e-3)))
    for model in models.values():
        model.learn_one(x, clicked)

# %% The figures: the log loss after the first 1,000 views.
for name, values in losses.items():
    print(f"{name:38} log loss {np.mean(values[1000:]):.3f}")

# %% The picture
if sys.argv[1:]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    for name in models:
        above = np.subtract(losses[name], losses["best possible"])
        means = np.convolve(above, np.full(1000, 0.001), "valid")
        axes.plot(range(999, N_VIEWS, 50), means[::50], label=name)
    axes.set(xlabel="views", ylabel="log loss above the best\nmean of the last 1,000 views", ylim=(0, None))
    axes.legend(loc="lower left")
    figure.savefig(sys.argv[1], dpi=90)
