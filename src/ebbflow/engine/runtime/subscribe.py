"""Subscribers to the changes of a view: callbacks, and streams that are read with `async for`.

Both hear of every epoch that changed something, in the order of epochs, after it is done.

*Callbacks* are called by the thread that stepped, before `step` returns. Each epoch is posted as a
*delivery* while the view is locked, and deliveries are made one by one, without that lock: a
callback may read the view, and may step it. A step made by a callback is an epoch like any other;
its delivery is made after the present one has reached everybody.

A *stream* has room for `limit` changes. When its reader is further behind, later changes are added
up into the last one: a slow reader gets fewer and larger changes, which together still are the
whole, and rows that came and went in the meantime are never seen. So a writer is never held up, and
memory is bounded by the rows that differ. A writer that would rather wait uses `View.astep`.

A stream has *readers*: the tasks that go through it with `async for`; before there is any, the task
that made it. When all of them have ended, no writer waits for room in it, whoever still holds it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Generic
from weakref import ref

from ebbflow.algebra.value import function_name
from ebbflow.engine.runtime.callers import under_way
from ebbflow.engine.runtime.rows import OutputDeltas
from ebbflow.errors import ChangeError, CompositionError, place
from ebbflow.typevars import C
from ebbflow.zset import add_into

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task

Show = Callable[[OutputDeltas], Any]


class Subscription:
    """A callback, and the name of the output it asked for; None for all outputs."""

    __slots__ = ("active", "callback", "name", "show")

    def __init__(self, callback: Callable[[Any], object], name: str | None, show: Show) -> None:
        self.callback = callback
        self.name = name
        self.show = show
        self.active = True


class Delivery:
    """The output changes of one epoch, and the subscriptions that are still to be called."""

    __slots__ = ("deltas", "epoch", "errors", "to")

    def __init__(self, epoch: int, deltas: OutputDeltas, to: list[Subscription]) -> None:
        self.epoch = epoch
        self.deltas = deltas
        self.to = to
        self.errors: list[BaseException] = []


class Subscribers:
    """The callbacks and streams of one view."""

    __slots__ = (
        "_current",
        "_deliveries",
        "_delivering",
        "_posted",
        "callbacks",
        "room",
        "streams",
    )

    def __init__(self) -> None:
        self.callbacks: list[Subscription] = []
        self.streams: list[ref[Changes]] = []
        self._deliveries: deque[Delivery] = deque()
        self._current: Delivery | None = None
        self._delivering = RLock()
        self._posted = 0
        self.room = Wakeup()

    def subscribe(
        self, callback: Callable[[Any], object], name: str | None, show: Show
    ) -> Callable[[], None]:
        """Call `callback` with every change from now on; what comes back ends that."""
        subscription = Subscription(callback, name, show)
        self.callbacks.append(subscription)

        def unsubscribe() -> None:
            subscription.active = False
            with suppress(ValueError):
                self.callbacks.remove(subscription)

        return unsubscribe

    def stream(self, limit: int, name: str | None, show: Show) -> Changes:
        """A stream of every change from now on, as long as somebody holds it."""
        stream = Changes(self, limit, name, show)
        self.streams.append(ref(stream, self._left))
        return stream

    def post(self, epoch: int, deltas: OutputDeltas) -> Delivery | None:
        """Put the changes of an epoch into all streams, and queue its delivery to callbacks, while
        the view is locked. Doing it twice is doing it once."""
        for reference in tuple(self.streams):
            stream = reference()
            if stream is not None:
                stream.push(epoch, deltas)
        to = [each for each in self.callbacks if each.name is None or each.name in deltas]
        if not to or epoch <= self._posted:
            return None
        if self._deliveries and self._deliveries[-1].epoch == epoch:
            return self._deliveries[-1]  # interrupted before it was noted
        delivery = Delivery(epoch, deltas, to)
        self._deliveries += (delivery,)  # not a call: an interrupt comes before it or after both
        self._posted = epoch
        return delivery

    def deliver(self, delivery: Delivery) -> None:
        """Call the callbacks of all deliveries up to this one; raise what they raised."""
        with self._delivering:
            if self._current is not None and under_way(Subscribers.deliver, self):
                delivery.errors = self._current.errors
                return
            try:
                while self._deliveries:
                    self._current = self._deliveries[0]
                    _hand_out(self._current)
                    del self._deliveries[0]
            finally:
                self._current = None
        if delivery.errors:
            raise _together(delivery.errors)

    @property
    def undelivered(self) -> list[int]:
        """The epochs that callbacks have not heard of."""
        return [delivery.epoch for delivery in tuple(self._deliveries)]

    def full(self) -> bool:
        """Whether some stream that is still read has no room for a further change."""
        streams = [reference() for reference in tuple(self.streams)]
        return any(each is not None and each.full and each.is_read for each in streams)

    def end(self) -> None:
        """End all streams, and forget all callbacks."""
        for reference in tuple(self.streams):
            stream = reference()
            if stream is not None:
                stream.close()
        self.callbacks.clear()

    def leave(self, stream: Changes) -> None:
        """Forget a stream whose reader wants no more."""
        self._left(next((r for r in tuple(self.streams) if r() is stream), None))

    def _left(self, reference: ref[Changes] | None) -> None:
        if reference in self.streams:
            self.streams.remove(reference)
        self.room.wake()


def answered(call: str, answer: object) -> None:
    """Refuse the coroutine that a callback gave: it would never run."""
    if isinstance(answer, Coroutine):
        answer.close()
        raise not_awaited(call)


def not_awaited(call: str) -> CompositionError:
    """Return the error for an async callback."""
    return CompositionError(
        f"{call}: it is async, and its coroutine would never run", created=place(),
        remedy="a plain function; or, of a view in this process, async for change in "
        "view.changes() in a task of your own",
    )  # fmt: skip


def _hand_out(delivery: Delivery) -> None:
    to = delivery.to
    while to:
        subscription = to.pop(0)  # first: whatever interrupts, nobody hears of an epoch twice
        if subscription.active:
            try:
                name = f"on_change({function_name(subscription.callback)})"
                answered(name, subscription.callback(subscription.show(delivery.deltas)))
            except BaseException as error:
                error.add_note(
                    f"raised by the on_change callback {function_name(subscription.callback)}, "
                    f"after epoch {delivery.epoch}, which is done and stays"
                )
                delivery.errors.append(error)


def _together(errors: list[BaseException]) -> BaseException:
    if len(errors) == 1:
        return errors[0]
    return BaseExceptionGroup("several on_change callbacks failed", errors)


class Changes(Generic[C]):
    """The changes of a view from when it was made on; read it with `async for`.

    It ends when the view is closed, after what is still waiting has been read. `close()` ends it
    for its reader alone; so do dropping it and, as it is a context manager, leaving its block:
    `with view.changes() as changes`.
    """

    __slots__ = (
        "__weakref__",
        "_buffer",
        "_ended",
        "_limit",
        "_lock",
        "_name",
        "_own",
        "_reading",
        "_seen",
        "_show",
        "_subscribers",
        "_tasks",
        "_wakeup",
    )

    def __init__(self, subscribers: Subscribers, limit: int, name: str | None, show: Show) -> None:
        if type(limit) is not int or limit < 1:
            raise ChangeError(
                "changes(limit=...): a stream needs room for one change at least",
                limit=limit,
                remedy="give an int that is 1 or more",
            )
        self._subscribers = subscribers
        self._limit = limit
        self._name = name
        self._show = show
        self._seen = 0  # the last epoch that is in it
        self._buffer: deque[OutputDeltas] = deque()
        self._own = False  # whether the last change in the buffer is ours to add to
        self._ended = False
        self._wakeup = Wakeup()
        self._lock = Lock()
        self._reading = False  # whether somebody has begun to read it
        self._tasks: list[ref[Task[Any]]] = []
        self._follow()

    def _follow(self) -> None:
        """Remember the task that makes this call, and wake writers when it ends."""
        task = _current_task()
        if task is not None and all(each() is not task for each in self._tasks):
            self._tasks.append(ref(task))
            room = self._subscribers.room
            task.add_done_callback(lambda _: room.wake())

    @property
    def is_read(self) -> bool:
        """Whether a task that reads this stream is still running; see the module."""
        tasks = [each() for each in self._tasks]
        return not tasks or any(task is not None and not task.done() for task in tasks)

    @property
    def full(self) -> bool:
        """Whether the next change would be added to one that is waiting."""
        return len(self._buffer) >= self._limit

    def push(self, epoch: int, deltas: OutputDeltas) -> None:
        """Take the changes of an epoch in. Doing it twice is doing it once."""
        if self._name is not None:
            if self._name not in deltas:
                return
            deltas = {self._name: deltas[self._name]}
        with self._lock:
            if epoch <= self._seen or self._ended:
                return
            if len(self._buffer) < self._limit:
                self._buffer += (deltas,)  # not a call: an interrupt comes before it or after both
                self._own, self._seen = False, epoch
            else:
                self._add_to_last(deltas)
                self._seen = epoch
        self._wakeup.wake()

    def _add_to_last(self, deltas: OutputDeltas) -> None:
        last = self._buffer.pop()
        total = dict(last) if self._own else {name: dict(delta) for name, delta in last.items()}
        for name, delta in deltas.items():
            add_into(total.setdefault(name, {}), delta)
            if not total[name]:
                del total[name]
        self._own = bool(total)
        if total:
            self._buffer.append(total)

    def _take(self) -> OutputDeltas | None:
        with self._lock:
            if not self._buffer:
                return None
            deltas = self._buffer.popleft()
        self._subscribers.room.wake()
        return deltas

    def __aiter__(self) -> Changes[C]:
        if not self._reading:
            self._reading, self._tasks = True, []
        self._follow()
        return self

    async def __anext__(self) -> C:
        while True:
            ended = self._ended
            deltas = self._take()
            if deltas is not None:
                shown: C = self._show(deltas)
                return shown
            if ended:
                raise StopAsyncIteration
            await self._wakeup.wait(lambda: bool(self._buffer) or self._ended)

    def close(self) -> None:
        """End the stream after the changes that are waiting."""
        self._ended = True
        self._subscribers.leave(self)
        self._wakeup.wake()

    def __enter__(self) -> Changes[C]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Changes[C]:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()


def _current_task() -> Task[Any] | None:
    """The task that runs here, if any; where asyncio was never loaded, there is none."""
    asyncio = sys.modules.get("asyncio")
    try:
        return None if asyncio is None else asyncio.current_task()
    except RuntimeError:  # there is no event loop
        return None


class Wakeup:
    """Tasks that wait, on any event loop, and are woken together from any thread."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[Future[None], AbstractEventLoop] = {}

    def wake(self) -> None:
        """Wake everybody who waits."""
        waiting = self._waiting
        while waiting:
            try:
                future, loop = waiting.popitem()
            except KeyError:  # somebody else was faster
                return
            try:
                loop.call_soon_threadsafe(_wake, future)
            except RuntimeError:  # its loop is closed: nobody waits there any more
                continue

    async def wait(self, ready: Callable[[], bool]) -> None:
        """Wait until `ready()`, which is asked now and at every `wake`."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        while True:
            future = loop.create_future()
            self._waiting[future] = loop
            try:
                if ready():
                    return
                await future
            finally:
                self._waiting.pop(future, None)


def _wake(future: Future[None]) -> None:
    if not future.done():
        future.set_result(None)
