"""Calls and attributes in hostile pickles run nothing; models of River come back, and their parts are bounded."""

import collections
import datetime
import math
import pickle
import random
import struct
from typing import Any

import numpy as np
import pytest
from river import linear_model
from river.utils.math import minkowski_distance

from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.checkpoints.payload import _pickle
from tests.daemon.pickles import (
    GETATTR,
    LOGISTIC,
    MODELS,
    PARTIAL,
    build,
    call,
    learned,
    load,
    made,
    name,
    new,
    numbered,
    program,
    refused,
    value,
    written,
)


@pytest.mark.parametrize(
    "target",
    [
        GETATTR,
        PARTIAL,
        name("streamkernel.estimators.classifier", "KernelClassifier"),
        name("builtins", "dict"),
        name("math", "exp"),
        name("collections", "Counter"),
        call(PARTIAL, name("builtins", "float")),
        new(LOGISTIC),
        value("text"),
        value(None),
    ],
    ids=numbered,
)
def test_partial_takes_parts_of_river_and_a_few_others_only(target: bytes) -> None:
    refused(program(call(PARTIAL, target)), "gives a partial")


def test_the_state_of_a_partial_cannot_change_its_target() -> None:
    made = call(PARTIAL, name("copy", "deepcopy"))
    other = pickle.MARK + name("builtins", "float") + value(()) + value({}) + value(None) + pickle.TUPLE
    refused(program(build(made, other)), "gives a partial")
    good = pickle.MARK + name("copy", "deepcopy") + value((1,)) + value({}) + value(None) + pickle.TUPLE
    assert load(program(build(made, good)))() == 1
    for bad in (value(()), value({}), value((1, 2, 3, 4)), value(None)):
        refused(program(build(made, bad)), "gives a partial")
    with_attributes = pickle.MARK + name("copy", "deepcopy") + value(()) + value({}) + value({"a": 1}) + pickle.TUPLE
    refused(program(build(made, with_attributes)), "gives a partial")


@pytest.mark.parametrize(
    ("function", "arguments"),
    [("ones", (1 << 60,)), ("ones", ((1 << 30, 1 << 30),)), ("array", ("x",)), ("array", ([1.0], "O")), ("ones", ())],
)
def test_a_partial_of_numpy_holds_small_numbers(function: str, arguments: tuple[Any, ...]) -> None:
    target = name("numpy", function)
    state = pickle.MARK + target + value(arguments) + value({}) + value(None) + pickle.TUPLE
    refused(program(build(call(PARTIAL, target), state)), "gives a partial")


def test_attributes_are_set_on_instances_made_by_the_pickle_only(subtests: pytest.Subtests) -> None:
    for target in [
        LOGISTIC,
        name("builtins", "dict"),
        name("copy", "deepcopy"),
        name("river.utils.math", "minkowski_distance"),
        name("river.naive_bayes.gaussian", "GaussianNB._make_gaussian"),
        call(GETATTR, new(LOGISTIC), value("clone")),
        name("streamkernel.estimators.classifier", "KernelClassifier"),
        value(None),
        value([]),
        value({}),
        value("text"),
        value(1.5),
        call(name("collections", "OrderedDict")),
        call(name("collections", "deque")),
    ]:
        with subtests.test(target=target):
            before = (
                dict(vars(linear_model.LogisticRegression)),
                dict(vars(minkowski_distance)),
                minkowski_distance.__code__,
            )
            for state in (
                value({"learn_one": 1}),
                value((None, {"learn_one": 1})),
                value((None, {"__code__": 1, "__defaults__": (1,)})),
                value(({"__doc__": "x"}, {"__init__": 1})),
            ):
                refused(program(build(target, state)))
            assert before == (
                dict(vars(linear_model.LogisticRegression)),
                dict(vars(minkowski_distance)),
                minkowski_distance.__code__,
            )


def test_attributes_have_plain_names_and_slots_exist(subtests: pytest.Subtests) -> None:
    for state in [
        {"__class__": 1},
        {"__dict__": {}},
        {"__reduce_ex__": 1},
        {"__setstate__": 1},
        {"__deepcopy__": 1},
        {"__private": 1},
        {1: 2},
        {b"a": 2},
        [],
        "text",
        ({}, {}, {}),
        (1, {}),
        ({}, 1),
        (None, {"__class__": 1}),
        (None, {"learn_one": 1}),
        (None, {"weights": 1}),
    ]:
        with subtests.test(state=state):
            refused(program(build(new(LOGISTIC), value(state))), "gives LogisticRegression a value of the wrong kind")


