"""Places: where state can be kept, and the files that are there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ebbflow.errors import CompositionError
from ebbflow.keywords import checked
from ebbflow.paths import OBJECTS, state_path
from ebbflow.state.spine.files import Files
from ebbflow.state.spine.folder import Folder
from ebbflow.state.spine.objects import ObjectStore

Place = str | os.PathLike[str] | ObjectStore | Files


@checked
def object_store(
    url: str,
    *,
    take_over: bool = False,
    lease: float = 60.0,
    patience: float = 60.0,
    cache: str | os.PathLike[str] | None = None,
    cache_size: int = 10 << 30,
    **options: Any,
) -> ObjectStore:
    """A folder of an object store, such as `s3://bucket/folder`, or of HDFS, such as
    `webhdfs://namenode:9870/folder`, to be given as a `path`, where the address alone is not
    enough. Needs the extra `objects`, for HDFS `durable` alone.

    - `take_over`: replace a process that has the state open; its next epoch fails, with `Lost`;
    - `lease`: after how many seconds without a sign of life a process that has the state open may
      be replaced without that;
    - `patience`: for how many seconds to ask a store that does not answer, before an epoch fails;
    - `cache`, `cache_size`: where objects that were read are kept on each machine, and how many
      bytes of them;
    - all others are options of `obstore`: `endpoint`, `region`, `access_key_id`,
      `secret_access_key`, `client_options` and more. What is not given comes from the environment.
      Those of HDFS are `user`, `delegation` (a token), `timeout` and `verify`.
      What is given travels with Spark's tasks; it is never written to the state.

    >>> object_store("s3://bucket/totals", endpoint="http://localhost:9000", secret_access_key="x")
    ObjectStore(url='s3://bucket/totals', take_over=False, lease=60.0, patience=60.0, cache=None, \
cache_size=10737418240)
    """
    found = state_path(url, "object_store")
    if isinstance(found, Path):
        raise CompositionError(
            f"object_store({url!r}): that is a folder of this machine",
            remedy=f'path={url!r}, or "s3://bucket/folder"; known are ' + ", ".join(OBJECTS),
        )
    if lease <= 0 or patience < 0 or cache_size < 0:
        raise CompositionError(
            f"object_store(lease={lease!r}, patience={patience!r}, cache_size={cache_size!r}): "
            "one of these is too little",
            remedy="more than 0 seconds, and a number of bytes",
        )
    where = None if cache is None else os.fspath(cache)
    return ObjectStore(found, options, take_over, lease, patience, where, cache_size)


def files_at(place: Place, permissions: int | None = None, what: str = "path") -> Files:
    """The files at a place."""
    if isinstance(place, Files):
        return place
    found = place if isinstance(place, ObjectStore) else state_path(place, what)
    if isinstance(found, Path):
        return Folder(found, permissions)
    if permissions is not None:
        raise CompositionError(
            f"permissions=0o{permissions:o} are those of a folder",
            remedy="who may read an object store is said there; without permissions=",
        )
    return (found if isinstance(found, ObjectStore) else ObjectStore(found)).files()
