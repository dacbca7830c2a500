"""The command `streamkernel spark` as a file that spark-submit takes, with the same arguments."""

import sys

from streamkernel.daemon.cli import main

if __name__ == "__main__":
    sys.exit(main(["spark", *sys.argv[1:]]))
