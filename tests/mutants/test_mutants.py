"""The list of mutants fits the code."""

from tests.mutants import listed


def test_the_list_holds_four_hundred_mutants_of_the_code() -> None:
    assert sum(each.place is not None for each in listed.read()) >= 400
