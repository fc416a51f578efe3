"""Streams of changes: `async for change in view.changes()`."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbflow.errors import ChangeError, ViewClosed
from ebbflow.flow.plan import Filter
from ebbflow.fn import Fn
from ebbflow.zset import ZSet

recomputing: Any = SimpleNamespace(**run_path(str(Path(__file__).parents[1] / "recomputing.py")))
view_of, WORDS, MINUS = recomputing.view_of, recomputing.WORDS, recomputing.MINUS


def words() -> Any:
    return view_of(words=WORDS)


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run it, and fail rather than hang."""

    async def in_time() -> Any:
        return await asyncio.wait_for(main, 20)

    return asyncio.run(in_time())


async def rest(stream: Any) -> list[Any]:
    return [change async for change in stream]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_stream_gives_every_change_from_when_it_was_made_until_the_view_is_closed() -> None:
    async def main() -> None:
        view = words()
        view.step(words=["before"])
        stream = view.changes()
        view.step(words=["a"])
        view.step()
        view.step(words={"a": -1, "b": 1})
        view.close()
        assert await rest(stream) == [ZSet({"a": 1}), ZSet({"a": -1, "b": 1})]
        assert await rest(stream) == []

    run(main())


def test_a_reader_waits_for_the_next_change() -> None:
    async def main() -> None:
        view = words()
        reader = asyncio.create_task(rest(view.changes()))
        await settle()
        view.step(words=["a"])
        await settle()
        assert not reader.done()
        view.step(words=["b"])
        view.close()
        assert await reader == [ZSet({"a": 1}), ZSet({"b": 1})]

    run(main())


def test_several_readers_each_get_everything() -> None:
    async def main() -> None:
        view = words()
        readers = [asyncio.create_task(rest(view.changes())) for _ in range(3)]
        await settle()
        view.step(words=["a"])
        view.step(words=["b"])
        view.close()
        assert await asyncio.gather(*readers) == [[ZSet({"a": 1}), ZSet({"b": 1})]] * 3

    run(main())


def test_tasks_that_share_one_stream_get_each_change_once() -> None:
    async def main() -> None:
        view = words()
        stream = view.changes()
        readers = [asyncio.create_task(rest(stream)) for _ in range(3)]
        await settle()
        for word in "abcdef":
            view.step(words=[word])
            await settle()
        view.close()
        got = [change for part in await asyncio.gather(*readers) for change in part]
        assert sorted(word for change in got for word in change) == list("abcdef")

    run(main())


def test_a_stream_of_several_outputs_gives_them_all_and_one_of_an_output_its_own() -> None:
    async def main() -> None:
        long = Filter(parent=WORDS, fn=Fn(lambda word: len(word) > 3))
        view = view_of(words=WORDS, long=long)
        everything, own = view.changes(), view["long"].changes()
        view.step(words=["ebb"])
        view.step(words=["flow"])
        view.close()
        assert await rest(everything) == [
            {"words": ZSet({"ebb": 1}), "long": ZSet()},
            {"words": ZSet({"flow": 1}), "long": ZSet({"flow": 1})},
        ]
        assert await rest(own) == [ZSet({"flow": 1})]

    run(main())


# ---- a slow reader ----


def test_changes_that_find_no_room_are_added_up_into_the_last() -> None:
    async def main() -> None:
        view = words()
        stream = view.changes(limit=2)
        given_back = [view.step(words={word: 1}) for word in "abc"]
        view.step(words={"b": 1, "c": -1})
        view.step(words=["d"])
        assert await anext(stream) == ZSet({"a": 1})
        given_back += [view.step(words={word: 1}) for word in "ef"]
        view.close()
        assert await rest(stream) == [ZSet({"b": 2, "d": 1}), ZSet({"e": 1, "f": 1})]
        assert given_back == [ZSet({word: 1}) for word in "abcef"]

    run(main())


def test_changes_that_cancel_while_nobody_reads_are_never_seen() -> None:
    async def main() -> None:
        view = words()
        stream = view.changes(limit=1)
        view.step(words=["a"])
        view.step(words={"a": -1})
        assert not stream._buffer
        view.step(words=["b"])
        view.close()
        assert await rest(stream) == [ZSet({"b": 1})]

    run(main())


def test_what_was_taken_from_a_stream_does_not_change_when_more_comes() -> None:
    async def main() -> None:
        view = words()
        stream = view.changes(limit=1)
        view.step(words=["a"])
        view.step(words=["b"])
        taken = await anext(stream)
        view.step(words=["c"])
        view.step(words=["d"])
        assert taken == ZSet({"a": 1, "b": 1})
        assert await anext(stream) == ZSet({"c": 1, "d": 1})

    run(main())


