"""What `ebbflow state` does, to a state on an object store."""

from __future__ import annotations

from typing import Any

import pytest
from tests.object_server import ObjectServer, place, server
from tests.oracle.test_upkeep import Values, program, steps

from ebbflow.cli import main
from ebbflow.engine.runtime.upkeep.copies import compact, copy
from ebbflow.engine.runtime.upkeep.inspect import inspect
from ebbflow.engine.runtime.upkeep.repair import repair
from ebbflow.errors import StateError
from ebbflow.state.spine import Folder, files_at

__all__ = ["place", "server"]


def test_a_state_on_an_object_store_is_verified_copied_compacted_and_repaired(
    server: ObjectServer, place: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    known: dict[str, Any] = {"orders": {}, "customers": []}
    values: Values = {}
    with program.run(path=place, keep_epochs=2) as view:
        steps(view, known, values, 4, 1)
    files = files_at(server.again(place))
    assert inspect(files).epochs == [3, 4]
    assert copy(files, Folder(tmp_path / "copy")).epoch == 4
    with program.run(path=tmp_path / "copy") as view:
        assert view.value == values[4]
    newest = max(name for name in files.names() if name.startswith("epoch-"))
    files.lock()
    half = bytes(files.map(newest))[:-9]
    writer = files.create(newest)
    writer.write(half)
    writer.sync()
    writer.close()
    files.unlock()
    files = files_at(server.again(place, cache=tmp_path / "other cache"))
    for name, given in (("AWS_ENDPOINT_URL", server.url), ("AWS_REGION", "us-east-1"),
                        ("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "x"),
                        ("AWS_ALLOW_HTTP", "true")):  # fmt: skip
        monkeypatch.setenv(name, given)
    assert main(["state", "verify", place.url]) == 1
    assert f"DAMAGED  {newest}" in capsys.readouterr().out
    with pytest.raises(StateError, match="goes back to epoch 3"):
        repair(files)
    done = repair(files, back=True)
    assert (done.epoch, done.content) == (5, 3)
    before, after = compact(files)
    assert before >= after
    assert inspect(files).problems == ()
    with program.run(path=server.again(place, cache=tmp_path / "other cache")) as view:
        assert view.value == values[3]
