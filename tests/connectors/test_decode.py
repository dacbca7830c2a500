import math

import pytest

from streamkernel.connectors.decode import TargetDecoder, UndecodableError


def test_targets(subtests: pytest.Subtests) -> None:
    for target_type, value, label in [
        ("str", "red", "red"),
        ("str", " red ", " red "),
        ("str", True, "true"),
        ("str", 3, "3"),
        ("str", 2**70, str(2**70)),
        ("str", 0.5, "0.5"),
        ("str", "nan", "nan"),
        ("int", "7", 7),
        ("int", " -7 ", -7),
        ("int", "7.0", 7),
        ("int", 7.0, 7),
        ("int", str(2**70), 2**70),
        ("float", "1e3", 1000.0),
        ("float", 1, 1.0),
        ("bool", "TRUE", True),
        ("bool", " no ", False),
        ("bool", "1", True),
        ("bool", "f", False),
        ("bool", 0, False),
        ("bool", 1.0, True),
        ("bool", True, True),
        ("bool", "1.0", True),
        ("bool", " 0.0 ", False),
        # Equal numbers are one label; true is another, and a text is what stands there.
        ("str", 1.0, "1"),
        ("str", "1.0", "1.0"),
        ("str", -0.0, "0"),
        ("str", 1e300, "1e+300"),
    ]:
        with subtests.test(target_type=target_type, value=value, label=label):
            decoded = TargetDecoder(target_type, 256).decode(value)
            assert decoded == label
            assert type(decoded) is type(label)


def test_a_missing_target_is_unlabeled(subtests: pytest.Subtests) -> None:
    for target_type in ["str", "int", "bool", "float"]:
        for value in [None, "", "  ", math.nan, *(["nan", "NaN", "-nan"] if target_type != "str" else [])]:
            with subtests.test(target_type=target_type, value=value):
                assert TargetDecoder(target_type, 256).decode(value) is None


def test_a_target_that_cannot_be_decoded_is_a_fault(subtests: pytest.Subtests) -> None:
    for target_type, value in [
        ("int", "7.5"),
        ("int", "1_000"),
        ("int", "inf"),
        ("int", "9" * 5000),
        ("int", True),
        ("int", "x"),
        ("int", [1]),
        ("float", "inf"),
        ("float", math.inf),
        ("float", "1e999"),
        ("float", "1_0"),
        ("float", 10**400),
        ("float", True),
        ("float", "x"),
        ("float", {"a": 1}),
        ("bool", "maybe"),
        ("bool", 2),
        ("bool", [True]),
        ("str", [1]),
        ("str", {"a": 1}),
        ("str", math.inf),
        ("str", 10**400),
    ]:
        with subtests.test(target_type=target_type, value=value):
            with pytest.raises(UndecodableError) as raised:
                TargetDecoder(target_type, 256).decode(value)
            assert raised.value.fault.reason == "target"
            assert len(raised.value.fault.detail) < 120


def test_labels_may_not_grow_without_bound() -> None:
    with pytest.raises(UndecodableError) as raised:
        TargetDecoder("str", 3).decode("long")
    assert raised.value.fault.reason == "string_too_long"


def test_an_unknown_target_type_is_named() -> None:
    with pytest.raises(ValueError, match=r"target_type .*'complex'"):
        TargetDecoder("complex", 256)
