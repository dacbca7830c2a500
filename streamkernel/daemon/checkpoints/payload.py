"""The model as bytes, and back: an estimator of ours as its state, any other model as a pickle.

A record holds arrays and plain values only. A pickle is read by the restricted reader in `unpickler.py`; its writer
here refuses what that reader would refuse, so that a model which cannot be restored is known when its first checkpoint
is written, not when it is needed.
"""

import copyreg
import io
import json
import pickle
import types
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from river import base

from streamkernel import state
from streamkernel.daemon.base.errors import CheckpointError, OtherFormatError, OtherModelError, UnfitError
from streamkernel.daemon.base.model import is_ours, last_step
from streamkernel.daemon.checkpoints import allowed, arrays, unpickler
from streamkernel.daemon.checkpoints.sizes import sizes_of
from streamkernel.daemon.checkpoints.structure import full_name, refuse_difference, structure
from streamkernel.estimators.base import StreamEstimator
from streamkernel.fields import OtherVersionError

Model = TypeVar("Model", bound=base.Base)

_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)


def dump_model(model: base.Base, allowed_packages: Sequence[str] = ()) -> bytes:
    """Return a River pipeline or estimator, ours or not, as bytes.

    `load_model` may restore classes of the allowed packages, in addition to River's and ours.

    Raises
    ------
    CheckpointError
        The model holds something that `load_model` could not restore; the message names it.

    Examples
    --------
    >>> from river import linear_model
    >>> model = linear_model.LogisticRegression()
    >>> model.learn_one({"a": 1.0}, True)
    >>> restored = load_model(dump_model(model), linear_model.LogisticRegression())
    >>> restored.weights == model.weights
    True

    """
    return dump_with_digest(model, allowed_packages)[0]


def dump_with_digest(model: base.Base, allowed_packages: Sequence[str] = ()) -> tuple[bytes, str | None]:
    """Write a model as `dump_model` does, and give the digest of the state written, None where the model has none."""
    described: dict[str, Any] = {"kind": "pickle"}
    digest: str | None = None
    if is_ours(model):
        described = {"kind": "state", "structure": structure(model, settled=True)}
        try:
            record = model.__getstate__()
            body, digest = state.to_bytes(record), state.digest(record)  # type: ignore[arg-type]
        except ValueError as error:  # a state that would be refused when it is read
            raise CheckpointError(f"the model cannot be saved: {error!s:.200}") from error
    else:
        body, step = _pickle(model, allowed_packages), last_step(model)
        if isinstance(step, StreamEstimator):
            digest = step.state_digest()
    return json.dumps(described).encode() + b"\n" + body, digest


def load_model(
    data: bytes, model_from_config: Model, allowed_packages: Sequence[str] = (), place: str = "model"
) -> Model:
    """Return the model that `dump_model` wrote, running nothing of what the bytes hold.

    Parameters
    ----------
    data
        What `dump_model` gave.
    model_from_config
        A new model as the configuration describes it. The restored one must have its classes and arguments; an
        estimator of ours is restored into it.
    allowed_packages
        Packages whose classes may be restored in addition to River's and ours; none by default.
    place
        Where the configuration has the model, for the differences.

    Raises
    ------
    UnfitError
        The model is sound, but does not fit; an `OtherModelError`, with each difference, where it is not the
        configuration's.
    CheckpointError
        The bytes are damaged, or hold something that is not allowed.

    """
    try:
        head, _, body = data.partition(b"\n")
        described = json.loads(head)
        expected = structure(model_from_config)
        if described["kind"] == "state":
            if not is_ours(model_from_config):
                raise OtherModelError(["an estimator of streamkernel alone"])
            refuse_difference(described["structure"], json.loads(json.dumps(expected)), place)
            record = state.from_bytes(body)
            model_from_config.__setstate__(record)  # type: ignore[attr-defined]
            return model_from_config
        restored: Model = unpickler.loads(body, allowed_packages, sizes_of(model_from_config))
        refuse_difference(structure(restored, settled=True), expected, place)
        return restored
    except CheckpointError:
        raise
    except OtherVersionError as error:
        raise OtherFormatError(str(error)) from error
    except MemoryError as error:
        raise UnfitError("the model does not fit into memory") from error
    except Exception as error:  # whatever a payload of any origin makes the code above trip over
        raise CheckpointError(f"the payload cannot be restored: {type(error).__name__}: {error!s:.200}") from error


def _pickle(model: base.Base, packages: Sequence[str]) -> bytes:
    file = io.BytesIO()
    writer = _Writer(file, packages)
    try:
        writer.dump(model)
        while writer.flat:
            written, writer.flat = writer.flat, []
            writer.dump([one.__getstate__() for one in written])
    except RecursionError as error:
        raise CheckpointError("the model is nested too deeply to be written") from error
    except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(f"the model holds something that cannot be written: {error!s:.200}") from error
    return file.getvalue()


class _Writer(pickle.Pickler):
    """Refuses names that `unpickler.loads` would refuse."""

    def __init__(self, file: io.BytesIO, packages: Sequence[str]) -> None:
        super().__init__(file, protocol=5)
        self._packages = packages
        self.flat: list[Any] = []
        # A model may hold hundreds of thousands of instances of one class, and its class alone is looked at.
        self._passed: set[type] = set()

    def reducer_override(self, found: Any) -> Any:
        if type(found) in self._passed:
            return NotImplemented
        if (plain := arrays.reduced(found)) is not None:
            return plain
        if allowed.is_flat(type(found)):
            self.flat.append(found)
            return copyreg.__newobj__, (type(found),)  # type: ignore[attr-defined]
        if isinstance(found, partial):
            if not allowed.is_partial_target(found.func, self._packages):
                self._refuse(f"a partial of {full_name(found.func)}")
        elif isinstance(found, types.MethodType):
            if allowed.find_method(found.__self__, found.__name__, self._packages) is None:
                self._refuse(f"the bound method {full_name(found)}")
        elif isinstance(found, types.MethodDescriptorType):
            if found is not str.lower:
                self._refuse(f"the method {found.__qualname__}")
        elif isinstance(found, _NAMED):
            if not unpickler.permits(found.__module__, found.__qualname__, self._packages):
                self._refuse(full_name(found))
        elif allowed.is_trusted(type(found).__module__, self._packages):
            # Trusted functions may be referred to, but are not called while a payload is read.
            reduced = found.__reduce_ex__(5)
            maker = reduced[0] if isinstance(reduced, tuple) else type(found)
            if not isinstance(maker, type) and allowed.is_trusted(maker.__module__, self._packages):
                self._refuse(f"a {full_name(type(found))}, made by the function {full_name(maker)}")
            return reduced
        else:
            self._passed.add(type(found))
        return NotImplemented

    def _refuse(self, what: str) -> None:
        raise CheckpointError(
            f"the model holds {what}, which a checkpoint cannot restore: put it into a package that is listed under "
            "imports, or leave it out"
        )
