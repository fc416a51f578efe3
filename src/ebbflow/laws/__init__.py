"""Laws as values, and a checker that finds the smallest case which breaks one.

    check(thing)                every law that the thing owes
    equivalent(a, b)            two processors say the same
    independent(a, split)       a processor may be partitioned
    judge(reducer)              the verdict on a reducer: may its rows be taken back?
    prove(reducer, int)         a proof, for every row (needs z3: `pip install '.[prove]'`)

Needs Hypothesis: `pip install '.[laws]'`. Every law is also a value with `test` and `holds`.
"""

from ebbflow.laws.check import check, close, equivalent, independent, judge, lawful, laws_of
from ebbflow.laws.generators import AGAIN, ANY_ORDER, ONE_TICK, WEIGHTS_ADD
from ebbflow.laws.law import Law, Report
from ebbflow.laws.operators import (
    ACCEPTS,
    CUT_CHANGES,
    FROM_SCRATCH,
    INIT,
    OUTPUT_VALID,
    RUNS_ALIKE,
    RUNS_APART,
    STEP,
)
from ebbflow.laws.prove import Proof, prove
from ebbflow.laws.reducers import (
    ADD_COMMUTES,
    ADD_KEEPS,
    ALWAYS_ANSWERS,
    FOLD_ANY_ORDER,
    FOLD_REPEATS,
    INCREMENTAL,
    MERGE_KEEPS,
    MERGES,
    REMOVE_ADD_COMMUTE,
    REMOVE_COMMUTES,
    REMOVE_INVERTS,
    REMOVE_KEEPS,
    REPEATS,
    REPEATS_BACK,
    RESULT_KEEPS,
    RESULT_REPEATS,
)
from ebbflow.laws.streams import (
    BATCHING,
    CUT,
    CUT_STATE,
    DECODES,
    EMPTY_STEP,
    ENCODES,
    EQUIVALENT,
    INDEPENDENT,
    INPUT_KEPT,
    LOSES_NOTHING,
    OUTPUT_KEPT,
    PROGRESS,
    PROGRESS_AT_END,
    REPEATABLE,
    STEPS_COMMUTE,
    UNDISTURBED,
    UPDATE_ADDS,
    UPDATE_CUT,
    UPDATE_EMPTY,
)
from ebbflow.laws.structures import (
    ANTISYMMETRIC,
    ARGUMENT_KEPT,
    ARGUMENTS_KEPT,
    ASSOCIATIVE,
    BASIS,
    BELOW,
    CANCEL,
    COMMUTATIVE,
    COMPRESS,
    COMPRESS_SHORTENS,
    DIFF_PATCHES,
    DIFF_VALID,
    IDEMPOTENT,
    INVERSE_LEFT,
    INVERSE_RIGHT,
    KEEPS_COMBINE,
    KEEPS_ZERO,
    LEAST_UPPER,
    LEFT_LINEAR,
    MOBIUS_INVERTS,
    NEGATE_CLOSED,
    NOTHING,
    REFLEXIVE,
    RIGHT_LINEAR,
    SAME_TWICE,
    SMALLER_FIRST,
    TRANSITIVE,
    VALIDITY,
    VALUE_KEPT,
    ZERO_LEFT,
    ZERO_RIGHT,
)
from ebbflow.laws.transitions import PARTS_COMPOSED, STEP_COMPOSED, STEP_REPEATED
from ebbflow.laws.verdicts import Judgement

__all__ = [
    "ACCEPTS", "ADD_COMMUTES", "ADD_KEEPS", "AGAIN", "ALWAYS_ANSWERS", "ANTISYMMETRIC",
    "ANY_ORDER", "ARGUMENTS_KEPT", "ARGUMENT_KEPT", "ASSOCIATIVE", "BASIS", "BATCHING", "BELOW",
    "CANCEL", "COMMUTATIVE", "COMPRESS", "COMPRESS_SHORTENS", "CUT", "CUT_CHANGES", "CUT_STATE",
    "DECODES", "DIFF_PATCHES", "DIFF_VALID", "EMPTY_STEP", "ENCODES", "EQUIVALENT",
    "FOLD_ANY_ORDER", "FOLD_REPEATS", "FROM_SCRATCH", "IDEMPOTENT", "INCREMENTAL", "INDEPENDENT",
    "INIT", "INPUT_KEPT", "INVERSE_LEFT", "INVERSE_RIGHT", "KEEPS_COMBINE", "KEEPS_ZERO",
    "LEAST_UPPER", "LEFT_LINEAR", "LOSES_NOTHING", "MERGES", "MERGE_KEEPS", "MOBIUS_INVERTS",
    "NEGATE_CLOSED", "NOTHING", "ONE_TICK", "OUTPUT_KEPT", "OUTPUT_VALID", "PARTS_COMPOSED",
    "PROGRESS", "PROGRESS_AT_END", "REFLEXIVE", "REMOVE_ADD_COMMUTE", "REMOVE_COMMUTES",
    "REMOVE_INVERTS", "REMOVE_KEEPS", "REPEATABLE", "REPEATS", "REPEATS_BACK", "RESULT_KEEPS",
    "RESULT_REPEATS", "RIGHT_LINEAR", "RUNS_ALIKE", "RUNS_APART", "SAME_TWICE", "SMALLER_FIRST",
    "STEP", "STEPS_COMMUTE", "STEP_COMPOSED", "STEP_REPEATED", "TRANSITIVE", "UNDISTURBED",
    "UPDATE_ADDS", "UPDATE_CUT", "UPDATE_EMPTY", "VALIDITY", "VALUE_KEPT", "WEIGHTS_ADD",
    "ZERO_LEFT", "ZERO_RIGHT", "Judgement", "Law", "Proof", "Report", "check", "close",
    "equivalent", "independent", "judge", "lawful", "laws_of", "prove",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
