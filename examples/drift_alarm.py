"""A drift alarm: the divergence of the live stream from a reference, which says also where they differ.

python examples/drift_alarm.py [PLOT.png]
"""

import random
import sys

from streamkernel import KernelDensityRatio

ALARM, DRIFT = 0.1, 4000

rng = random.Random(1)
model = KernelDensityRatio(p="live", q="reference", window=1000, max_features=1024, seed=1)
divergences: list[float] = []
alarms: list[int] = []
for t in range(6000):
    drifts = t >= DRIFT
    model.learn_one({"load": rng.gauss(0, 1), "heat": rng.gauss(0, 1)}, "reference")
    model.learn_one({"load": rng.gauss(1.5 * drifts, 1), "heat": rng.gauss(0, 1)}, "live")
    divergences.append(model.divergence)
    if t >= 1000 and model.divergence > ALARM:
        alarms.append(t)

print(f"no alarm before the drift: {alarms[0] >= DRIFT}")
print(f"alarm {alarms[0] - DRIFT} live records after it")
print("more frequent now:", model.predict_one({"load": 2.5, "heat": 0}) > 1)
print("which input moved:", max(model.feature_importances_, key=lambda name: model.feature_importances_[name]))

if sys.argv[1:]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 3.5))
    axis.plot(divergences, label="divergence")
    axis.axhline(1.125, color="grey", linestyle=":", label="KL after the drift")
    axis.axhline(ALARM, color="tab:orange", linestyle="--", label="alarm")
    axis.axvline(DRIFT, color="tab:red", label="drift")
    axis.set(xlabel="live records", ylabel="nats", ylim=(-0.4, 1.3))
    axis.legend()
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=100)