def test_classes_of_river_are_not_called() -> None:
    rolling = name("river.utils.rolling", "Rolling")
    for attempt in (
        call(rolling, name("builtins", "dict"), value(3)),
        call(LOGISTIC),
        new(LOGISTIC, value(1)),
        call(name("river.compose.func", "FuncTransformer"), name("builtins", "dict")),
        call(name("builtins", "dict"), value([])),
        call(name("builtins", "int"), value("9" * 4000)),
        call(name("builtins", "bytes"), value(1 << 40)),
        new(name("builtins", "bytes"), value(1 << 40)),
        new(name("builtins", "list")),
        call(name("copy", "deepcopy"), value([])),
        call(name("math", "exp"), value(1.0)),
        call(name("numpy", "ones"), value(1 << 40)),
        call(value("text"), value(1)),
        call(new(LOGISTIC)),
        new(value("text")),
        new(GETATTR, LOGISTIC, value("clone")),
        new(name("numbers", "Number")),
    ):
        refused(program(attempt), r"calls .* with \d arguments")
    refused(program(LOGISTIC, value(()), value({}), pickle.NEWOBJ_EX), "gives a class")
    refused(program(LOGISTIC, value([]), pickle.REDUCE), "gives a constructor")
    refused(program(LOGISTIC, value([]), pickle.NEWOBJ), "gives a constructor")


@pytest.mark.parametrize(
    "data",
    [
        program(new(LOGISTIC), value(1), pickle.APPEND),
        program(build(new(LOGISTIC), value({"append": 1, "extend": 2})), value(1), pickle.APPEND),
        program(new(LOGISTIC), pickle.MARK, value(1), pickle.APPENDS),
        program(new(LOGISTIC), value(1), value(2), pickle.SETITEM),
        program(value([1]), value(0), value(2), pickle.SETITEM),
        program(new(LOGISTIC), pickle.MARK, value(1), value(2), pickle.SETITEMS),
        program(new(LOGISTIC), pickle.MARK, value(1), pickle.ADDITEMS),
        program(value([]), pickle.MARK, value(1), pickle.ADDITEMS),
        program(value({}), pickle.MARK, value(1), pickle.SETITEMS),
        program(LOGISTIC, value(1), value(2), pickle.SETITEM),
    ],
    ids=numbered,
)
def test_items_go_into_lists_dictionaries_and_sets_only(data: bytes) -> None:
    refused(data)


def test_lengths_that_lie_and_stacks_that_run_dry(subtests: pytest.Subtests) -> None:
    for data in [
        program(pickle.BYTEARRAY8, struct.pack("<Q", 1 << 40), b"abc"),
        program(pickle.BYTEARRAY8, struct.pack("<Q", (1 << 64) - 1), b"abc"),
        program(pickle.BINBYTES8, struct.pack("<Q", 1 << 40), b"abc"),
        program(pickle.BINUNICODE8, struct.pack("<Q", 1 << 40), b"abc"),
        program(pickle.LONG4, struct.pack("<i", 1 << 30), b"abc"),
        program(pickle.LONG4, struct.pack("<i", -5)),
        program(pickle.FRAME, struct.pack("<Q", 1 << 60)),
        program(pickle.LONG_BINGET, struct.pack("<I", 1 << 31)),
        program(pickle.MEMOIZE),
        program(pickle.POP),
        program(pickle.TUPLE3),
        program(pickle.STACK_GLOBAL),
        program(value(1), value(2), pickle.STACK_GLOBAL),
        b"",
        b"\x80",
        b"\x80\x05",
        program(),
        b"N",
    ]:
        with subtests.test(data=data):
            refused(data)


def test_a_class_of_a_package_that_is_not_listed_is_the_configuration_s_affair() -> None:
    with pytest.raises(UnfitError, match=r"names mine.models.Half.*listed under imports"):
        load(program(name("mine.models", "Half")))
    for module in ("os", "numpy", "river.datasets", "streamkernel.state", "posix", "", "a b"):
        with pytest.raises(CheckpointError) as caught:
            load(program(name(module, "Half")))
        assert not isinstance(caught.value, UnfitError)


