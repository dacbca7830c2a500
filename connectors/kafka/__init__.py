"""Kafka topics: records from one, lines to one."""

import warnings

# kafka-python reads its message definitions by functions that Python 3.11 and 3.12 call deprecated, in their own name.
warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
