"""`python -m ebbflow` is the same as `ebbflow`."""

import sys

from ebbflow.cli import main

sys.exit(main())
