"""Which stages of a compiled plan run on columns, and why the others do not.

Decided once, before the first epoch, stage by stage in the order in which they run. A stage runs on
columns when the rows that it reads and gives have columns (`ebbflow.kernel.words`), its functions
are traced and exact on words (`ebbflow.kernel.arithmetic`), and there is a kernel for it. An
arrangement does when all who read it are joins and reduces that do, and these when all that they
read do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ebbflow.engine.runtime.columnar.compared import (
    ColumnCompareStage,
    ColumnOneRowStage,
    ColumnUnequalStage,
)
from ebbflow.engine.runtime.columnar.few import FewRows
from ebbflow.engine.runtime.columnar.keyed import (
    ColumnArrangeStage,
    ColumnDistinctStage,
    ColumnGroupStage,
    ColumnJoinStage,
    ColumnKeyStage,
    ColumnSemiStage,
)
from ebbflow.engine.runtime.columnar.reducers import Reducers
from ebbflow.engine.runtime.columnar.stages import (
    ColumnLinearStage,
    ColumnReduceStage,
    ColumnStage,
    Family,
    key_values,
)
from ebbflow.engine.runtime.columnar.steps import (
    ChainOnColumns,
    KeyOnColumns,
    SideBySide,
    same_forms,
    traced,
)
from ebbflow.engine.runtime.columnar.top import ColumnTopStage
from ebbflow.engine.runtime.compare import CompareStage
from ebbflow.engine.runtime.stage import Stage
from ebbflow.engine.runtime.stages import (
    ArrangeStage,
    FusedReduceStage,
    GroupByKeyStage,
    GroupReduceStage,
    JoinStage,
    KeyedStage,
    LinearStage,
    SemiJoinStage,
)
from ebbflow.flow.plan import Distinct, TopK
from ebbflow.flow.plan.compare import CompareSemi, ScalarFilter
from ebbflow.kernel.arithmetic import NotInColumns
from ebbflow.kernel.expressions import condition_on_columns, fits, on_columns, row_on_columns
from ebbflow.kernel.forms import no_columns
from ebbflow.kernel.text_order import TextOrder
from ebbflow.kernel.words import Texts, forms_of
from ebbflow.state.index import Index

JOINING = ColumnJoinStage, ColumnSemiStage, ColumnCompareStage
"""Stages that read two arrangements."""


class Chosen(NamedTuple):
    """The stages of a program, those on columns in the place of their row stages; and for each
    stage that stays with rows, by slot, why."""

    stages: list[Stage]
    why: dict[int, str]


def on_columns_where_possible(
    stages: Sequence[Stage], types: dict[int, Any], texts: Texts, *, stored: bool = False
) -> Chosen:
    """Stages, and on columns where that can be; `types` are those of the rows of the inputs, by
    slot. With `stored`, only those whose state can be stored in columns as well."""
    return _Chooser(stages, types, texts, stored).chosen()


class _Chooser:
    def __init__(
        self, stages: Sequence[Stage], types: dict[int, Any], texts: Texts, stored: bool
    ) -> None:
        self.stages, self.texts, self.stored = stages, texts, stored
        self.order = TextOrder(texts)
        self.types = {**types, **{stage.slot: stage.type for stage in stages}}
        self.readers: dict[int, list[Stage]] = {}
        for stage in stages:
            for slot in stage.reads:
                self.readers.setdefault(slot, []).append(stage)
        self.found: dict[int, ColumnStage] = {}
        self.why: dict[int, str] = {}

    def chosen(self) -> Chosen:
        for stage in self.stages:
            self._try(stage.slot, lambda stage=stage: self._made(stage))  # type: ignore[misc]
        self._joins()
        return Chosen([self.found.get(stage.slot, stage) for stage in self.stages], self.why)

    def _try(self, slot: int, make: Callable[[], ColumnStage]) -> None:
        try:
            self.found[slot] = make()
        except NotInColumns as error:
            self.why[slot] = str(error)

    def _made(self, stage: Stage) -> ColumnStage:
        match stage:
            case LinearStage():
                return self._linear(stage)
            case FusedReduceStage():
                return self._reduce(stage)
            case ArrangeStage():
                return self._arrange(stage)
            case GroupByKeyStage():
                return self._arrange(stage)
            case GroupReduceStage():
                return self._reduce_groups(stage)
            case JoinStage():
                return self._join(stage)
            case SemiJoinStage():
                return self._semi(stage)
            case CompareStage() if isinstance(stage.node, CompareSemi):
                return self._unequal(stage, stage.node)
            case CompareStage() if isinstance(stage.node, ScalarFilter):
                return self._one_row(stage, stage.node)
            case KeyedStage() if isinstance(stage.node, Distinct):
                return self._distinct(stage)
            case KeyedStage() if isinstance(stage.node, TopK):
                return self._top(stage)
        raise NotInColumns(f"there is no kernel for {stage.label}")

    def _linear(self, stage: LinearStage) -> ColumnStage:
        types = [self._type(slot) for slot in stage.reads]
        pairs = zip(stage.chains, types, strict=True)
        chains = [ChainOnColumns(chain, row_type, self.texts) for chain, row_type in pairs]
        if not chains:
            raise NotInColumns("it reads nothing")
        made = forms_of(stage.type)
        if made is None or any(forms_of(chain.type) != made for chain in chains):
            raise NotInColumns("its parts have rows of different types")
        return ColumnLinearStage(stage, self.texts, chains, types)

    def _type(self, slot: int) -> Any:
        """The type of the rows of a slot, which have columns."""
        row_type = self.types[slot]
        if forms_of(row_type) is None:
            raise NotInColumns(no_columns(row_type))
        return row_type

    # ---- reduces ----

    def _reduce(self, stage: FusedReduceStage) -> ColumnStage:
        operator, texts = stage.operator, self.texts
        row_type = self._type(stage.reads[0])
        if type(operator).__name__ != "ReduceByKey":
            raise NotInColumns("its windows are added up by panes")
        before = ChainOnColumns(operator.before, row_type, texts)
        key = KeyOnColumns(operator.key, before.type, texts)
        reducers = self._reducers(stage, before.type, key)
        groups = reducers.groups(len(key.parts))

        def cells_of(keys: Any, cells: Any) -> dict[Any, Any]:
            found = key_values(key.forms, keys, texts)
            rows = [reducers.cell(each) for each in cells.tolist()]
            return dict(zip(found, rows, strict=True))

        few = FewRows(row_type, operator.before, operator.key, key.forms, reducers.parts, texts)
        values, stored = SideBySide(reducers.values), reducers.stored
        return ColumnReduceStage(
            stage, texts, row_type, before, key, values, groups, cells_of, stored, few
        )

    def _reduce_groups(self, stage: GroupReduceStage) -> ColumnStage:
        arranged = self.found.get(stage.reads[0])
        if arranged is None:
            raise NotInColumns(self.why[stage.reads[0]])
        assert isinstance(arranged, ColumnKeyStage)
        reducers = self._reducers(stage, arranged.before.type, arranged.key_of)
        return ColumnGroupStage(stage, self.texts, arranged, reducers)

    def _reducers(self, stage: Any, row_type: Any, key: SideBySide) -> Reducers:
        """The reducers of a stage, whose results have to be of the types that are declared."""
        made, shape, parts = forms_of(stage.type), stage.operator.shape, stage.operator.parts
        if made is None:
            raise NotInColumns(f"of its results, {no_columns(stage.type)}")
        if shape.width != len(key.parts) or len(made) != shape.width + len(parts):
            raise NotInColumns("its rows are not a key and results side by side")
        reducers = Reducers(row_type, self.texts, self.order)
        for part in parts:
            reducers.add(part)
        for form, declared in zip([*key.forms, *reducers.forms], made, strict=True):
            if not fits(form, declared) or form.encoding != declared.encoding:
                raise NotInColumns(f"a {form.name} where a {declared.name} is declared")
        return reducers

    # ---- joins ----

    def _arrange(self, stage: Any) -> ColumnStage:
        row_type = self._type(stage.reads[0])
        readers = self.readers.get(stage.slot, ())
        known = JoinStage, SemiJoinStage, GroupReduceStage, CompareStage
        if not all(isinstance(reader, known) for reader in readers):
            raise NotInColumns("others than joins and reduces read it")
        before = ChainOnColumns(stage.before, row_type, self.texts)
        key = KeyOnColumns(stage.key, before.type, self.texts)
        if stage.index is None:
            return ColumnKeyStage(stage, self.texts, row_type, before, key)
        if type(stage.index) is not Index:
            raise NotInColumns("its rows are in order")
        return ColumnArrangeStage(stage, self.texts, row_type, before, key)

    def _sides(self, stage: Stage) -> list[Any]:
        """The stages that arrange both sides of a join."""
        sides = [self.found.get(slot) for slot in stage.reads]
        for slot, side in zip(stage.reads, sides, strict=True):
            if side is None:
                why = self.why.get(slot, "")
                raise NotInColumns(f"the rows of a side are not in columns: {why}")
        left, right = sides
        assert isinstance(left, ColumnKeyStage)
        assert isinstance(right, ColumnKeyStage)
        if not same_forms(left.key_of.forms, right.key_of.forms):
            raise NotInColumns("the keys of its sides are of different types or scales")
        return [left, right]

    def _join(self, stage: JoinStage) -> ColumnStage:
        left, right = self._sides(stage)
        node: Any = stage.node
        types = [left.before.type, right.before.type]
        made = row_on_columns(traced(node.merge), types, node.type, self.texts)
        after = ChainOnColumns(stage.after, node.type, self.texts)
        return ColumnJoinStage(stage, self.texts, left, right, made, after, stage.one_to_one)

    def _semi(self, stage: SemiJoinStage) -> ColumnStage:
        left, right = self._sides(stage)
        node: Any = stage.node
        if not node.right.bag:
            raise NotInColumns("the weights of its right side may be negative")
        return ColumnSemiStage(stage, self.texts, left, right, node.anti)

    def _unequal(self, stage: CompareStage, node: CompareSemi) -> ColumnStage:
        left, right = self._compared(stage, node)
        if [each.sign for each in node.where] != ["!="]:
            raise NotInColumns(f"there is no kernel for {' and '.join(map(str, node.where))}")
        of = node.where[0]
        values = [
            on_columns(traced(fn), [side.before.type], self.texts)
            for fn, side in ((of.left, left), (of.right, right))
        ]
        if not same_forms([values[0].form], [values[1].form]):
            raise NotInColumns("the values that it compares are of different types")
        return ColumnUnequalStage(stage, self.texts, left, right, values, node.anti)

    def _one_row(self, stage: CompareStage, node: ScalarFilter) -> ColumnStage:
        left, right = self._compared(stage, node)
        if node.threshold is not None:
            raise NotInColumns(f"its rows are in the order of {node.threshold.left.text}")
        types = [left.before.type, right.before.type]
        test = condition_on_columns(traced(node.fn), types, self.texts)
        return ColumnOneRowStage(stage, self.texts, left, right, test)

    def _compared(self, stage: CompareStage, node: Any) -> list[Any]:
        """The stages that arrange both sides of rows that are compared."""
        if self.stored:
            raise NotInColumns("its state is not stored in columns")
        if not node.right.bag:
            raise NotInColumns("the weights of its right side may be negative")
        return self._sides(stage)

    def _distinct(self, stage: KeyedStage) -> ColumnStage:
        row_type = self._type(stage.reads[0])
        if not stage.operator.bag:
            raise NotInColumns("the weights of its rows may be negative")
        return ColumnDistinctStage(stage, self.texts, row_type)

    def _top(self, stage: KeyedStage) -> ColumnStage:
        return ColumnTopStage(stage, self.texts, self.order, self._type(stage.reads[0]))

    def _joins(self) -> None:
        """Arrangements and joins go together: where one cannot, all it is connected to cannot."""
        changed = True
        while changed:
            changed = False
            for slot, stage in list(self.found.items()):
                lost: list[int] = []
                if isinstance(stage, ColumnKeyStage):
                    lost = [reader.slot for reader in self.readers.get(slot, ())]
                elif isinstance(stage, (*JOINING, ColumnGroupStage)):
                    lost = list(stage.reads)
                lost = [at for at in lost if at not in self.found]
                if lost:
                    self.why[slot] = f"what it is part of cannot: {self.why[lost[0]]}"
                    del self.found[slot]
                    changed = True
        for stage in self.found.values():
            if isinstance(stage, JOINING):
                _connect(stage, stage.left, stage.right)
            elif isinstance(stage, ColumnGroupStage):
                _connect(stage, stage.arranged)


def _connect(*stages: ColumnStage) -> None:
    """Have the families of stages be one."""
    family = Family(*{each.slot: each for stage in stages for each in stage.family.stages}.values())
    for each in family.stages:
        each.family = family
