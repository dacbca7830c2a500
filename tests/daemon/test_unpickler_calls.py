"""Calls, attributes and items in hostile pickles: what is not allowed raises one clear error and runs nothing."""

import pickle
import struct
from typing import Any

import pytest
from river import linear_model
from river.utils.math import minkowski_distance

from tests.daemon.pickles import (
    GETATTR,
    LOGISTIC,
    PARTIAL,
    build,
    call,
    load,
    name,
    new,
    numbered,
    program,
    refused,
    value,
)


@pytest.mark.parametrize(
    "target",
    [
        GETATTR,
        PARTIAL,
        LOGISTIC,
        name("builtins", "dict"),
        name("math", "exp"),
        name("river.naive_bayes.gaussian", "GaussianNB._make_gaussian"),
        name("collections", "Counter"),
        call(PARTIAL, name("builtins", "float")),
        new(LOGISTIC),
        value("text"),
        value(None),
    ],
    ids=numbered,
)
def test_partial_takes_listed_targets_only(target: bytes) -> None:
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
    for made in (
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
        call(name("numpy", "ndarray"), value((1 << 40,))),
        new(name("numpy", "ndarray"), value((1 << 40,))),
        call(name("numpy.random._mt19937", "MT19937"), value(1)),
        call(value("text"), value(1)),
        call(new(LOGISTIC)),
        new(value("text")),
        new(GETATTR, LOGISTIC, value("clone")),
        new(name("numbers", "Number")),
    ):
        refused(program(made), r"calls .* with \d arguments")
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
