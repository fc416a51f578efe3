"""Which stages of a compiled plan run on columns, and why the others do not.

Decided once, before the first epoch, stage by stage in the order in which they run. A stage runs on
columns when the rows that it reads and gives have columns (`ebbflow.kernel.words`), its functions
are traced and exact on arrays (`ebbflow.kernel.arithmetic`), and there is a kernel for it. An
arrangement does when all who read it are joins that do, and a join when both its arrangements do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ebbflow.engine.runtime.columnar.keyed import (
    ColumnArrangeStage,
    ColumnDistinctStage,
    ColumnJoinStage,
    ColumnKeyStage,
    ColumnSemiStage,
)
from ebbflow.engine.runtime.columnar.stages import (
    ColumnLinearStage,
    ColumnReduceStage,
    ColumnStage,
    key_values,
)
from ebbflow.engine.runtime.columnar.steps import (
    ChainOnColumns,
    KeyOnColumns,
    same_forms,
    traced,
)
from ebbflow.engine.runtime.stage import (
    ArrangeStage,
    FusedReduceStage,
    GroupByKeyStage,
    JoinStage,
    KeyedStage,
    LinearStage,
    SemiJoinStage,
    Stage,
)
from ebbflow.flow.plan import Distinct
from ebbflow.kernel.arithmetic import Computed, NotInColumns, fits, on_columns, row_on_columns
from ebbflow.kernel.fixed import UNIT, whole_units
from ebbflow.kernel.groups import (
    ADD,
    ADD_FLOAT,
    CELLS,
    COUNT,
    FLOAT_TOTAL,
    MEAN,
    TOTAL,
    TOTAL_OR_NULL,
    Addend,
    Groups,
    Result,
)
from ebbflow.kernel.words import Texts, WordForm, forms_of
from ebbflow.reducer import count, exact, mean, sum
from ebbflow.reducer.strategy import part_of_row
from ebbflow.state.index import Index


class Chosen(NamedTuple):
    """The stages of a program, those on columns in the place of their row stages; and for each
    stage that stays with rows, by slot, why."""

    stages: list[Stage]
    why: dict[int, str]


def on_columns_where_possible(
    stages: Sequence[Stage], types: dict[int, Any], texts: Texts
) -> Chosen:
    """Stages, and on columns where that can be; `types` are those of the rows of the inputs, by
    slot."""
    return _Chooser(stages, types, texts).chosen()


class _Chooser:
    def __init__(self, stages: Sequence[Stage], types: dict[int, Any], texts: Texts) -> None:
        self.stages, self.texts = stages, texts
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
            case JoinStage():
                return self._join(stage)
            case SemiJoinStage():
                return self._semi(stage)
            case KeyedStage() if isinstance(stage.node, Distinct):
                return self._distinct(stage)
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
            raise NotInColumns("its rows have fields that are no ints, floats, texts or dates")
        return row_type

    # ---- reduces ----

    def _reduce(self, stage: FusedReduceStage) -> ColumnStage:
        operator, texts = stage.operator, self.texts
        row_type = self._type(stage.reads[0])
        if type(operator).__name__ != "ReduceByKey":
            raise NotInColumns("its windows are added up by panes")
        before = ChainOnColumns(operator.before, row_type, texts)
        key = KeyOnColumns(operator.key, before.type, texts)
        made = forms_of(stage.type)
        if made is None:
            raise NotInColumns("its results have no columns")
        shape = operator.shape
        if shape.width != len(key.parts) or len(made) != shape.width + len(operator.parts):
            raise NotInColumns("its rows are not a key and results side by side")
        reducers = _Reducers(before.type, texts)
        for part in operator.parts:
            reducers.add(part.reducer)
        forms = [*key.forms, *reducers.forms]
        for form, declared in zip(forms, made, strict=True):
            if not fits(form, declared) or form.name != declared.name:
                raise NotInColumns(f"a {form.name} where a {declared.name} is declared")
        groups = Groups(len(key.parts), reducers.totals, reducers.results)

        def cells_of(keys: Any, cells: Any) -> dict[Any, Any]:
            found = key_values(key.forms, keys, texts)
            rows = [reducers.cell(each) for each in cells.tolist()]
            return dict(zip(found, rows, strict=True))

        return ColumnReduceStage(
            stage, texts, row_type, before, key, reducers.values, groups, cells_of
        )

    # ---- joins ----

    def _arrange(self, stage: Any) -> ColumnStage:
        row_type = self._type(stage.reads[0])
        readers = self.readers.get(stage.slot, ())
        if not all(isinstance(reader, (JoinStage, SemiJoinStage)) for reader in readers):
            raise NotInColumns("others than joins read it")
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
        assert isinstance(left, ColumnArrangeStage)
        assert isinstance(right, ColumnKeyStage)
        if not same_forms(left.key_of.forms, right.key_of.forms):
            raise NotInColumns("the keys of its sides are of different types")
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

    def _distinct(self, stage: KeyedStage) -> ColumnStage:
        row_type = self._type(stage.reads[0])
        if not stage.operator.bag:
            raise NotInColumns("the weights of its rows may be negative")
        return ColumnDistinctStage(stage, self.texts, row_type)

    def _joins(self) -> None:
        """Arrangements and joins go together: where one cannot, all it is connected to cannot."""
        changed = True
        while changed:
            changed = False
            for slot, stage in list(self.found.items()):
                lost: list[int] = []
                if isinstance(stage, ColumnKeyStage):
                    lost = [reader.slot for reader in self.readers.get(slot, ())]
                elif isinstance(stage, (ColumnJoinStage, ColumnSemiStage)):
                    lost = list(stage.reads)
                lost = [at for at in lost if at not in self.found]
                if lost:
                    self.why[slot] = f"a join that it is part of cannot: {self.why[lost[0]]}"
                    del self.found[slot]
                    changed = True
        for stage in self.found.values():
            if isinstance(stage, (ColumnJoinStage, ColumnSemiStage)):
                _connect(stage, stage.left, stage.right)


def _connect(*stages: ColumnStage) -> None:
    """Have the families of stages be one."""
    family = list({id(each): each for stage in stages for each in stage.family}.values())
    for each in family:
        each.family = family


class _Reducers:
    """The reducers of a group-by as totals and results of `Groups`."""

    def __init__(self, row_type: Any, texts: Texts) -> None:
        self.row_type, self.texts = row_type, texts
        self.values: list[Computed] = []
        self.totals: list[Addend] = []
        self.results: list[Result] = []
        self.forms: list[WordForm] = []
        self.width = 1
        self.spread: list[Callable[[list[int]], tuple[Any, ...]]] = []
        """For each reducer, its slots in the row path from the cells here."""

    def add(self, reducer: Any) -> None:
        made, inline = reducer.made, reducer.inline
        known = made is not None and made[0] in (count, sum, mean) and inline is not None
        if not known:
            raise NotInColumns(f"there is no kernel for {reducer!r}")
        if inline.of is None and made[0] is count:
            self.results.append(Result(TOTAL, 0))
            self.forms.append(WordForm("int"))
            return
        if inline.of is None:
            raise NotInColumns(f"{reducer!r} looks at the row as a whole")
        part = part_of_row(inline.of, self.row_type)
        value = on_columns(traced(part), [self.row_type], self.texts)
        at = len(self.values)
        self.values.append(value)
        counted = 0
        if value.form.optional:
            counted = self._total(COUNT, at)
        if made[0] is count:
            self.results.append(Result(TOTAL, counted))
            self.forms.append(WordForm("int"))
            self.spread.append(lambda cells: (cells[counted],))
            return
        if value.form.name == "float" and made[0] is sum:
            self._float_sum(value, at, counted)
            return
        if value.form.name not in ("int", "bool"):
            raise NotInColumns(f"there is no kernel for {reducer!r} of a {value.form.name}")
        total = self._total(ADD, at)
        how = MEAN if made[0] is mean else TOTAL_OR_NULL if value.form.optional else TOTAL
        self.results.append(Result(how, total, counted))
        self.forms.append(WordForm("float" if made[0] is mean else "int", value.form.optional))
        self.spread.append(lambda cells: (cells[counted], cells[total]))

    def _float_sum(self, value: Computed, column: int, counted: int) -> None:
        total = self._total(ADD_FLOAT, column)
        self.results.append(Result(FLOAT_TOTAL, total, counted))
        self.forms.append(WordForm("float", value.form.optional))
        self.spread.append(lambda cells: _exact_sum(cells[counted], *cells[total : total + 2]))

    def _total(self, how: int, column: int) -> int:
        """The cell in which something is added up."""
        at = self.width
        self.width += CELLS[how]
        self.totals.append(Addend(how, column))
        return at

    def cell(self, cells: list[int]) -> tuple[Any, ...]:
        """A cell of the row path: the size, then the slots of each reducer."""
        return (cells[0], *[slot for slots in self.spread for slot in slots(cells)])


def _exact_sum(size: int, high: int, low: int) -> tuple[int, Any]:
    """The slots of a sum of floats."""
    whole, scale = whole_units(high, low), UNIT
    spare = min(scale, (whole & -whole).bit_length() - 1) if whole else scale
    total = exact.Total(size, whole >> spare, scale - spare, size)
    return exact.spread(total if size else exact.NOTHING)
