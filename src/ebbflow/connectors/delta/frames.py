"""A Delta table through a Spark session: rows and changes are DataFrames, and stay in Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ebbflow.connectors.delta.tables import FEED, GONE, Newest, Unavailable, VersionedTable
from ebbflow.errors import CheckError, Text

JAR = "io.delta:delta-spark_4.2_2.13:4.4.0"
_CONF = "spark.databricks.delta"


class SparkTable(VersionedTable):
    """A table at a path, a URL, or of a name in the catalog of the session."""

    def __init__(self, place: str, session: SparkSession) -> None:
        self.session = session
        path = "/" in place or "\\" in place or Path(place).is_dir()
        url = re.match(r"\w+://", place)
        self.place = place if url or not path else str(Path(place).absolute())
        self._quoted = f"delta.{_name(self.place)}" if path else place
        self._path = path
        self._properties: dict[str, str] = {}
        extensions = session.conf.get("spark.sql.extensions", "") or ""
        if "DeltaSparkSessionExtension" not in extensions:
            raise CheckError(
                "the Spark session cannot read Delta tables",
                table=Text(place),
                remedy=f"spark.jars.packages {JAR}, spark.sql.extensions "
                "io.delta.sql.DeltaSparkSessionExtension and spark.sql.catalog.spark_catalog "
                "org.apache.spark.sql.delta.catalog.DeltaCatalog, before the session is started",
            )

    # ---- reading ----

    def newest(self) -> Newest:
        (last,) = self.session.sql(f"DESCRIBE HISTORY {self._quoted} LIMIT 1").collect()
        detail = self.session.sql(f"DESCRIBE DETAIL {self._quoted}").collect()[0]
        self._properties = dict(detail["properties"] or {})
        return Newest(int(last["version"]), str(detail["id"]), self._at(last["version"]).columns)

    def _at(self, version: int) -> DataFrame:
        return self._loaded({"versionAsOf": version})

    def _loaded(self, options: dict[str, Any]) -> DataFrame:
        reader = self.session.read.format("delta").options(**options)
        return reader.load(self.place) if self._path else reader.table(self.place)

    def rows(self, version: int, columns: list[str]) -> Any:
        return self._at(version).select(*map(_name, columns))

    def changed(self, first: int, last: int, columns: list[str]) -> Any:
        between = {"startingVersion": first, "endingVersion": last}
        try:
            if self._tracked:
                found = self.session.read.options(**between).changes(self._quoted)
            else:
                found = self._loaded({"readChangeFeed": "true", **between})
            feed = found.select(*map(_name, [*columns, FEED]))
            return None if feed.isEmpty() else feed
        except PySparkException as error:
            said = str(error).partition("\n")[0]
            raise Unavailable(f"version {first} to {last} cannot be read: {said}") from error

    @property
    def _tracked(self) -> bool:
        """Whether what changes in the table is known from the numbers of its rows, and not from a
        change feed: Spark's own way to ask for changes, from 4.2 on."""
        on = "true"
        return (
            self._properties.get("delta.enableChangeDataFeed") != on
            and self._properties.get("delta.enableRowTracking") == on
            and self.session.conf.get(f"{_CONF}.changelogV2.enabled", "") == on
            and hasattr(self.session.read, "changes")
        )

    def any_rows(self, view: Any, name: str) -> bool:
        return not view.input(name).value.isEmpty()

    # ---- writing ----

    def exists(self) -> bool:
        if not self._path:
            return self.session.catalog.tableExists(self.place)
        try:
            return bool(self.session.sql(f"DESCRIBE DETAIL {self._quoted}").collect())
        except PySparkException:
            return False

    def epoch(self, writer: str) -> int | None:
        """What the history says. Delta itself leaves out an epoch that it has had (`txnVersion`),
        also where its history does not go back so far."""
        history = self.session.sql(f"DESCRIBE HISTORY {self._quoted}")
        mine = history.filter(history["userMetadata"].contains(json.dumps(writer)))
        found = [json.loads(each["userMetadata"]) for each in mine.select("userMetadata").collect()]
        return max((int(each["epoch"]) for each in found), default=None)

    def replace(self, rows: Any, writer: str, epoch: int) -> None:
        known = self.epoch(writer) if self.exists() else None
        again = known is not None and known >= epoch  # Delta leaves out an epoch that it has had
        self._write(rows, writer, epoch, "overwrite", again=again, overwriteSchema="true")

    def append(self, rows: Any, writer: str, epoch: int) -> None:
        self._write(rows, writer, epoch, "append")

    def _write(
        self, rows: DataFrame, writer: str, epoch: int, mode: str, *, again: bool = False,
        **how: str,
    ) -> None:  # fmt: skip
        once: dict[str, str | int] = {} if again else {"txnAppId": writer, "txnVersion": epoch}
        said = _said(writer, epoch)
        out = rows.write.format("delta").mode(mode).options(**how, **once, userMetadata=said)
        out.save(self.place) if self._path else out.saveAsTable(self.place)

    def merge(self, rows: Any, key: Sequence[str], writer: str, epoch: int) -> None:
        columns = [name for name in rows.columns if name != GONE]
        same = " AND ".join(f"t.{_name(name)} <=> s.{_name(name)}" for name in key)
        rest = [name for name in columns if name not in key]
        update = ", ".join(f"t.{_name(name)} = s.{_name(name)}" for name in rest)
        updated = f" WHEN MATCHED THEN UPDATE SET {update}" if rest else ""
        names = ", ".join(map(_name, columns))
        values = ", ".join(f"s.{_name(name)}" for name in columns)
        given = f"ebbflow_{abs(hash(writer))}"
        rows.createOrReplaceTempView(given)
        try:
            with self._committing(writer, epoch):
                self.session.sql(
                    f"MERGE INTO {self._quoted} t USING {given} s ON {same} "
                    f"WHEN MATCHED AND s.{GONE} THEN DELETE{updated} "
                    f"WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT ({names}) VALUES ({values})"
                ).collect()
        finally:
            self.session.catalog.dropTempView(given)

    @contextmanager
    def _committing(self, writer: str, epoch: int) -> Iterator[None]:
        """Have the session say whose commit the next one is, which Delta makes once."""
        said = {
            f"{_CONF}.write.txnAppId": writer,
            f"{_CONF}.write.txnVersion": str(epoch),
            f"{_CONF}.commitInfo.userMetadata": _said(writer, epoch),
        }
        before = {key: self.session.conf.get(key, None) for key in said}
        try:
            for key, value in said.items():
                self.session.conf.set(key, value)
            yield
        finally:
            for key, was in before.items():
                if was is None:
                    self.session.conf.unset(key)
                else:
                    self.session.conf.set(key, was)


def _said(writer: str, epoch: int) -> str:
    """What a commit says of who made it."""
    return json.dumps({"ebbflow": writer, "epoch": epoch})


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
