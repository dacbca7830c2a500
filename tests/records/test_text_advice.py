"""The advice on texts: what is suggested for a configuration can be followed."""

import pytest
import yaml

from streamkernel.records.repeats import many_values, turned_to_text

KEY = "source.inputs.types"


@pytest.mark.parametrize(
    "name", ["a", "b_1", "on", "No", "1", "12:30", "a: b", "#x", "*a", "[a]", "a}", "größe", "'", "\n"]
)
def test_the_suggested_setting_is_yaml_with_the_name_of_the_input(name):
    for said in (turned_to_text(name, "x", KEY), many_values(name, ["1", "2.5"], KEY)):
        assert yaml.safe_load(said.rpartition(f"{KEY}: ")[2]) == {name: "number"}


@pytest.mark.parametrize(
    ("text", "how"), [("17,50", {"type": "number", "decimal": ","}), ("n/a, broken", "number"), ("1.234,5", "number")]
)
def test_a_comma_is_decimal_in_a_number_alone(text, how):
    assert yaml.safe_load(turned_to_text("a", text, KEY).rpartition(f"{KEY}: ")[2]) == {"a": how}


def test_numbers_of_two_notations_are_not_read_by_one():
    advised = many_values("a", ["1.5", "2,5"], KEY)
    assert "rarely has the same value twice" in advised
    assert advised.endswith("If it is an id, exclude it; if it is a date, read it as a date")
    # In Python there is no configuration to exclude it in.
    assert "If it is an id, leave it out of x; if it is a date, pass its calendar parts" in many_values("a", ["x", "y"])
    assert len(many_values("a" * 5_000, ["x"])) < 400
