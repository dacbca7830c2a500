"""What a driver sends to executors: a model for all passes of a batch, as a broadcast that each worker reads once."""

from __future__ import annotations

import pickle
import uuid
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from streamkernel.spark.worker import freeze_imported

__all__ = ["Broadcast"]

#: The last object that this process was sent, by its token: the tasks of a worker read it one after the other.
_last: tuple[str, Any] = ("", None)


class Broadcast:
    """An object sent to the executors once.

    Parameters
    ----------
    spark
        The session.
    value
        The object; classes of the driver's main module go with it.

    Attributes
    ----------
    size
        The bytes of the serialized object.

    """

    def __init__(self, spark: SparkSession, value: Any) -> None:
        self._value = value
        data = cloudpickle.dumps(value)
        self.size = len(data)
        self._token = uuid.uuid4().hex
        self._broadcast = spark.sparkContext.broadcast(data)

    def __getstate__(self) -> dict[str, Any]:
        return {"_token": self._token, "_broadcast": self._broadcast, "_value": None, "size": self.size}

    def get(self) -> Any:
        """The object; on an executor a copy, which the tasks of a worker share and must not change."""
        global _last
        if self._value is not None:  # on the driver
            return self._value
        if _last[0] != self._token:
            freeze_imported()  # not the object, too
            _last = self._token, pickle.loads(self._broadcast.value)
        return _last[1]

    def forget(self) -> None:
        """Remove it from the executors."""
        self._broadcast.destroy()
