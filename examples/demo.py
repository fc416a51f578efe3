"""The demo in small, in this process: a shop kept up to date, beside computing it again.

`ebbflow demo` runs it on Spark with more rows; what it is made of is `ebbflow.demo`. Options are
those of the command:

    python examples/demo.py --rows 100000 --seed 7
"""

from __future__ import annotations

import sys

from ebbflow.cli import main

if __name__ == "__main__":
    sys.exit(main(["demo", "--engine", "local", "--rows", "20000", *sys.argv[1:]]))
