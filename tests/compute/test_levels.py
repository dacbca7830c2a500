"""Code is compiled for a level of x86-64, which many processors share, unless the user says otherwise."""

import llvmlite.binding
import pytest

from streamkernel.compute import levels

_V3 = dict.fromkeys(levels.LEVELS["x86-64-v3"], True)
_V4 = _V3 | dict.fromkeys(levels.LEVELS["x86-64-v4"], True)


@pytest.fixture
def processor(monkeypatch):
    """Give the process a processor with these features, and neither variable nor setting."""
    monkeypatch.delenv(levels.VARIABLE, raising=False)
    for name, value in {"CPU_NAME": None, "CPU_FEATURES": None, "ENABLE_AVX": 1}.items():
        monkeypatch.setattr(levels._CONFIG, name, value)

    def having(features):
        monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: features)

    return having


@pytest.mark.parametrize(
    ("features", "level"),
    [
        (_V4, "x86-64-v4"),
        (_V4 | {"avx512vl": False}, "x86-64-v3"),
        (_V3, "x86-64-v3"),
        (_V3 | {"fma": False}, None),
        ({"neon": True}, None),
    ],
)
def test_the_level_is_the_highest_that_the_processor_has(processor, features, level):
    processor(features)
    assert levels._level() == level


def test_a_variable_names_the_level(processor, monkeypatch):
    processor(_V4)
    for chosen, level in (("x86-64-v3", "x86-64-v3"), ("native", None)):
        monkeypatch.setenv(levels.VARIABLE, chosen)
        assert levels._level() == level


def test_a_level_that_does_not_exist_is_refused(processor, monkeypatch):
    processor(_V4)
    monkeypatch.setenv(levels.VARIABLE, "x86-64-v2")
    with pytest.raises(ValueError, match="STREAMKERNEL_CPU: 'x86-64-v2' is not a level"):
        levels._level()


def test_a_level_that_the_processor_lacks_is_refused(processor, monkeypatch):
    processor(_V3)
    monkeypatch.setenv(levels.VARIABLE, "x86-64-v4")
    with pytest.raises(ValueError, match=r"cannot run x86-64-v4\. Use x86-64-v3, native"):
        levels._level()
    monkeypatch.setattr(levels._CONFIG, "CPU_NAME", "generic")
    assert levels._level() == "x86-64-v4"  # compiled here for another processor


@pytest.mark.parametrize(("name", "value"), [("CPU_NAME", "generic"), ("CPU_FEATURES", ""), ("ENABLE_AVX", 0)])
def test_a_processor_named_for_numba_holds(processor, monkeypatch, name, value):
    processor(_V4)
    monkeypatch.setattr(levels._CONFIG, name, value)
    assert levels._level() is None


@pytest.mark.skipif(levels.LEVEL is None, reason="needs an x86-64 processor with AVX2")
def test_compiled_functions_are_for_the_level(imported):
    twice = imported()
    assert twice(0.25) == 0.5
    (code,) = twice.inspect_llvm().values()
    assert f'"target-cpu"="{levels.LEVEL}"' in code
