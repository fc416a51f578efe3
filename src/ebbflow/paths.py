"""Paths: what may be given as one, what a name becomes in one, and who may read what is there.

A *path* is a folder of this machine, or of one that it shares: text, or a `file:` URI. State may
also be on an object store, `s3://bucket/folder`, or on HDFS, `webhdfs://namenode:9870/folder`.
Other URIs are refused, as nothing here can write to where they point. A *name*, such as that of an
output, may be any text; only `file_name` makes part of a path of it, so that no name leads anywhere
else.

*Permissions* are those of folders, as `chmod` has them: 0o700, the owner alone, unless others are
let in. A file has the same without the right to execute. What is made here has exactly these,
whatever the umask is; what is there already keeps its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from urllib.parse import unquote_to_bytes

from ebbflow.errors import CompositionError, Text

PRIVATE = 0o700
"""The permissions of folders for which nobody said otherwise."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
_LONGEST = 120
_MODES = frozenset(
    owner | group << 3 | other for owner in [0o700] for group in (0, 5, 7) for other in (0, 5, 7)
)


def local_path(path: str | os.PathLike[str], what: str = "path", remedy: str = "") -> Path:
    """A path that was given, as an absolute one of this machine.

    >>> local_path("file:///data/my%20state"), local_path("state").is_absolute()
    (PosixPath('/data/my state'), True)
    >>> local_path("s3a://bucket/state")
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: path='s3a://bucket/state' is not a folder of this machine
        scheme     s3a
        try        a folder of this machine, or one that it shares; for a folder whose name has a \
colon, "./s3a://bucket/state"
    """
    given = path
    try:
        text = os.fsdecode(os.fspath(path))
    except TypeError:
        raise CompositionError(
            f"{what}={given!r} must be a path, not {type(given).__name__}",
            remedy=f'{what}="state/", or another folder',
        ) from None
    if not text or "\0" in text:
        raise CompositionError(
            f"{what}={text!r} names no folder", remedy=f'{what}="state/", or another folder'
        )
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(text).absolute()
    if scheme[1].lower() == "file":
        return _of_uri(text, text[scheme.end() :], what)
    raise CompositionError(
        f"{what}={text!r} is not a folder of this machine",
        scheme=Text(scheme[1]),
        remedy=(remedy or "a folder of this machine, or one that it shares")
        + f'; for a folder whose name has a colon, "./{text}"',
    )


OBJECTS = ("s3", "gs", "az", "webhdfs", "swebhdfs")
"""The schemes of object stores, and of HDFS by HTTP and HTTPS."""
_SAME = {
    "s3a": "s3://bucket/folder", "s3n": "s3://bucket/folder", "gcs": "gs://bucket/folder",
    "azure": "az://bucket/folder", "abfs": "az://bucket/folder", "abfss": "az://bucket/folder",
    "hdfs": "webhdfs://namenode:9870/folder",
}  # fmt: skip


def state_path(path: str | os.PathLike[str], what: str = "path") -> Path | str:
    """Where state is to be kept: a folder of this machine, or the address of one on an object
    store.

    >>> state_path("s3://bucket/totals/"), state_path("file:///data/state")
    ('s3://bucket/totals', PosixPath('/data/state'))
    >>> state_path("hdfs://cluster/state")
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: path='hdfs://cluster/state': state cannot be kept on hdfs:
        scheme     hdfs
        try        "webhdfs://namenode:9870/folder", which needs no jar; for a folder whose name \
has a colon, "./hdfs://cluster/state"
    """
    text = path if isinstance(path, str) else ""
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    if scheme not in OBJECTS:
        if scheme in ("", "file") or found is None:
            return local_path(path, what)
        other = _SAME.get(scheme)
        raise CompositionError(
            f"{what}={text!r}: state cannot be kept on {scheme}:",
            scheme=Text(found[1]),
            remedy=(
                f'"{other}", which needs no jar'
                if other
                else "a folder of this machine, or one that it shares; or s3://bucket/folder, "
                "gs://, az:// or webhdfs://"
            )
            + f'; for a folder whose name has a colon, "./{text}"',
        )
    empty, also, *parts = [*text[len(scheme) + 1 :].rstrip("/").split("/"), "", ""]
    parts = parts[:-2]
    if empty or also or not parts or {"", ".", ".."} & set(parts):
        raise CompositionError(
            f"{what}={text!r} is not a folder of an object store",
            remedy=f"{scheme}://{'namenode' if 'hdfs' in scheme else 'bucket'}/folder",
        )
    return f"{scheme}://{'/'.join(parts)}"


def _of_uri(text: str, rest: str, what: str) -> Path:
    if rest.startswith("//"):
        host, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        if host not in ("", "localhost"):
            raise CompositionError(
                f"{what}={text!r} is not a folder of this machine",
                host=Text(host),
                remedy=f"file:///{host}/... has three slashes, where a path of this machine begins",
            )
    found = os.fsdecode(unquote_to_bytes(rest))
    if not found or "\0" in found:
        raise CompositionError(f"{what}={text!r} names no folder", remedy="file:///data/state")
    return Path(found).absolute()


