"""Learning on Apache Spark: the batch step of an estimator on the micro-batches of Structured Streaming.

Its names need the extra `spark`, which a default install does not have.
"""

from streamkernel.spark.stream import learn_batch_of, learn_stream
from streamkernel.spark.udf import predict_udf

__all__ = ["learn_batch_of", "learn_stream", "predict_udf"]
