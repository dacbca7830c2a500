"""A kernel machine in a River pipeline: test, then train, record by record."""

from river import datasets, evaluate, metrics

from streamkernel import KernelClassifier
from streamkernel.kernels import Gaussian

model = KernelClassifier(kernel=Gaussian(bandwidth=0.5), batch_size=8, seed=1)
accuracy = evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
print(accuracy)
print(f"{model.n_features} features: {model.n_grown} blocks grown, {model.n_reused} reused")
