"""Strings, missing values and inputs that appear late need no preparation."""

from streamkernel import AdaptiveKernelClassifier

model = AdaptiveKernelClassifier(seed=1)
for i in range(2000):
    x = {"weekday": ["mon", "tue", "wed", "thu", "fri"][i % 5], "load": (i * 37 % 100) / 100 if i % 3 else None}
    if i > 1000:
        x["region"] = "north" if i % 2 else "south"
    model.learn_one(x, x["weekday"] in ("mon", "fri"))

print({day: model.predict_one({"weekday": day}) for day in ("mon", "tue", "wed", "thu", "fri")})
print({name: round(share, 3) for name, share in model.feature_importances_.items()})
