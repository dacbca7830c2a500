"""`python -m streamkernel`: the command line."""

from streamkernel.daemon.cli import main

main()
