"""`python tests/soak`, from anywhere."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: every core has a worker
sys.path.insert(0, str(Path(__file__).parents[1]))

from soak.command import main

sys.exit(main())
