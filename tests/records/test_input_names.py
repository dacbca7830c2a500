"""Names of inputs, and the keys that frequencies are drawn by."""

import datetime
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import streamkernel.records.input_columns
import streamkernel.records.inputs
from streamkernel.records.input_columns import key_of
from tests.records.regressors import keys_of, learned, regressor


def test_names_of_different_types_stay_apart():
    model = learned(n=0)
    model.learn_one({"1": 0.5, 1: 2.0, 2.5: 1.0, "2.5": 1.0, None: 1.0, "None": 1.0, ("a", 1): 1.0}, 1.0)
    assert sorted(model.input_names) == sorted(["1", "1", "2.5", "2.5", "None", "None", "('a', 1)"])
    assert len(set(keys_of(model))) == 7


@pytest.mark.parametrize("name", [frozenset(), b"a", datetime.date(2020, 1, 1), math.nan, (1, math.nan)], ids=str)
def test_a_name_that_cannot_be_kept_is_refused_and_changes_nothing(name):
    model = learned()
    before = model.state_digest()
    for value in (1.0, "text"):
        for call in (model.predict_one, lambda x: model.learn_one(x, 1.0)):
            with pytest.raises(ValueError, match="names and labels"):
                call({"new": 1.0, name: value})
    assert model.state_digest() == before


def test_a_name_may_be_a_number_and_an_indicator():
    model = learned(n=0)
    model.learn_one({"a": 1.0}, 1.0)
    model.learn_one({"a": "x"}, 1.0)
    model.learn_one({"a=x": 2.0}, 1.0)
    assert model.input_names == ["a", "a=x", "a=x"]
    assert len(set(keys_of(model))) == 3


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "é", "e\u0301", "x" * 100_000])
def test_any_text_is_a_name_and_a_value(text):
    model = learned(n=0)
    model.learn_one({text: text}, 1.0)
    model.learn_one({text: 1.0}, 1.0)
    assert model.input_names == [f"{text}={text}", text]
    assert len(model.state_digest()) == 64


def test_keys_are_part_of_every_checkpoint():
    """Frequencies are drawn by these: another key is another format of the state."""
    assert key_of(["number", ["str", "x"]]) == 0x902CE1789BAADF6E
    assert key_of(["indicator", ["int", 7], "é"]) == 0x2BFABB59C66270A2


def test_new_inputs_of_one_record_take_their_columns_in_the_order_of_their_keys():
    names = [f"n{i}" for i in range(30)]
    models = [learned(n=0), learned(n=0)]
    models[0].learn_one(dict.fromkeys(names, 1.0), 1.0)
    models[1].learn_one(dict.fromkeys(reversed(names), 1.0), 1.0)
    assert models[0].input_names == models[1].input_names
    keys = keys_of(models[0])
    assert keys == sorted(keys)


@pytest.fixture
def few_keys(monkeypatch):
    """Keys of two bits, so that names share them."""
    for module in (streamkernel.records.input_columns,):
        monkeypatch.setattr(module, "key_of", lambda tagged: key_of(tagged) % 4)


@pytest.mark.usefixtures("few_keys")
@pytest.mark.filterwarnings("ignore:inputs past max_inputs")
@pytest.mark.parametrize("learned", [1.0, 0.5])
def test_of_two_inputs_with_one_key_the_second_is_ignored_and_counted(learned):
    """However they come, and as restore has it."""
    rng = np.random.default_rng(3)
    names = [f"n{i}" for i in range(9)]
    xs = [{str(name): float(rng.normal()) for name in rng.permutation(names)[:3]} for _ in range(40)]
    ys = [float(i % 3) if rng.random() < learned else None for i in range(40)]
    one, turned, at_once, framed = (regressor() for _ in range(4))
    for x, y in zip(xs, ys, strict=True):
        one.advance([x], [y])
        turned.advance([dict(reversed(x.items()))], [y])
    at_once.advance(xs, ys)
    framed.learn_many(pd.DataFrame(xs, columns=names), ys)
    keys = [key % 4 for key in keys_of(one)]
    assert len(set(keys)) == len(keys) <= 4
    assert one.n_ignored_inputs > 0
    assert {model.state_digest() for model in (one, turned, at_once, framed)} == {one.state_digest()}
    restored = pickle.loads(pickle.dumps(one))
    assert restored.state_digest() == one.state_digest()
    assert [restored.predict_one(x) for x in xs] == [one.predict_one(x) for x in xs]
