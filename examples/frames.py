"""Data frames: `learn_many` is exactly the loop over `learn_one`, in pandas, polars or pyarrow."""

import polars
from river import datasets

from streamkernel import AdaptiveKernelRegressor

rows = list(datasets.TrumpApproval())
X = polars.DataFrame([x for x, _ in rows])
y = polars.Series([y for _, y in rows])

one_by_one = AdaptiveKernelRegressor(seed=1)
for x, target in rows:
    one_by_one.learn_one(x, target)

in_frames = AdaptiveKernelRegressor(seed=1)
for start in range(0, len(X), 100):
    in_frames.learn_many(X[start : start + 100], y[start : start + 100])

print("same state:", one_by_one.state_digest() == in_frames.state_digest())
print(in_frames.predict_many(X[-3:]))
