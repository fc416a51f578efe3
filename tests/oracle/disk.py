"""A disk that forgets: files in memory, of which a crash keeps what a real disk would have to keep.

What was written and not synced may be gone after a crash, or half there; a file that was created,
renamed or removed may have its old name or its new one, until the folder is settled. `Disk` counts
every call that a crash could come before; at the one it was told it raises `Crash`, and from then
on does nothing. `after` gives the disk that is found when the machine is up again.
"""

from __future__ import annotations

import errno
from random import Random

from ebbflow.errors import InUse, Lost
from ebbflow.state.spine import Files, FileWriter


class Crash(BaseException):
    """The machine stopped."""


class Content:
    """A file: what was written, and how much of it is safe."""

    def __init__(self, data: bytes = b"", safe: int = 0) -> None:
        self.data = bytearray(data)
        self.safe = safe


class Disk(Files):
    """Files in memory. `crash_at` is the number of the call to stop before, `full_at` of the call
    to fail at for want of room; `full_for` many calls fail.
    """

    def __init__(self, crash_at: int = -1, full_at: int = -1, full_for: int = 1) -> None:
        self.now: dict[str, Content] = {}
        self.safe: dict[str, Content] = {}
        self.calls = 0
        self.settles: list[int] = []
        self.crash_at = crash_at
        self.full = range(full_at, full_at + full_for) if full_at >= 0 else range(0)
        self.locked = False

    def call(self, *, needs_room: bool = True) -> None:
        if self.crash_at >= 0 and self.calls >= self.crash_at:
            raise Crash(self.calls)
        at = self.calls
        self.calls += 1
        if needs_room and at in self.full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def after(self, how: str, dice: Random) -> Disk:
        """What is left: everything that may be "lost" is, or all is "kept", or by chance "torn"."""
        found = Disk()
        names = {"lost": [self.safe], "kept": [self.now], "torn": [self.now, self.safe]}[how]
        for name in sorted({name for side in names for name in side}):
            content = dice.choice(names).get(name)
            if content is None:
                continue
            data = bytes(content.data)
            if how == "lost":
                data = data[: content.safe]
            elif how == "torn":
                data = data[: dice.randint(content.safe, len(data))]
                if len(data) > content.safe and dice.random() < 0.5:
                    at = dice.randint(content.safe, len(data) - 1)
                    data = data[:at] + bytes(len(data) - at)
            found.now[name] = found.safe[name] = Content(data, len(data))
        return found

    # ---- what Files promises ----

    def names(self) -> list[str]:
        return sorted(self.now)

    def size(self, name: str) -> int | None:
        return len(self.now[name].data) if name in self.now else None

    def map(self, name: str) -> memoryview:
        return memoryview(bytes(self.now[name].data))

    def create(self, name: str) -> FileWriter:
        self.call()
        self.now[name] = Content()
        return DiskWriter(self, name)

    def publish(self, name: str, final: str) -> None:
        self.call()
        self.now[final] = self.now.pop(name)
        self.settle()

    def remove(self, name: str) -> None:
        self.call(needs_room=False)
        self.now.pop(name, None)

    def settle(self) -> None:
        self.settles.append(self.calls)
        self.call()
        self.safe = dict(self.now)

    def jot(self, name: str, text: str) -> None:
        self.call()
        self.now[name] = Content(text.encode())

    def replace(self, name: str, text: str) -> None:
        self.call()
        new = name not in self.safe
        self.call()
        self.now[name] = Content(text.encode(), len(text.encode()))
        if new:
            self.settle()

    def read(self, name: str) -> str | None:
        return bytes(self.now[name].data).decode("utf-8", "replace") if name in self.now else None

    def forget(self, view: memoryview) -> None:
        pass

    def lock(self) -> None:
        if self.locked:
            raise InUse("locked")
        self.locked = True

    def unlock(self) -> None:
        self.locked = False

    def require(self) -> None:
        if not self.locked:
            raise Lost("unlocked")


class DiskWriter(FileWriter):
    def __init__(self, disk: Disk, name: str) -> None:
        self.name = name
        self.at = 0
        self._disk = disk
        self._content = disk.now[name]

    def write(self, data: bytes) -> None:
        self._disk.call()
        self._content.data += data
        self.at += len(data)

    def sync(self) -> None:
        self._disk.call()
        self._content.safe = len(self._content.data)

    def close(self) -> None:
        pass