def test_what_waits_is_bounded_by_the_rows_that_differ() -> None:
    view = words()
    stream = view.changes(limit=3)
    for _ in range(50):
        view.step(words=["a", "b"])
        view.step(words={"a": -1})
    assert sum(len(rows) for change in stream._buffer for rows in change.values()) <= 6


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, None])
def test_a_stream_needs_room_for_one_change(limit: Any) -> None:
    with pytest.raises(ChangeError, match="room for one change"):
        words().changes(limit=limit)


@given(
    st.integers(1, 3),
    st.lists(
        st.one_of(
            st.just("read"),
            st.tuples(
                st.sampled_from(["words", "stop"]),
                st.dictionaries(st.sampled_from("abc"), st.integers(0, 2)),
            ),
        ),
        max_size=12,
    ),
)
def test_what_is_read_adds_up_to_the_value_however_slowly_it_is_read(
    limit: int, acts: list[Any]
) -> None:
    async def main() -> None:
        view = view_of(minus=MINUS, words=WORDS)
        stream = view.changes(limit=limit)
        sums: dict[str, ZSet[Any]] = {"minus": ZSet(), "words": ZSet()}

        def take(change: Any) -> None:
            assert any(change.values())
            for name in sums:
                sums[name] += change[name]

        for act in acts:
            if act == "read":
                if stream._buffer:
                    take(await anext(stream))
            else:
                name, after = act
                view.step({name: ZSet(after) - view._program.inputs[name].snapshot()})
            assert len(stream._buffer) <= limit
        value = view.value
        view.close()
        for change in await rest(stream):
            take(change)
        assert sums == value

    asyncio.run(main())


# ---- a writer that waits ----


def test_a_writer_that_waits_for_room_never_makes_changes_add_up() -> None:
    async def main() -> None:
        view, got = words(), []

        async def slow_reader(stream: Any) -> None:
            async for change in stream:
                got.append(change)
                await asyncio.sleep(0.001)

        reader = asyncio.create_task(slow_reader(view.changes(limit=2)))
        for n in range(30):
            assert await view.astep(words=[n]) == ZSet({n: 1})
        view.close()
        await reader
        assert got == [ZSet({n: 1}) for n in range(30)]

    run(main())


def test_a_writer_waits_only_while_there_is_no_room() -> None:
    async def main() -> None:
        view = words()
        stream = view.changes(limit=1)
        await view.astep({"words": ["a"]})
        writer = asyncio.create_task(view.astep(words=["b"]))
        await settle()
        assert not writer.done()
        assert view.epoch == 1
        assert await anext(stream) == ZSet({"a": 1})
        assert await writer == ZSet({"b": 1})
        assert await anext(stream) == ZSet({"b": 1})

    run(main())


@pytest.mark.parametrize("how", ["close", "drop"])
def test_a_writer_does_not_wait_for_a_reader_who_left(how: str) -> None:
    async def main() -> None:
        view = words()
        stream = view.changes(limit=1)
        await view.astep(words=["a"])
        writer = asyncio.create_task(view.astep(words=["b"]))
        await settle()
        assert not writer.done()
        if how == "close":
            stream.close()
            await writer
            stream.push(9, {"words": {"late": 1}})
            assert await rest(stream) == [ZSet({"a": 1})]
        else:
            del stream
            gc.collect()
            await writer
            assert view._subscribers.streams == []

    run(main())


@pytest.mark.parametrize("how", ["fails", "is cancelled", "returns", "never reads"])
def test_a_writer_does_not_wait_for_a_task_that_has_ended(how: str) -> None:
    """The task is kept, and with its traceback the stream: nothing collects it."""

    async def main() -> None:
        view, held = words(), []

        async def watcher() -> None:
            stream = view.changes(limit=1)
            held.append(stream)
            if how == "never reads":
                raise RuntimeError
            async for change in stream:
                assert change == ZSet({"a": 1})
                if how == "returns":
                    return
                if how == "fails":
                    raise RuntimeError

        task = asyncio.create_task(watcher())
        await settle()
        await view.astep(words=["a"])
        await settle()
        assert await view.astep(words=["b"]) == ZSet({"b": 1})
        if how == "is cancelled":
            task.cancel()
        for word in "cde":
            assert await view.astep(words=[word]) == ZSet({word: 1})
        assert task.done()
        assert held

    run(main())


def test_a_writer_that_waits_goes_on_when_the_last_reader_ends() -> None:
    async def main() -> None:
        view = words()
        stream, stop = view.changes(limit=1), asyncio.Event()

        async def reader() -> None:
            async for _ in stream:
                await stop.wait()
                raise RuntimeError

        readers = [asyncio.create_task(reader()) for _ in range(2)]
        await settle()
        for word in "abc":  # one for each reader, one that waits in the stream
            await view.astep(words=[word])
            await settle()
        writer = asyncio.create_task(view.astep(words=["d"]))
        await settle()
        assert not writer.done()
        stop.set()
        assert await writer == ZSet({"d": 1})
        assert all(task.done() for task in readers)

    run(main())


