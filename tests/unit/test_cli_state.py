"""`ebbflow state DIR` shows what a view keeps on disk."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ebbflow as ef
from ebbflow.cli import main
from ebbflow.notebook import amount
from ebbflow.state.spine import Store


class Order(NamedTuple):
    id: int
    city: str
    price: int


orders = ef.Input("orders", Order)
program = ef.program(
    totals=orders.group_by("city").agg(total=ef.sum("price")), cities=orders.select("city")
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["state", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_it_shows_the_epoch_and_every_operator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with program.run(path=tmp_path) as view:
        view.step(orders=[Order(i, f"city {i % 4}", i) for i in range(40)])
    status, out, _ = run(capsys, str(tmp_path))
    epoch, head, *parts, total, size = out.splitlines()
    assert (status, epoch) == (0, "epoch 1")
    assert head.split() == ["entries", "size", "segments"]
    assert [line.split()[0] for line in parts] == ["input", "reduce", "output"]
    assert [line.split()[-4] for line in parts] == ["40", "4", "4"]
    assert "test_cli_state.py:" in parts[1]
    assert total.split()[:2] == ["total", "48"]
    assert size.endswith("files")


def test_it_can_be_read_while_it_is_open_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with program.run(path=tmp_path, keep_epochs=3) as view:
        for i in range(6):
            view.step(orders=[Order(i, "Rome", i)])
        done = subprocess.run(
            [sys.executable, "-m", "ebbflow", "state", str(tmp_path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("epoch 6, of 4, 5, 6 that can be read\n")
        view.step(orders=[Order(9, "Rome", 1)])
        assert run(capsys, str(tmp_path))[1].startswith("epoch 7, of 5, 6, 7")


def test_json_has_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with program.run(path=tmp_path) as view:
        view.step(orders=[Order(1, "Rome", 3)])
    found = json.loads(run(capsys, str(tmp_path), "--json")[1])
    assert (found["epoch"], found["epochs"], found["folder"]) == (1, [1], str(tmp_path))
    assert [part["label"].split()[0] for part in found["parts"]] == ["input", "reduce", "output"]
    assert [part["entries"] for part in found["parts"]] == [1, 1, 1]
    assert sum(part["bytes"] for part in found["parts"]) <= found["bytes"]


def test_any_other_state_is_shown_by_its_own_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(tmp_path) as store:
        for bucket in range(3):
            store.spine("totals", bucket, layout="value").append({1: 2, 3: 4})
        store.commit(8)
    status, out, _ = run(capsys, str(tmp_path))
    assert (status, out.splitlines()[0]) == (0, "epoch 8")
    name, entries, *_, segments = out.splitlines()[2].split()
    assert (name, entries, segments) == ("totals", "6", "3")


def test_a_folder_without_state_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, said = run(capsys, str(tmp_path))
    assert status == 2
    assert "there is no state in" in said
    status, _, said = run(capsys, str(tmp_path / "missing"))
    assert status == 2
    assert "there is no folder" in said
    assert not (tmp_path / "missing").exists()


def test_damage_is_an_error_that_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with program.run(path=tmp_path) as view:
        view.step(orders=[Order(1, "Rome", 3)])
    newest = max(tmp_path.glob("epoch-*"))
    newest.write_bytes(newest.read_bytes()[:-5])
    status, _, said = run(capsys, str(tmp_path))
    assert status == 2
    assert newest.name in said


def test_without_pyarrow_it_is_said_what_to_install(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["pyarrow"] = None
from ebbflow.cli import main
print(main(["state", {str(tmp_path)!r}]))
import ebbflow as ef
ef.Input("words", str).run(path={str(tmp_path)!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2"
    assert done.stderr.count("pip install '.[durable]' in a clone of ebbflow") == 2


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1_500, "1.5 KB"), (50_000, "49 KB"),
                        (3 << 20, "3.0 MB"), (5_000 << 30, "5,000 GB")],
)  # fmt: skip
def test_amounts_are_short(count: int, text: str) -> None:
    assert amount(count) == text


# ---- what else it does ----


def test_verify_says_what_is_damaged_and_its_status_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with program.run(path=tmp_path, keep_epochs=2) as view:
        for i in range(3):
            view.step(orders=[Order(i, "Rome", 3)])
    status, out, _ = run(capsys, "verify", str(tmp_path))
    assert status == 0
    assert out.rstrip().endswith("whole epochs: 2, 3")
    newest = max(tmp_path.glob("epoch-*"))
    newest.write_bytes(newest.read_bytes()[:-5])
    status, out, _ = run(capsys, "verify", str(tmp_path))
    assert status == 1
    assert out.startswith(f"DAMAGED  {newest.name} is damaged")
    found = json.loads(run(capsys, "verify", str(tmp_path), "--json")[1])
    assert found["problems"][0]["file"] == newest.name
    status, _, said = run(capsys, "repair", str(tmp_path))
    assert status == 2
    assert "--back`, which goes back to epoch 2" in said
    status, out, _ = run(capsys, "repair", str(tmp_path), "--back")
    assert status == 0
    assert "the state of epoch 2 is epoch 4 now" in out
    assert "aside-4-0" in out
    assert run(capsys, "verify", str(tmp_path))[0] == 0
    assert run(capsys, "repair", str(tmp_path))[1] == "there is nothing to repair\n"
    with program.run(path=tmp_path) as view:
        assert view.epoch == 4
        assert len(view.value["cities"]) == 1


def test_compact_copy_and_sinks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state, other = str(tmp_path / "state"), str(tmp_path / "other")
    with program.run(path=state) as view:
        view.each_epoch(lambda change, epoch: epoch > 1 and 1 / 0, name="mails")
        for i in range(4):
            with contextlib.suppress(ZeroDivisionError):
                view.step(orders=[Order(i, "Rome", 3)])
    status, out, _ = run(capsys, state)
    assert out.splitlines()[-1] == (
        "sink 'mails': epoch 1, 3 behind: what it has not had is kept for it"
    )
    assert "what epochs changed" in out
    assert run(capsys, "compact", state)[1].split()[1:4] == ["segments", "became", "9"]
    status, out, _ = run(capsys, "copy", state, other)
    assert status == 0
    assert out.startswith(f"epoch 4 is in {other}, ")
    assert "sink" not in run(capsys, other)[1]
    assert run(capsys, "copy", state, other)[0] == 2
    status, _, said = run(capsys, "end-sink", state, "mail")
    assert status == 2
    assert "there is no sink 'mail'" in said
    assert run(capsys, "restart-sink", state, "mail")[0] == 2
    assert run(capsys, "restart-sink", state, "mails") == (
        0, "the sink 'mails' begins again with everything when it is added the next time\n", ""
    )  # fmt: skip
    assert run(capsys, state)[1].splitlines()[-1] == (
        "sink 'mails': epoch 4, begins again with everything when it is added"
    )
    assert '"restarting": [\n    "mails"\n  ]' in run(capsys, state, "--json")[1]
    copied = f"{other}-with-sinks"
    assert run(capsys, "copy", state, copied, "--sinks")[0] == 0
    received: list[Any] = []
    for each in (copied, state):
        with program.run(path=each) as view:
            view.each_epoch(lambda change, epoch: received.append((epoch, change)), name="mails")
            assert received.pop() == (4, view.value)
            assert view.sinks == {"mails": 4}
        assert "begins again" not in run(capsys, each)[1]
    assert run(capsys, "end-sink", state, "mails")[0] == 0
    assert "sink" not in run(capsys, state)[1]
    with program.run(path=other) as view:
        assert view.epoch == 4
        assert view.verify()
