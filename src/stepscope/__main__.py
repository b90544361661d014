"""``python -m stepscope``."""

import sys
from pathlib import Path

# Python looks for modules first where one stands, which is often among profiles: what lies there is not to be run.
if not sys.flags.safe_path and Path(sys.path[0]).resolve() != Path(__file__).resolve().parents[1]:
    del sys.path[0]

from stepscope.cli import main

sys.exit(main())