def test_what_a_task_has_left_unread_is_there_for_the_next() -> None:
    async def main() -> None:
        view = words()
        stream = view.changes(limit=1)

        async def first() -> Any:
            async for change in stream:
                return change
            return None

        reading = asyncio.create_task(first())
        await settle()
        await view.astep(words=["a"])
        assert await reading == ZSet({"a": 1})
        for word in "bc":  # nobody reads: they are added up
            await view.astep(words=[word])
        async for change in stream:
            assert change == ZSet({"b": 1, "c": 1})
            break
        await view.astep(words=["d"])
        writer = asyncio.create_task(view.astep(words=["e"]))
        await settle()
        assert not writer.done()
        view.close()
        with pytest.raises(ViewClosed):
            await writer

    run(main())


@pytest.mark.parametrize("how", ["with", "async with"])
def test_a_stream_ends_with_its_block(how: str) -> None:
    async def main() -> None:
        view = words()

        async def watch() -> None:
            if how == "with":
                with view.changes(limit=1) as stream:
                    await anext(stream)
                    raise RuntimeError
            async with view.changes(limit=1) as stream:
                await anext(stream)
                raise RuntimeError

        task = asyncio.create_task(watch())
        await settle()
        await view.astep(words=["a"])
        await settle()
        assert task.done()
        assert view._subscribers.streams == []
        for word in "bcd":
            await view.astep(words=[word])

    run(main())


def test_closing_the_view_wakes_the_writers_who_wait() -> None:
    async def main() -> None:
        view = words()
        stream = view.changes(limit=1)
        await view.astep(words=["a"])
        writer = asyncio.create_task(view.astep(words=["b"]))
        await settle()
        view.close()
        with pytest.raises(ViewClosed):
            await writer
        assert await rest(stream) == [ZSet({"a": 1})]

    run(main())


# ---- leaving ----


def test_a_loop_that_is_left_leaves_no_stream_behind() -> None:
    async def main() -> None:
        view = words()
        reader = asyncio.create_task(first(view))
        await settle()
        view.step(words=["a"])
        assert await reader == ZSet({"a": 1})
        gc.collect()
        assert view._subscribers.streams == []

    async def first(view: Any) -> Any:
        async for change in view.changes():
            return change
        return None

    run(main())


def test_a_reader_that_is_cancelled_while_it_waits_loses_nothing() -> None:
    async def main() -> None:
        view = words()
        stream = view.changes()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0.001)
        assert stream._wakeup._waiting == {}
        view.step(words=["a"])
        assert await anext(stream) == ZSet({"a": 1})

    run(main())


def test_a_reader_whose_loop_is_gone_harms_no_writer() -> None:
    view = words()
    stream = view.changes()
    loop = asyncio.new_event_loop()
    task = loop.create_task(anext(stream))
    loop.run_until_complete(settle())
    waiting = dict(stream._wakeup._waiting)
    task.cancel()
    loop.run_until_complete(settle())
    loop.close()
    stream._wakeup._waiting.update(waiting)
    assert waiting
    assert view.step(words=["a"]) == ZSet({"a": 1})


# ---- across threads ----


@pytest.mark.parametrize("limit", [1, 4])
def test_a_reader_in_a_loop_hears_writers_in_threads(limit: int) -> None:
    view = words()

    def write(start: int) -> None:
        for n in range(start, start + 100):
            view.step(words=[n])

    async def main() -> ZSet[Any]:
        total = ZSet[Any]()
        stream = view.changes(limit=limit)
        writers = [threading.Thread(target=write, args=(at,)) for at in (0, 100, 200)]
        for writer in writers:
            writer.start()
        async for change in stream:
            total += change
            if len(total) == 300:
                break
        for writer in writers:
            writer.join()
        return total

    assert run(main()) == ZSet.of(range(300)) == view.value


def test_a_writer_that_waits_in_one_loop_is_woken_by_a_reader_in_another() -> None:
    view = words()
    stream = view.changes(limit=1)
    got: list[Any] = []

    def read() -> None:
        async def main() -> None:
            async for change in stream:
                got.append(change)

        run(main())

    async def write() -> None:
        for n in range(50):
            await view.astep(words=[n])

    reader = threading.Thread(target=read)
    reader.start()
    run(write())
    view.close()
    reader.join(300)
    assert not reader.is_alive()
    assert got == [ZSet({n: 1}) for n in range(50)]
