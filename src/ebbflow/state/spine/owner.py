"""Owner: who may write to a state on an object store.

A store has no locks; it has puts that only replace what was seen. So the object `owner` says who
may write, by a token that nobody else has, and with a *generation* that grows whenever it is
another. Whoever opens the state puts itself there, if

- there is no owner, or the last one has closed the state;
- the owner has not renewed for as long as its *lease* is. It does so three times as often, and is
  gone when it does not. How long ago that was the store's own clock says;
- the owner was a process of this machine that is no more;
- it is told to take over.

An owner looks whether it still is, before every publish: one that was replaced fails with `Lost`
and has changed nothing. Should the other come between the look and the put, then the put wins or
that of the other, as both are for one name, and the loser fails; what was acknowledged stays.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any
from uuid import uuid4
from weakref import ref

from ebbflow.errors import InUse, Lost, StateError, Text
from ebbflow.state.spine.bucket import Objects, Version
from ebbflow.state.spine.cache import boot_of_machine, is_alive

OWNER = "owner"
CLOCK = "clock-"
TRIES = 5


class Owner:
    """One who writes to a state, or would like to."""

    def __init__(self, bucket: Objects, lease: float) -> None:
        self.bucket, self.lease = bucket, lease
        self.token, self.generation = "", 0
        self._version: Version | None = None
        self._process = 0
        self._renewals = 0
        self._by: dict[str, Any] | None = None
        """Who has replaced this one."""
        self._changing = Lock()
        self._stop = Event()

    # ---- becoming it ----

    def acquire(self, *, take_over: bool) -> None:
        """Be the owner from now on, or raise InUse."""
        try:
            self._acquire(take_over)
        except BaseException:
            self.token = ""
            raise

    def _acquire(self, take_over: bool) -> None:
        self.token, self._process = uuid4().hex, os.getpid()
        self._by, self._renewals = None, 0
        for _ in range(TRIES):
            found = self._read()
            if found is not None:
                said, known = found
                if said["owner"] and not take_over:
                    self._require_gone(said, known)
                self.generation, self._version = said["generation"] + 1, known
            else:
                self.generation, self._version = 1, None
            if self._put(self._said()):
                self._stop = Event()
                arguments = ref(self), self._stop, self.lease / 3
                Thread(target=_renew, args=arguments, name="ebbflow-lease", daemon=True).start()
                return
        raise InUse(
            "others are opening this state at the same time",
            path=self.bucket.url,
            remedy="open it in one place",
        )

    def _require_gone(self, said: dict[str, Any], known: Version) -> None:
        """Raise InUse unless the owner is gone for good."""
        here = said["host"] == socket.gethostname() and said["boot"] == boot_of_machine()
        if here and not is_alive(said["process"]):
            return
        assert known.modified is not None
        age = (self._now() - known.modified).total_seconds()
        if age <= said["lease"]:
            raise InUse(
                "this state is open already",
                path=self.bucket.url,
                process=said["process"],
                host=Text(said["host"]),
                remedy="close the other view; one that is gone can be replaced in "
                f"{said['lease'] - age:.0f} seconds, or now by object_store(..., take_over=True)",
            )

    def _now(self) -> Any:
        """The time, as the store has it."""
        name = f"{CLOCK}{self.token}"
        self.bucket.put(name, b"", 0)
        try:
            found = self.bucket.head(name)
        finally:
            with suppress(OSError):
                self.bucket.delete([name])
        if found is None or found.modified is None:
            raise StateError(
                "the store does not show an object that was put",
                path=self.bucket.url,
                remedy="a store in which what was put is there",
            )
        return found.modified

    def _said(self) -> dict[str, Any]:
        return {
            "owner": self.token, "generation": self.generation, "process": self._process,
            "host": socket.gethostname(), "boot": boot_of_machine(), "lease": self.lease,
            "renewals": self._renewals,
        }  # fmt: skip

    # ---- being it ----

    def require(self) -> None:
        """Raise Lost unless this is the owner, as far as that is known."""
        if self._process != os.getpid():
            raise Lost(
                "this state was opened by another process, from which this one was forked",
                path=self.bucket.url,
                opened=self._process,
                this=os.getpid(),
                remedy="step it in the process that opened it; open it here after closing it there",
            )
        if not self.token:
            raise Lost("this state is closed", path=self.bucket.url, remedy="open it again")
        if self._by is not None:
            raise Lost(
                "another process has taken over this state",
                path=self.bucket.url,
                process=self._by.get("process"),
                host=Text(self._by.get("host", "unknown")),
                remedy="close this; what it has acknowledged is there, and nothing else",
            )

    def confirm(self) -> None:
        """Raise Lost unless this is the owner; the store is asked."""
        self.require()
        found = self._read()
        if found is None or found[0]["owner"] != self.token:
            self._by = {} if found is None else found[0]
            self.require()

    def renew(self) -> None:
        """Let others see that the owner is there."""
        with self._changing:
            if self.token and self._by is None and self._process == os.getpid():
                self._renewals += 1
                if not self._put(self._said()):
                    found = self._read()
                    self._by = {} if found is None else found[0]

    def release(self) -> None:
        """Let another be the owner."""
        self._stop.set()
        if self._process != os.getpid():
            return
        with self._changing:
            if self.token and self._by is None:
                with suppress(OSError, StateError):
                    self._put({"owner": "", "generation": self.generation})
            self.token = ""

    # ---- the object ----

    def _read(self) -> tuple[dict[str, Any], Version] | None:
        found = self.bucket.get(OWNER)
        if found is None:
            return None
        try:
            said = json.loads(found[0])
            if not isinstance(said["generation"], int) or not isinstance(said["owner"], str):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise StateError(
                f"the object {OWNER!r} is something else",
                path=self.bucket.url,
                remedy="a folder for this state alone",
            ) from None
        return said, found[1]

    def _put(self, said: dict[str, Any]) -> bool:
        """Replace what was seen last; whether that was still there. Where an answer was lost, now
        or before, what is there is this one's own."""
        content = json.dumps(said).encode()
        for _ in range(TRIES):
            try:
                if self._version is None:
                    self._version = self.bucket.create(OWNER, content, len(content))
                else:
                    over = self._version
                    self._version = self.bucket.put(OWNER, content, len(content), over=over)
                return True
            except OSError as error:
                found = self._read()
                if found is not None and found[0] == said:
                    self._version = found[1]
                    return True
                if not isinstance(error, FileExistsError):
                    raise
                if found is None or found[0]["owner"] != self.token:
                    return False
                self._version = found[1]
        return False


def _renew(owner: ref[Owner], stop: Event, every: float) -> None:
    while not stop.wait(every):
        known = owner()
        if known is None:
            return
        with suppress(OSError, StateError):  # the store does not answer: the next time
            known.renew()
        del known
