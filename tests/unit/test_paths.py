"""Names become files that are where they should be, paths are of this machine, folders private."""

from __future__ import annotations

import os
import pickle
import stat
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ebbflow as ef
from ebbflow import cli
from ebbflow.engine.runtime.durable import FORMAT
from ebbflow.engine.runtime.sinks.folder import places_of
from ebbflow.engine.spark.options import Options
from ebbflow.errors import CompositionError, StateError
from ebbflow.paths import (
    allow_all,
    checked_permissions,
    file_name,
    file_names,
    local_path,
    make_folder,
    make_folders,
    open_file,
    own_cache,
)
from ebbflow.state.spine import Folder, Piece, Snapshot, Spine, Store, plain

REMOTE = ["s3a://bucket/x", "hdfs://name/x", "dbfs:/x", "gcs://b", "abfss://c@a/x", "S3:x"]


class Order(NamedTuple):
    city: str
    price: int


orders = ef.Input("orders", Order)
totals = orders.group_by("city").agg(total=ef.sum("price"))


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """Permissions do not depend on it."""
    before = os.umask(request.param)
    yield
    os.umask(before)


# ---- names ----

NAMES = st.text(max_size=200) | st.sampled_from(
    ["", ".", "..", "/", "../up", "a/b", "con", "NUL", "_a", "a\0b", "%", "%2F", "ü", "\udcff"]
)


@given(NAMES)
def test_a_name_is_one_file_of_a_folder(name: str) -> None:
    made = file_name(name)
    assert made
    assert made.isascii()
    assert made.isprintable()
    assert len(made) <= 120
    assert not set(made) & set("/\\. :=")
    assert made[0] != "_"
    assert made.lower() not in ("con", "nul", "aux", "prn")
    assert Path("/a", made).resolve().parent == Path("/a")


@given(NAMES, NAMES)
def test_names_that_differ_have_files_that_differ(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)


def test_long_names_that_differ_at_the_end_have_files_that_differ() -> None:
    assert file_name("x" * 300) != file_name("x" * 301)


def test_ordinary_names_stay_as_they_are() -> None:
    assert [file_name(name) for name in ("totals", "by-city_2", "Orders")] == [
        "totals", "by-city_2", "Orders"
    ]  # fmt: skip


def test_names_that_some_file_systems_take_for_one_are_refused() -> None:
    with pytest.raises(CompositionError, match="'Sum' and 'sum' would be one folder"):
        file_names(["Sum", "sum"], "write_changes", "")


def test_an_output_never_leaves_the_folder_it_is_written_to(tmp_path: Path) -> None:
    places = places_of(tmp_path, ["../up", "/etc", "..", "a"], True, "write_changes", "")
    assert {place.parent for place in places.values()} == {tmp_path}
    assert len({*places.values()}) == 4


# ---- paths ----


@pytest.mark.parametrize("path", [*REMOTE, "", "a\0b", 7, "file://host/x", "file:", "file://"])
def test_what_is_no_folder_of_this_machine_is_refused_and_nothing_is_made(
    path: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for take in (
        local_path, Folder, Store, Snapshot, Options, lambda path: ef.spark(path=path),
        lambda path: totals.run(path=path), lambda path: Piece(path, 0, "7a"),
        lambda path: places_of(path, ["a"], False, "write_snapshot", ""),
    ):  # fmt: skip
        with pytest.raises(CompositionError, match="path="):
            take(path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["s3a://bucket/x", ""])
@pytest.mark.parametrize("command", [["state"], ["demo", "--engine", "local", "--path"]], ids=str)
def test_the_command_line_refuses_them_too(
    path: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, path]) == 2
    assert f"={path!r}" in capsys.readouterr().err


def test_a_path_object_does_not_hide_a_scheme() -> None:
    with pytest.raises(CompositionError, match="is not a folder of this machine"):
        local_path(Path("s3a://bucket/x"))


