"""Random and mutated payloads raise an error of checkpoints or give a value, and run nothing."""

import contextlib
import pickle

from hypothesis import given
from hypothesis import strategies as st

from streamkernel.daemon.base.errors import CheckpointError
from tests.daemon.pickles import GETATTR, LOGISTIC, MODELS, PARTIAL, learned, load, name, new, program, value, written


@given(st.binary(max_size=300))
def test_random_bytes_raise_or_give_a_value(data: bytes) -> None:
    for prefix in (b"", b"\x80\x05"):
        with contextlib.suppress(CheckpointError):
            load(prefix + data)


VALID = [written(learned(MODELS[kind]())) for kind in ("pipeline", "bayes", "neighbors", "bagging", "ours")]


@given(
    st.sampled_from(VALID),
    st.lists(
        st.tuples(
            st.integers(0, 1 << 20), st.sampled_from(["change", "insert", "delete", "repeat"]), st.binary(max_size=9)
        )
    ),
)
def test_mutated_models_raise_or_give_a_value(data: bytes, changes: list[tuple[int, str, bytes]]) -> None:
    for place, kind, extra in changes:
        at = place % len(data) if data else 0
        if kind == "change":
            data = data[:at] + extra + data[at + len(extra) :]
        elif kind == "insert":
            data = data[:at] + extra + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + len(extra) :]
        else:
            data = data[: at + 40] + data[at:]
    with contextlib.suppress(CheckpointError):
        load(data)


OPCODES = [bytes([code]) for code in range(256) if bytes([code]) not in (pickle.PROTO, pickle.STOP)]
PIECES = st.one_of(
    st.sampled_from(OPCODES),
    st.sampled_from(
        [LOGISTIC, GETATTR, PARTIAL, new(LOGISTIC), name("collections", "defaultdict"), name("numpy", "ones")]
    ),
    st.sampled_from([value(v) for v in (0, 1.5, "clone", "f8", b"b", (), {}, [], None, (0,), {"a": 1})]),
    st.builds(lambda i: pickle.BINGET + bytes([i]), st.integers(0, 3)),
)


@given(st.lists(PIECES, max_size=30))
def test_programs_of_real_pieces_raise_or_give_a_value(pieces: list[bytes]) -> None:
    with contextlib.suppress(CheckpointError):
        load(program(*pieces))
