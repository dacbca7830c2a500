"""Which modules have their examples tried: those of Spark only where it is installed."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("pyspark") else ["streamkernel/spark"]
