"""River's own checks of a machine with each kernel; those with a domain stand behind a step that keeps to it."""

import numpy as np
import pytest
from river import base, checks

from streamkernel import KernelClassifier, KernelRegressor
from tests.kernels.cases import CASES

#: What the suite asks of a regressor with every kernel; all that there are take minutes.
SHORT = {"check_learn_one", "check_pickling", "check_emerging_features", "check_learn_many_matches_learn_one"}


class Mirrored(base.MiniBatchTransformer):
    """Numbers without their sign."""

    def transform_one(self, x):
        return {name: abs(value) if isinstance(value, int | float) else value for name, value in x.items()}

    def transform_many(self, X):
        numbers = X.select_dtypes(np.number).columns
        return X.assign(**{name: X[name].abs() for name in numbers}) if len(numbers) else X

    def learn_many(self, X):
        pass


def _checked():
    kernels = {type(kernel).__name__: kernel for kernel, _ in CASES.values()}
    for name, kernel in kernels.items():
        for estimator in (KernelRegressor, KernelClassifier):
            model = estimator(kernel=kernel, batch_size=8, seed=1)
            for check in checks.yield_checks(model):
                short = estimator is KernelRegressor and check.__name__ in SHORT
                marks = () if short else pytest.mark.long
                yield pytest.param(model, check, marks=marks, id=f"{name}-{estimator.__name__}-{check.__name__}")


@pytest.mark.parametrize(("model", "check"), [*_checked()])
def test_check(model, check):
    check(model.clone() if model.kernel.domain is None else Mirrored() | model.clone())
