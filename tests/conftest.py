"""Hypothesis without deadlines (the first call of a kernel compiles it) and the same examples in every run."""

from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("suite")
