"""`python -m streamkernel`, and the program `streamkernel`: the command line."""

import sys

from streamkernel.daemon.base.early_signals import handle_early_signals, quiet_interrupts

__all__ = ["main"]


def main() -> None:
    """Run the command line, and end with its exit status."""
    # The command line takes a second to import.
    handle_early_signals()
    with quiet_interrupts():
        from streamkernel.daemon.cli import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
