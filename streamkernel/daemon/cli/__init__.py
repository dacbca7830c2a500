"""The command line: `streamkernel run`, `check`, `evaluate`, `predict`, `serve`, `replay`, `inspect` and others.

Every command imports what it needs itself: a moment's help must not wait for River.
"""

from streamkernel.daemon.cli.program import app, main

__all__ = ["app", "main"]
