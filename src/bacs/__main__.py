"""`python -m bacs`: the command, where the script is not on the path."""

import sys

from bacs.cli import main

sys.exit(main())
