"""`python -m streamkernel`, and the program `streamkernel`: the command line."""

import gc
import os
import sys

from streamkernel.daemon.base.early_signals import handle_early_signals, quiet_interrupts

__all__ = ["main"]


def main() -> None:
    """Run the command line, and end with its exit status."""
    # A start makes fewer objects than this, and keeps all of them: a search for garbage would find none. The loop
    # searches more often.
    gc.set_threshold(max(500_000, gc.get_threshold()[0]), *gc.get_threshold()[1:])
    # Plug-ins, for which pydantic looks through all that is installed, are none of a daemon's.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    handle_early_signals()
    with quiet_interrupts():
        try:
            from streamkernel.daemon.cli import main as run
        except ModuleNotFoundError as error:
            if (error.name or "streamkernel").startswith("streamkernel"):
                raise
            sys.exit(_missing(error))

    sys.exit(run())


def _missing(error: ModuleNotFoundError) -> int:
    """Say which library the command needs that an install of the estimators alone does not have."""
    print(
        f"streamkernel: the command needs {error.name}, which is not installed: pip install 'streamkernel[daemon]'",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    main()