def test_files_as_uris_are_local(tmp_path: Path) -> None:
    place = tmp_path / "a b"
    for uri in (place.as_uri(), f"file:{place}", f"file://localhost{place}", f"FILE://{place}"):
        assert local_path(uri) == place
    with totals.run(path=place.as_uri()) as view:
        view.step(orders=[Order("Rome", 3)])
    assert Snapshot(f"file://{place}").epoch == 1


def test_a_colon_in_a_name_is_no_scheme_where_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_path("./run:1/state") == tmp_path / "run:1" / "state"
    assert local_path("2026-01-01T10:00") == tmp_path / "2026-01-01T10:00"


# ---- permissions ----


def modes(folder: Path) -> set[tuple[str, str]]:
    """The kinds and permissions of everything in a folder, and of itself."""
    found = [folder, *folder.rglob("*")]
    return {("dir" if each.is_dir() else "file", oct(mode_of(each))) for each in found}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def written(path: Path, **options: Any) -> None:
    with totals.run(path=path, **options) as view:
        for price in range(6):
            view.step(orders=[Order("Rome", price)])


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        (None, {("dir", "0o700"), ("file", "0o600")}),
        (0o750, {("dir", "0o750"), ("file", "0o640")}),
        (0o770, {("dir", "0o770"), ("file", "0o660")}),
    ],
)
def test_permissions_of_state(
    permissions: int | None, expected: set[tuple[str, str]], tmp_path: Path
) -> None:
    written(tmp_path / "made" / "state", permissions=permissions)
    assert modes(tmp_path / "made") == expected


def test_permissions_are_those_of_the_last_time_they_were_given(tmp_path: Path) -> None:
    path = tmp_path / "state"
    written(path, permissions=0o770)
    written(path)
    assert modes(path) == {("dir", "0o770"), ("file", "0o660")}, "nobody is locked out"
    written(path, permissions=0o700)
    assert mode_of(path / "lock") == 0o600
    piece = Piece(path, 99, "7a")
    spine = Spine("value")
    spine.append({"Rome": 3})
    piece.add("total", spine)
    piece.finish()
    assert mode_of(path / piece.name) == 0o600, "a task sees what was said where it was opened"


def test_permissions_of_a_folder_that_is_there_are_not_changed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    written(tmp_path)
    assert mode_of(tmp_path) == 0o755
    assert {mode for kind, mode in modes(tmp_path) if kind == "file"} == {"0o600"}


def test_permissions_keep_the_group_of_a_folder(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    make_folder(shared, 0o2770)
    make_folders(shared / "a" / "b", 0o750)
    assert mode_of(shared) == 0o2770
    assert mode_of(shared / "a" / "b") == 0o2750, "a bit that is inherited stays"


@pytest.mark.parametrize("wrong", [0o640, 0o070, 0o710, 0o17000, "0770", True, 7.0])
def test_permissions_that_no_folder_can_have_are_refused(wrong: Any, tmp_path: Path) -> None:
    for take in (checked_permissions, lambda p: Options("state", permissions=p)):
        with pytest.raises(CompositionError, match="permissions="):
            take(wrong)
    with pytest.raises(CompositionError, match="permissions="):
        totals.run(path=tmp_path / "state", permissions=wrong)
    assert not (tmp_path / "state").exists()


def test_permissions_of_what_others_have_filled(tmp_path: Path) -> None:
    old = os.umask(0)
    folder = tmp_path / "log"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "part").write_text("row")
    os.umask(old)
    allow_all(folder, 0o700)
    assert modes(folder) == {("dir", "0o700"), ("file", "0o600")}


def test_nothing_is_written_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "link").symlink_to("precious")
    with pytest.raises(OSError, match="symbolic links"):
        open_file(tmp_path / "link", os.O_WRONLY | os.O_TRUNC)
    assert (tmp_path / "precious").read_text() == "kept"


