"""Kafka topics: records from one, lines to one."""

import warnings

with warnings.catch_warnings():
    # It reads its message definitions, at its first import, by functions that Python 3.11 and 3.12 call deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401
