"""Rebuild: the state that a changed program has none of yet, computed in tasks.

What is new in a program is a first load of the rows that its inputs have: the same queries and
waves, which begin without state, and of which only the new parts are written. The rows of the
inputs are read from the state where they are, by tasks, so nothing comes to the driver. It is
staged in the store, and becomes part of it with the commit that opens the changed program; until
then, whatever is killed, the state is what it was.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from ebbflow.engine.spark.bulk.load import compute_again
from ebbflow.engine.spark.native.functions import is_overflow
from ebbflow.engine.spark.options import Options
from ebbflow.engine.spark.output.frames import stored
from ebbflow.engine.spark.table.schema import schema_of
from ebbflow.engine.spark.tasks.epochs import Epochs, InputChange
from ebbflow.engine.spark.tasks.replica import Replica
from ebbflow.engine.spark.tasks.transport import pack_program
from ebbflow.state.spine import Store

LARGE = 10
"""From so many times `small` rows of inputs on, tasks do it; the driver is faster with fewer."""


class Rebuilding:
    """Fills the parts of a program that have no state, in tasks where there are many rows."""

    def __init__(
        self, session: SparkSession, options: Options, replica: Replica, check: bool
    ) -> None:
        self.session, self.options, self.replica, self.check = session, options, replica, check

    def __call__(self, store: Store, new: set[str]) -> bool:
        """Stage the state of these parts; False when it is for the driver to do."""
        replica = self.replica
        kept = {name: state for name, state in replica.inputs.items() if state.keeps}
        sizes = {name: len(replica.part(state.holder).spine(store)) for name, state in kept.items()}
        if sum(sizes.values()) < LARGE * self.options.small:
            return False
        replica.detach()
        try:
            program = pack_program(replica, self.check)
            epochs = Epochs(self.session, program, replica, store, self.options.small)
            tasks = self.options.tasks(self.session)
            given = {
                name: InputChange(None, None, self._rows(epochs, name), size, added=True)
                for name, size in sizes.items()
                if size
            }
            compute_again(epochs, given, tasks, new)
        except Exception as error:
            store.rollback()
            if not is_overflow(error):
                raise
            return False
        finally:
            replica.attach(store, limited=True)
        return True

    def _rows(self, epochs: Epochs, name: str) -> DataFrame:
        source = self.replica.plan.sources[name]
        schema = schema_of(source.type, weight=True)
        job = epochs.job(self.options.tasks(self.session))
        return stored(self.session, job, name, schema)
