"""A worker, the Python process of an executor that runs one task after the other."""

import gc
from functools import cache

__all__ = ["freeze_imported"]


@cache
def freeze_imported() -> None:
    """Leave what this worker has imported out of its garbage collections, of which there is one after each task.

    The modules of streamkernel and of what it needs live as long as the worker, and going through their objects is most
    of a collection. It is done once in a process, with all that lives at that moment: a cycle of other objects among it
    stays as long as the worker, too.

    """
    gc.freeze()
