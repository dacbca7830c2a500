"""Steps of growing estimators that a configuration leaves open are those of the payload."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from river import (
    preprocessing,
)

from streamkernel import KernelClassifier, kernels
from streamkernel.daemon.base.errors import OtherModelError
from streamkernel.daemon.checkpoints.payload import dump_model, load_model
from tests.daemon.test_payload import RECORDS


def _plain(**given: Any) -> KernelClassifier:
    return KernelClassifier(kernels.Gaussian(1.0), **{"seed": 1, "batch_size": 8, **given})


@pytest.mark.parametrize("given", [{"block_size": 256, "precondition": False}, {"blocks_per_step": 5}], ids=str)
def test_what_a_configuration_leaves_open_is_that_of_a_payload_bare_and_in_a_pipeline(given: dict[str, Any]) -> None:
    bare, inside = _plain(**given), preprocessing.StandardScaler() | _plain(**given)
    for x, y in RECORDS[:50]:
        bare.learn_one(x, y)
        inside.learn_one(x, y)
    assert load_model(dump_model(bare), _plain()).state_digest() == bare.state_digest()
    restored = load_model(dump_model(inside), preprocessing.StandardScaler() | _plain())
    assert restored["KernelClassifier"].state_digest() == inside["KernelClassifier"].state_digest()


def test_what_was_left_open_may_be_written_out_as_what_it_came_to() -> None:
    for make in (_plain, lambda **given: preprocessing.StandardScaler() | _plain(**given)):
        data = dump_model(make())
        for given in ({"block_size": 64}, {"precondition": True, "blocks_per_step": 2}):
            load_model(data, make(**given))
        for name, now, before in (("block_size", 32, 64), ("precondition", False, True), ("blocks_per_step", 1, 2)):
            with pytest.raises(OtherModelError, match=f"{name}: checkpoint has {before}, configuration says {now}$"):
                load_model(data, make(**{name: now}))


@pytest.mark.parametrize("forged", [{"block_size": 10**12}, {"blocks_per_step": 10**9}, {"block_size": 1000}], ids=str)
def test_a_state_does_not_choose_how_large_the_steps_are(forged: dict[str, Any]) -> None:
    record = _plain(max_features=512).__getstate__()
    record["arguments"] = {**record["arguments"], **forged}
    record["alpha"] = np.zeros((0, 0, 2 * forged.get("block_size", 64)), np.float32)
    with pytest.raises(ValueError, match="its field 'arguments' is missing or impossible"):
        _plain(max_features=512).__setstate__(record)
