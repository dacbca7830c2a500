"""Arguments of least squares by batches that cannot be, each refused in a sentence."""

import inspect

import pytest

from streamkernel import KernelLeastSquaresClassifier, KernelLeastSquaresRegressor
from tests.test_arguments import ADAPTIVE_WRONG, LEAST_SQUARES

LEAST_SQUARES_WRONG = [
    wrong for wrong in ADAPTIVE_WRONG if wrong[0] in inspect.signature(KernelLeastSquaresRegressor).parameters
]


def test_out_of_range_of_least_squares(subtests):
    for model in LEAST_SQUARES:
        for name, value, message in LEAST_SQUARES_WRONG:
            with subtests.test(model=model, name=name, value=value, message=message):
                with pytest.raises(ValueError, match=f"^{message}") as error:
                    model(**{name: value})
                assert "\n" not in str(error.value)


@pytest.mark.parametrize("model", LEAST_SQUARES)
def test_every_argument_of_least_squares_has_a_wrong_value_here(model):
    names = set(inspect.signature(model).parameters)
    own = {"max_classes"} if model is KernelLeastSquaresClassifier else set()
    assert names == {name for name, _, _ in LEAST_SQUARES_WRONG} | own