def test_what_is_kept_between_runs_is_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbflow.paths.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = Path(own_cache())
    assert mode_of(mine) == 0o700
    assert own_cache() == str(mine)
    mine.chmod(0o777)
    assert own_cache() != str(mine), "others may have put something there"
    mine.rmdir()
    mine.symlink_to(tmp_path)
    assert own_cache() != str(mine)


# ---- state that somebody else has written ----


class Bomb:
    """Runs when it is unpickled."""

    armed = ""

    def __reduce__(self) -> Any:
        return os.mkdir, (self.armed,)


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of state whose rows would make another folder."""
    monkeypatch.setattr(Bomb, "armed", str(tmp_path / "sprung"))
    with Store(tmp_path / "state", keep_epochs=3) as store:
        store.spine("typed", layout="value").append({"Rome": 3})
        store.commit(0, {"format": FORMAT, "parts": {"trap": "map"}, "inputs": {}, "rows": {}})
        store.spine("trap", layout="value").append({"Rome": Bomb()})
        store.spine("keys", layout="bag").append({1: [(Bomb(), 1)]})
        store.commit(1)
        store.drop("trap")
        store.commit(2)
    return tmp_path / "state"


def test_readers_do_not_unpickle_what_they_are_given(trap: Path, capsys: Any) -> None:
    snapshot = Snapshot(trap, 1)
    assert snapshot.spine("typed", layout="value").probe(["Rome"]) == {"Rome": 3}
    with pytest.raises(StateError, match=r"pickled posix\.mkdir, which is not read"):
        snapshot.spine("trap", layout="value").probe(["Rome"])
    snapshot.verify()
    assert cli.main(["state", str(trap)]) == 0
    assert "typed" in capsys.readouterr().out
    assert not Path(Bomb.armed).exists()
    Snapshot(trap, 1, unpickle=True).spine("trap", layout="value").probe(["Rome"])
    assert Path(Bomb.armed).exists(), "or the test shows nothing"


def test_a_store_can_be_opened_without_unpickling(trap: Path) -> None:
    with Store(trap, unpickle=False, keep_epochs=3) as store:
        with pytest.raises(StateError, match="pickled"), store.at(1) as older:
            older.spine("trap", layout="value").probe(["Rome"])
        with pytest.raises(StateError, match="pickled"):
            store.spine("keys", layout="bag").probe([1])
        mixed = store.spine("mixed", layout="value")
        for epoch, value in enumerate([{1, 2}, 2.5, "text", None, (1, ["a"])], start=3):
            mixed.append({epoch: value})
            store.commit(epoch)
        store.compact()
        assert mixed.probe([3, 4]) == {3: {1, 2}, 4: 2.5}
    with Store(trap, unpickle=False) as store:
        assert len(store.spine("mixed", layout="value").probe(range(3, 8))) == 5
    with Store(trap) as store:
        assert store.spine("mixed", layout="value").probe([7]) == {7: (1, ["a"])}
    assert not Path(Bomb.armed).exists()


@pytest.mark.parametrize("value", [print, Path("a"), Order("Rome", 1), Bomb()], ids=type)
def test_only_plain_values_are_read(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bomb, "armed", "/nowhere/at/all")
    with pytest.raises(StateError, match="holds a pickled"):
        plain.loads(pickle.dumps(value))


@pytest.mark.parametrize("data", [b"", b"junk", b"\x80\x05N", b"cos\nsystem\n(S'true'\ntR."])
def test_what_is_no_plain_pickle_is_an_error_of_ours(data: bytes) -> None:
    with pytest.raises(StateError):
        plain.loads(data)


@pytest.mark.parametrize(
    ("thing", "name"), [("exact\nTotal", "__add__"), ("exact\nTotal", "x"), ("hashed\nMap", "get")]
)
def test_a_pickle_cannot_change_a_class(thing: str, name: str) -> None:
    module, _, kind = thing.partition("\n")
    known = getattr(import_module(f"ebbflow.reducer.{module}"), kind)
    before = dict(vars(known))
    put = f"}}\x8c{chr(len(name))}{name}cdecimal\nDecimal\ns"
    forged = f"cebbflow.reducer.{thing}\nN{put}\x86b."
    with pytest.raises(StateError, match="changes a class"):
        plain.loads(forged.encode("latin-1"))
    assert dict(vars(known)) == before
    assert plain.loads(pickle.dumps(UUID(int=3))) == UUID(int=3)


def test_a_view_of_plain_values_runs_without_unpickling(tmp_path: Path) -> None:
    many = ef.program(
        totals=orders.group_by("city").agg(
            total=ef.sum("price"), mean=ef.mean("price"), top=ef.max("price"),
            prices=ef.set_of("price"), spread=ef.stddev("price"), middle=ef.median("price"),
        ),
        distinct=orders.distinct(),
    )  # fmt: skip
    for epoch in range(3):
        with many.run(path=tmp_path, unpickle=False, memory=0) as view:
            view.step(orders=[Order("Rome", epoch), Order("Oslo", 7)])
            assert view.verify().rows


class Colour(NamedTuple):
    name: str


def test_a_view_of_other_values_is_refused_without_unpickling(tmp_path: Path) -> None:
    by_colour = orders.group_by(lambda order: Colour(order.city)).agg(n=ef.count())
    with by_colour.run(path=tmp_path) as view:
        view.step(orders=[Order("red", 3)])
    with pytest.raises(StateError, match="Colour, which is not read"):
        by_colour.run(path=tmp_path, unpickle=False)
    assert by_colour.run(path=tmp_path).epoch == 1, "and the state was let go of"


def test_values_that_are_not_plain_are_refused_when_they_come(tmp_path: Path) -> None:
    with Store(tmp_path / "store", unpickle=False) as store:
        for layout, value in (("value", Colour("red")), ("bag", [(Colour("red"), 1)])):
            spine = store.spine(layout, layout=layout)
            with pytest.raises(StateError, match="a value is not plain") as caught:
                spine.append({"Rome": value})
            assert "Colour" in str(caught.value)
            assert not spine.staged
            spine.append({"Rome": 3 if layout == "value" else [(("red", 1.5), 1)]})
        store.commit(0)
    by_colour = orders.group_by(lambda order: Colour(order.city)).agg(n=ef.count())
    with by_colour.run(path=tmp_path / "view", unpickle=False) as view:
        with pytest.raises(StateError, match="a value is not plain"):
            view.step(orders=[Order("red", 3)])
        assert view.epoch == 0
        view.step()
    assert by_colour.run(path=tmp_path / "view", unpickle=False).epoch == 1


@pytest.mark.parametrize("field", ["sizes", "retained", "spines"])
def test_a_manifest_names_files_of_its_own_folder_only(field: str, tmp_path: Path) -> None:
    from dataclasses import replace

    from ebbflow.state.spine.manifest import Listed, read
    from ebbflow.state.spine.segment import Ref

    (tmp_path / "victim").write_text("kept")
    path = tmp_path / "state"
    with Store(path) as store:
        store.spine("a", layout="value").append({1: 1})
        store.commit(0)
        found = store.manifest
    foreign = {
        "sizes": {"../victim": 4},
        "retained": {"epoch-000000000000-0000": ["../victim"]},
        "spines": (Listed("a", 0, "value", "Any", "Any", (Ref("../victim", 0, 4, 0, 0, 1),)),),
    }
    (path / found.name).unlink()
    with_it = replace(found, **{field: foreign[field]})
    writer = Folder(path).create(found.name)
    with_it.write(writer)
    writer.sync()
    writer.close()
    with pytest.raises(StateError, match=r"names '\.\./victim'"):
        read(Folder(path), found.name)
