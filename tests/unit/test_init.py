"""What `import ebbflow` gives."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ebbflow as ef
from ebbflow.engine.local import View


def test_every_public_name_is_there() -> None:
    assert all(hasattr(ef, name) for name in ef.__all__)


def test_a_view_can_be_named_and_no_engine_is_loaded_before_it_is() -> None:
    assert ef.View is View
    assert isinstance(ef.Input("words", str).run(), ef.View)
    loaded = (
        "import sys, ebbflow; print([m for m in sys.modules if m.startswith('ebbflow.engine')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="ebbflow has no 'Veiw'"):
        ef.Veiw
