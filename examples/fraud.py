"""Fraud with late labels: one payment in fifty is fraud, and its label comes 1,000 payments later.

python examples/fraud.py [PICTURE.png]
"""

import random
import sys
from typing import Any

import numpy as np
from river import compose, linear_model, optim, preprocessing

from streamkernel import AdaptiveKernelClassifier

N_PAYMENTS, DELAY, CHECKED = 6000, 1000, 0.02
rng = random.Random(1)


# %% The payments. Fraud has two patterns. A third one appears in the middle of the stream.
def payment(t: int) -> tuple[dict[str, Any], bool]:
    """Return the features of payment t, and whether it is fraud."""
    x: dict[str, Any] = {
        "log_amount": rng.gauss(3.5, 1),
        "hour": rng.uniform(0, 24),
        "log_minutes_since_last": rng.gauss(5, 1.5),
        "log_km_from_home": rng.gauss(2, 1),
        "shop": rng.choice(["food", "fuel", "travel", "electronics", "games"]),
    }
    fraud = rng.random() < 0.02
    pattern = rng.choice(["trial", "goods", "games"] if t >= N_PAYMENTS // 2 else ["trial", "goods"])
    if fraud and pattern == "trial":  # someone tries a stolen card: small amounts in quick succession
        x |= {"log_amount": rng.gauss(1, 0.5), "log_minutes_since_last": rng.gauss(1.5, 1)}
    elif fraud and pattern == "goods":  # expensive electronics at night, far from home
        x |= {"log_amount": rng.gauss(5.5, 0.5), "hour": rng.uniform(0, 6), "log_km_from_home": rng.gauss(4.5, 0.5)}
        x["shop"] = "electronics"
    elif fraud:  # usual amounts for games, in quick succession
        x |= {"log_minutes_since_last": rng.gauss(1.5, 1), "shop": "games"}
    return x, fraud


# %% Two models. Each scores a payment at once and learns it when its label comes.
scaled = compose.SelectType(float) | preprocessing.StandardScaler()
encoded = compose.SelectType(str) | preprocessing.OneHotEncoder()
models: dict[str, Any] = {
    "AdaptiveKernelClassifier": AdaptiveKernelClassifier(seed=1),
    "LogisticRegression": scaled + encoded | linear_model.LogisticRegression(optim.SGD(0.3)),  # best of .01 to .3
}
scores: dict[str, list[float]] = {name: [] for name in models}
payments = [payment(t) for t in range(N_PAYMENTS)]
labels = np.array([fraud for _, fraud in payments[DELAY:]])
for (x, _), known in zip(payments[DELAY:], payments, strict=False):
    for name, model in models.items():
        model.learn_one(*known)
        scores[name].append(model.predict_proba_one(x).get(True, 0))

# %% The figures: average precision, and what a check of the riskiest 2% of the payments finds.
curves = {}
for name in models:
    hits = np.cumsum(labels[np.argsort(scores[name], kind="stable")[::-1]])
    precision, recall = hits / np.arange(1, len(hits) + 1), hits / hits[-1]
    curves[name] = recall, precision
    average, last = np.diff(recall, prepend=0) @ precision, int(CHECKED * len(hits)) - 1
    found = f"precision {precision[last]:.2f} and recall {recall[last]:.2f} in the riskiest {CHECKED:.0%}"
    print(f"{name:24}  average precision {average:.2f}, {found}")

# %% The picture
if sys.argv[1:]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        axes.plot(*curve, label=name)
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    axes.legend()
    figure.savefig(sys.argv[1], dpi=90)
