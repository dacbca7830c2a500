"""A worker, the Python process of an executor that runs one task after the other."""

import gc
from functools import cache

__all__ = ["freeze_imported"]


@cache
def freeze_imported() -> None:
    """Leave what this worker has imported out of its garbage collections, of which there is one after each task.

    The modules of streamkernel and of what it needs are some hundred thousand objects that live as long as the worker;
    to go through them takes as long as thousands of rows. It is done once in a process.

    """
    gc.freeze()