@pytest.mark.parametrize(
    ("compiled", "arguments"),
    [
        ("stats:RsRollingQuantile", (0.5, 1 << 62)),
        ("stats:RsRollingQuantile", (0.5, 1 << 40)),
        ("stats:RsRollingQuantile", (float("nan"), 0)),
        ("stats:RsRollingIQR", (0.9, 0.1, 5)),
        ("stats:RsIQR", (0.9, 0.1)),
        ("stats:RsEWMean", ("0.5",)),
        ("drift:AdaptiveWindowing", (0.002, 32, (1 << 31) - 1, 5, 10)),
        ("drift:AdaptiveWindowing", (0.002, 32, -1, 5, 10)),
    ],
)
def test_the_compiled_parts_of_river_get_small_numbers(compiled: str, arguments: tuple[Any, ...]) -> None:
    module, _, qualified = compiled.partition(":")
    refused(program(new(name(f"river._river_rust.{module}", qualified), *map(value, arguments))))


@pytest.mark.parametrize("state", [b"", b"\xff" * 64, b"\x7f" * 400, "text", None, (1, 2)], ids=numbered)
def test_a_panic_in_the_compiled_parts_is_an_error(state: Any) -> None:
    window = name("river._river_rust.stats", "RsRollingQuantile")
    refused(program(build(new(window, value(0.5), value(3)), value(state))))


@pytest.mark.parametrize("position", [-1, 625, 1 << 40, "0", None])
def test_a_generator_reads_inside_its_table(position: Any) -> None:
    refused(program(made("generator", bytes(2496), position, 0, 0.0)), "generator")
    refused(program(made("generator", bytes(2495), 0, 0, 0.0)), "generator")


LEAF = new(name("river.tree.nodes.htc_nodes", "LeafMajorityClass"))


def test_the_attributes_of_trees_follow() -> None:
    leaf = load(program(LEAF) + program(value([{"depth": 3}])))
    assert leaf.depth == 3
    pair = load(program(LEAF, LEAF, pickle.TUPLE2) + program(value([{"depth": 1}, {"depth": 2}])))
    assert [leaf.depth for leaf in pair] == [1, 2]
    inner = program(pickle.EMPTY_LIST, pickle.EMPTY_DICT, value("inner"), LEAF, pickle.SETITEM, pickle.APPEND)
    assert load(program(LEAF) + inner + program(value([{"depth": 4}]))).inner.depth == 4


@pytest.mark.parametrize(
    "states",
    [
        b"",
        program(value([])),
        program(value([{}, {}])),
        program(value({})),
        program(value([{"__class__": 1}])),
        program(value([{"__setstate__": 1}])),
        program(value([[]])),
        program(value([(None, {"learn_one": 1})])),
        program(name("os", "system")),
    ],
    ids=numbered,
)
def test_attributes_of_trees_are_as_plain_as_any(states: bytes) -> None:
    refused(program(LEAF) + states)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_comes_back(kind: str) -> None:
    model = learned(MODELS[kind]())
    x = {"a": 0.3, "b": 0.7}
    assert load(written(model)).predict_proba_one(x) == model.predict_proba_one(x)


def test_parts_come_back(subtests: pytest.Subtests) -> None:
    for part in [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
        np.zeros((2, 0), np.uint8),
        np.array(["a", "bc"]),
        np.array([1, "a", None], object),
        np.float32(1.5),
        np.bool_(True),
        np.str_("ab"),
        np.array(3),
        collections.Counter("abca"),
        collections.OrderedDict(a=1),
        collections.deque([1, 2, 3], maxlen=2),
        collections.defaultdict(float, a=1.0),
        frozenset({"a", ("b", 1)}),
        bytearray(b"abc"),
        range(1, 7, 2),
        1 << 200,
        datetime.date(2026, 2, 28),
        datetime.datetime(2026, 2, 28, 12, 30),
        datetime.datetime(2026, 2, 28, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        math.exp,
        int,
    ]:
        with subtests.test(part=part):
            again = load(_pickle(part, ()))
            assert type(again) is type(part)
            assert np.array_equal(again, part)


def test_generators_come_back() -> None:
    for one in (np.random.RandomState(3), random.Random(3)):
        one.normal() if isinstance(one, np.random.RandomState) else one.gauss(0, 1)
        pair = [one, one]
        again = load(_pickle(pair, ()))
        assert again[0] is again[1]
        assert [again[0].uniform(0, 1) for _ in range(9)] == [one.uniform(0, 1) for _ in range(9)]
