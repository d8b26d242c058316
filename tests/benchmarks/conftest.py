"""The benchmarks are no part of the package: their folder's parent has to be found, however pytest was started."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
