"""Every way in which a model is copied with what it has learned."""

import copy
import pickle

from streamkernel.state import from_bytes, to_bytes


def _by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def _by_clone(model):
    return model.clone(include_attributes=True)


def _by_bytes(model):
    copied = model.clone()
    copied.__setstate__(from_bytes(to_bytes(model.__getstate__())))
    return copied


def _by_state(model):
    copied = model.clone()
    copied.__setstate__(model.__getstate__())
    return copied


COPIES = {
    "pickle": _by_pickle,
    "deepcopy": copy.deepcopy,
    "clone": _by_clone,
    "state": _by_state,
    "bytes": _by_bytes,
}
