"""Who is under way is asked of the stack, however low that is."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import ebbflow as ef
from ebbflow.engine.local.view import BROKEN
view = ef.Input("words", str).run()
view.step(words=["ebb"])
view._status = BROKEN
print(view.epoch)
"""


def test_after_an_interrupt_the_epoch_is_told_at_the_top_of_a_script() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr
