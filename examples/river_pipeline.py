"""The adaptive classifier in River's progressive validation: test, then train, record by record."""

from river import datasets, evaluate, metrics

from streamkernel import AdaptiveKernelClassifier

model = AdaptiveKernelClassifier(seed=1)
print(evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy()))
print({name: round(share, 2) for name, share in model.feature_importances_.items()})
