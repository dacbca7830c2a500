"""`python -m streamkernel`: the command line."""

import sys

from streamkernel.daemon.cli import main

sys.exit(main())
