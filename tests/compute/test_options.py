"""The options of a compilation: equal, and hashed, as numba's are."""

import pytest
from numba.core.compiler import Flags

from streamkernel.compute.options import QuickFlags

SETTINGS = [
    {},
    {"no_cfunc_wrapper": True},
    {"no_cfunc_wrapper": True, "enable_pyobject": False},  # the latter as it is where nothing is set
    {"no_cfunc_wrapper": False},
    {"no_cfunc_wrapper": True, "fastmath": {"nsz"}},
    {"no_cfunc_wrapper": True, "fastmath": {"nsz"}, "error_model": "numpy"},
]


def _set(kind, settings):
    flags = kind()
    for name, value in settings.items():
        setattr(flags, name, value)
    return flags


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("others", SETTINGS)
def test_they_are_equal_where_numbas_are(settings, others):
    mine, other = _set(QuickFlags, settings), _set(QuickFlags, others)
    # Nothing set is no wrapper for C.
    defaults = {"no_cfunc_wrapper": True}
    numbas, numbas_other = _set(Flags, defaults | settings), _set(Flags, defaults | others)
    equal = numbas == numbas_other
    assert (mine == other, mine == numbas_other, numbas_other == mine) == (equal, equal, equal)
    assert (hash(mine) == hash(other)) >= equal
    assert hash(mine) == hash(numbas)
    assert {numbas: 1}.get(other) == {mine: 1}.get(numbas_other) == (1 if equal else None)
