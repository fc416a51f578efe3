"""A connection to PostgreSQL that is made again when it was lost.

What is done on it is a function of the connection that may be called again: it reads, or is one
transaction that finds out whether it has happened.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

from ebbflow.errors import (
    CheckError,
    DatabaseError,
    Text,
    cause_of,
    error_text,
    install,
    is_redacted,
)

if TYPE_CHECKING:
    from psycopg import Connection

T = TypeVar("T")
WAIT = 30.0
"""How many seconds a lost connection is tried again, unless told."""
_SETTINGS = (
    "SET datestyle TO ISO; SET timezone TO 'UTC'; SET intervalstyle TO postgres; "
    "SET extra_float_digits TO 1; SET bytea_output TO hex"
)
"""So that texts of values are written as they are read here, whatever the server's settings."""


class Link:
    """A connection that is made when it is needed, and again when it was lost: for `wait` seconds,
    unless the server is there and refuses it."""

    def __init__(self, dsn: str, wait: float) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise CheckError("PostgreSQL needs psycopg", remedy=install("postgres")) from error
        self.dsn, self.wait = dsn, wait
        self._connection: Connection[Any] | None = None

    def do(self, work: Callable[[Connection[Any]], T], what: str) -> T:
        """What a function of the connection gives; called again where the connection was lost."""
        import psycopg

        end, pause = monotonic() + self.wait, 0.05
        while True:
            try:
                return work(self._connected())
            except (psycopg.OperationalError, psycopg.errors.ObjectInUse) as error:
                self.close()
                if _is_refusal(error) or monotonic() + pause > end:
                    raise DatabaseError(
                        f"{what}: PostgreSQL cannot be used: {error_text(error)}",
                        remedy="a server that runs, and where it is; or wait=...",
                    ) from cause_of(error)
            except psycopg.Error as error:
                self.close()
                said = type(error).__name__  # the rest may show values of rows
                detail = Text("")
                if not is_redacted():
                    said = error.diag.message_primary or str(error)
                    detail = Text(error.diag.message_detail or error.diag.context or "none")
                raise DatabaseError(
                    f"{what}: PostgreSQL says: {said}",
                    detail=detail,
                    remedy=_REMEDIES.get(error.sqlstate or "", "see what it says"),
                ) from cause_of(error)
            except BaseException:
                self.close()
                raise
            sleep(pause)
            pause = min(2 * pause, 1.0)

    def _connected(self) -> Connection[Any]:
        import psycopg

        if self._connection is None:
            self._connection = psycopg.connect(
                self.dsn, autocommit=True, client_encoding="utf8", prepare_threshold=None
            )
            self._connection.execute(_SETTINGS)
        return self._connection

    def close(self) -> None:
        """Let go of the connection; the next thing to do makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


_PASSING = ("starting up", "accepting", "shutting down", "recovery", "terminating",
            "too many", "reserved", "in use", "is active")  # fmt: skip
"""What a server says that will answer later."""


def _is_refusal(error: Exception) -> bool:
    """Whether a server has answered, and will not answer otherwise: a password, a database.

    >>> _is_refusal(Exception('FATAL: role "x" does not exist')), _is_refusal(Exception("no route"))
    (True, False)
    """
    text = str(error)
    return "FATAL" in text and not any(each in text for each in _PASSING)


_REMEDIES = {
    "42P01": "create the table, or create=True",
    "42P10": "a unique index on the columns of the key, or create=True for a new table",
    "42703": "a column for every field of the rows, or create=True for a new table",
    "42704": "an operator for this type in a key; jsonb, and not json, can be compared",
    "42883": "jsonb, and not json, for a column whose values have to be compared",
    "42501": "a user that may do this: GRANT, or ALTER ROLE ... REPLICATION",
    "22003": "numeric, and not bigint, as the type of that column; it may be Decimal in the row",
    "23502": "NOT NULL taken off that column, or a value for every row",
    "55000": "wal_level = logical in postgresql.conf; a slot that was lost begins anew with "
    "begin_again=True",
}
"""What to do, by the code of an error."""


def quoted(name: str) -> str:
    """The name of a table or a column as SQL has it, with its schema where it has one.

    >>> print(quoted("public.orders"), quoted('say "n"'))
    "public"."orders" "say ""n\"\"\"
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


_TIMES = ("date", "timestamp", "timestamptz")


def keep_texts(cursor: Any) -> None:
    """Let a cursor return the text of a time that Python cannot represent, such as infinity.

    The reader of the row can then name the column and the value.
    """
    from psycopg import DataError
    from psycopg.adapt import Loader
    from psycopg.pq import Format

    def keeping(loader: Any) -> type[Loader]:
        class TextLoader(Loader):
            def __init__(self, oid: int, context: Any = None) -> None:
                super().__init__(oid, context)
                self._load = loader(oid, context).load

            def load(self, data: Any) -> Any:
                try:
                    return self._load(data)
                except DataError:
                    return bytes(data).decode()

        return TextLoader

    for name in _TIMES:
        oid = cursor.adapters.types[name].oid
        loader = cursor.adapters.get_loader(oid, Format.TEXT)
        cursor.adapters.register_loader(oid, keeping(loader))
