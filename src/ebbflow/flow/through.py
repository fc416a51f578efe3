"""Operators of the user's own in a program.

Such an operator is given the rows as a bag, and their changes as Z-sets; with a key, it is there
once for each key, with a state of its own.
"""

from __future__ import annotations

from inspect import isclass
from typing import Any

from ebbflow.change import BAG, ZSET
from ebbflow.errors import place
from ebbflow.flow.edited import of_field
from ebbflow.flow.grouped import ONE_GROUP
from ebbflow.flow.parts import Part, key, refuse, row_type
from ebbflow.flow.plan import Node, Through
from ebbflow.flow.types import row
from ebbflow.operator import Operator
from ebbflow.operator.applied import Applied

HOME = "ebbflow.operator"


def passed(node: Node, operator: Any, per: Part | None, type: Any) -> Through:
    """The node of `through`.

    >>> import ebbflow as ef
    >>> from ebbflow.operator import count
    >>> passed(ef.Input("words", str).node, count(), None, int).type.__annotations__
    {'value': <class 'int'>}
    """
    if isinstance(operator, Applied):
        operator, type = of_field(node, operator, type)
    _checked(operator)
    found = ONE_GROUP if per is None else key("through(per={})", node, (per,), {})
    checked = Any if type is None else type
    if found.fn is not None or operator.output not in (BAG, ZSET):
        checked = row("Group", {**found.fields, "value": checked})
    return Through(
        parent=node,
        key=found.fn,
        operator=operator,
        width=found.width,
        type=row_type("through({})", checked),
        place=place(),
    )


def _checked(operator: Any) -> None:
    if not isinstance(operator, Operator):
        name = getattr(operator, "__name__", repr(operator))
        makes_one = isclass(operator) and issubclass(operator, Operator)
        makes_one = makes_one or str(getattr(operator, "__module__", "")).startswith(HOME)
        refuse(
            f"through({name}): that is not an operator",
            f"through({name}(...))" if makes_one else "an ebbflow.operator.Operator",
        )
    if getattr(operator, "input", None) != BAG:
        refuse(
            f"through({operator!r}): its input is not a bag, and rows are one",
            "an operator whose input is ebbflow.change.BAG",
            input=getattr(operator, "input", None),
        )