# ---- names ----


def file_name(name: str) -> str:
    """A file name for any name: another one for each, and always the same for one.

    Letters, digits, `_` and `-` of ASCII stay; everything else is escaped as in URIs, and so is an
    underscore at the beginning, as Spark takes such files for hidden ones. What would be too long
    ends in a hash.

    >>> file_name("totals"), file_name("../up"), file_name(""), file_name("_a.b")
    ('totals', '%2E%2E%2Fup', '%', '%5Fa%2Eb')
    """
    raw = name.encode("utf-8", "surrogatepass")
    made = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw) or "%"
    if made[0] == "_" or _DEVICES.fullmatch(made):
        made = f"%{ord(made[0]):02X}{made[1:]}"
    if len(made) > _LONGEST:
        return f"{made[: _LONGEST - 33]}~{sha256(raw).hexdigest()[:32]}"
    return made


def file_names(names: Iterable[str], what: str, remedy: str) -> dict[str, str]:
    """A file name for each of some names that are to be in one folder. Those that a file system
    may take for one, as it does not tell `a` from `A`, are refused.

    >>> file_names(["by city", "total"], "write", "other names")
    {'by city': 'by%20city', 'total': 'total'}
    """
    found = {name: file_name(name) for name in names}
    seen: dict[str, str] = {}
    for name, made in found.items():
        if seen.setdefault(made.lower(), name) != name:
            raise CompositionError(
                f"{what}: {seen[made.lower()]!r} and {name!r} would be one folder where a file "
                "system does not tell capitals from small letters",
                remedy=remedy,
            )
    return found


# ---- permissions ----


def checked_permissions(permissions: int | None) -> int | None:
    """Permissions that were given, if they can be those of a folder that we write to.

    >>> checked_permissions(0o2770) == 0o2770
    True
    >>> checked_permissions(0o640)
    Traceback (most recent call last):
    ebbflow.errors.CompositionError: permissions=0o640 are not those of a folder that can be used
        try        0o700 for the owner alone, 0o750 for a group that reads, 0o770 for one that \
writes
    """
    if permissions is None or (type(permissions) is int and permissions & ~0o2000 in _MODES):
        return permissions
    shown = f"0o{permissions:o}" if type(permissions) is int else repr(permissions)
    raise CompositionError(
        f"permissions={shown} are not those of a folder that can be used",
        remedy="0o700 for the owner alone, 0o750 for a group that reads, 0o770 for one that writes",
    )


def of_folders(file_mode: int) -> int:
    """The permissions of folders beside files that have these.

    >>> of_folders(0o640) == 0o750
    True
    """
    return file_mode & 0o777 | (file_mode & 0o444) >> 2


def make_folder(path: Path, permissions: int = PRIVATE) -> None:
    """Make a folder, unless it is there."""
    try:
        os.mkdir(path, PRIVATE)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        if permissions != PRIVATE:
            _allow(path, permissions)


def make_folders(path: Path, permissions: int = PRIVATE) -> None:
    """Make a folder, and those that lead to it, as far as they are not there."""
    for folder in (*reversed(path.parents), path):
        if not folder.is_dir():
            make_folder(folder, permissions)


def open_file(path: Path, flags: int, permissions: int | None = PRIVATE) -> int:
    """Open a file to write it, as `os.open` does; made if need be, and never behind a link. Without
    permissions, one that is there keeps its own."""
    file = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE & 0o666)
    if permissions is not None and (os.fstat(file).st_mode ^ permissions) & 0o666:
        with suppress(PermissionError):  # it is another's, who let us write to it
            os.fchmod(file, permissions & 0o666)
    return file


def settle(path: Path) -> None:
    """Have what was written to a file, or of a folder the names in it, on the disk itself."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def allow_all(folder: Path, permissions: int) -> None:
    """Give a folder that others have filled, and all that is in it, these permissions."""
    for base, folders, files in os.walk(folder):
        for each in folders:
            _allow(Path(base, each), permissions)
        for each in files:
            os.chmod(Path(base, each), permissions & 0o666)
    _allow(folder, permissions)


def _allow(folder: Path, permissions: int) -> None:
    inherited = os.stat(folder).st_mode & 0o2000
    os.chmod(folder, permissions | inherited)


def own_cache() -> str:
    """A folder for cached files that no other user can write to."""
    path = Path(gettempdir(), f"ebbflow-{os.getuid()}")
    with suppress(OSError):
        make_folder(path)
        found = os.lstat(path)
        if found.st_uid == os.getuid() and found.st_mode & 0o170077 == 0o040000:
            return str(path)
    return mkdtemp(prefix="ebbflow-")
