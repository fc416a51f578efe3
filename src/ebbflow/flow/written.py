"""Remedies for texts that stand where a field name or a function of the row is wanted.

SQL, pandas and Spark take conditions and orders as texts: `"price > 3"`, `"price desc"`,
`"a.id = b.id"`. A program here takes field names and functions. So that the error for such a text
can be followed, this module writes the text as a function of the row, as `ebbflow.desc`, or as
arguments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from ebbflow.names import REDUCERS

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|<>|[<>=!]=|\w+|\s+|.", re.DOTALL)
_WORDS = {
    "=": "==", "<>": "!=", "null": "None", "true": "True", "false": "False",
    **{each: each for each in ("and", "or", "not", "is", "in")},
}  # fmt: skip
"""Operators and words of SQL, in Python."""
_FUNCTIONS = {"abs", "bool", "float", "int", "len", "max", "min", "round", "str"}
_ORDER = re.compile(r"(-)?\s*(\w+)(?:\s+(asc|desc)(?:ending)?)?(?:\s+nulls\s+\w+)?", re.I)
_EQUAL = re.compile(r"(?:\w+\.)?(\w+)\s*={1,2}\s*(?:\w+\.)?(\w+)")
_CALL = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)
_ALIAS = re.compile(r"(.+?)\s+as\s+(\w+)", re.I | re.DOTALL)


def instead(shape: str, text: str, fields: Collection[str]) -> str:
    """Return the call that `text` seems to mean, or "" if it looks like a misspelt field name.

    >>> instead("filter({})", "price > 3 and city = 'Rome'", ["city", "price"])
    "filter(lambda row: row.price > 3 and row.city == 'Rome')"
    >>> instead("limit(order={})", "city, price desc", ["city", "price"])
    'limit(order=("city", ebbflow.desc("price")))'
    >>> instead("join(on={})", "id = customer", ["id"])
    'join(left_on="id", right_on="customer")'
    >>> instead("group_by({})", "ctiy", ["city"])
    ''
    """
    text = text.strip()
    if text.isidentifier():
        return ""
    if text == "*":
        return shape.format("")
    if shape.endswith("(on={})") and (sides := _EQUAL.fullmatch(text)):
        return f"{shape.partition('(')[0]}({_keys(*sides.groups())})"
    if "order={}" in shape or shape.startswith("top_k("):
        parts = [_ordered(each, fields) for each in text.split(",")]
        if all(parts):
            return shape.format(_several(parts))
    names = [each.strip() for each in text.split(",")]
    if len(names) > 1 and all(each in fields for each in names):
        return shape.format(_several([f'"{each}"' for each in names]))
    table, _, name = text.rpartition(".")
    if table.isidentifier() and name in fields:
        return shape.format(f'"{name}"')
    return shape.format(function(text, fields))


def unnamed(shape: str, text: str, fields: Collection[str]) -> str:
    """Return the call that `text` seems to mean where the result of a function needs a name.

    >>> unnamed("select({})", "price * 2", ["price"])
    'select(name=lambda row: row.price * 2)'
    >>> unnamed("select({})", "price AS p", ["price"])
    'select(p="price")'
    """
    verb, name = shape.partition("(")[0], "name"
    if text.strip() == "*":
        return f"the collection without {verb}: its rows have all fields"
    if alias := _ALIAS.fullmatch(text.strip()):
        text, name = alias.groups()
    if text in fields:
        return f'{verb}({name}="{text}")'
    found = instead("{}", text, fields)
    if not found.startswith("lambda") and name == "name":
        return f"{verb}({found.removeprefix('(').removesuffix(')')})"
    return f"{verb}({name}={found})"


def function(text: str, fields: Collection[str]) -> str:
    """Write an expression of SQL or Python as a function of the row.

    >>> function("prcie <> 3 OR city IS NULL", ["city", "price"])
    'lambda row: row.price != 3 or row.city is None'
    >>> function("price between 3 and 5", ["city", "price"])
    'lambda row: ...'
    """
    try:
        tree = ast.parse("".join(_python(text)).strip(), mode="eval")
        return f"lambda row: {ast.unparse(_OfRow(fields).visit(tree))}"
    except (SyntaxError, ValueError, RecursionError, LookupError):
        return "lambda row: ..."


def _python(text: str) -> Iterator[str]:
    for token in _TOKEN.findall(text):
        quoted = token[0] in "'\"" and len(token) > 1
        yield repr(token[1:-1].replace("''", "'")) if quoted else _WORDS.get(token.lower(), token)


class _OfRow(ast.NodeTransformer):
    """Takes the names in an expression for fields of the row."""

    def __init__(self, fields: Collection[str]) -> None:
        self.fields = fields

    def visit_Name(self, name: ast.Name) -> ast.expr:
        near = get_close_matches(name.id, self.fields, n=1, cutoff=0.6)
        if not near:
            raise LookupError(name.id)
        found = name.id if name.id in self.fields else near[0]
        return ast.Attribute(ast.Name("row"), found)

    def visit_Attribute(self, part: ast.Attribute) -> ast.expr:
        table = isinstance(part.value, ast.Name) and part.value.id not in self.fields
        if table and part.attr in self.fields:
            return ast.Attribute(ast.Name("row"), part.attr)
        self.generic_visit(part)
        return part

    def visit_Call(self, call: ast.Call) -> ast.expr:
        if isinstance(call.func, ast.Name):
            if call.func.id not in _FUNCTIONS:
                raise LookupError(call.func.id)
            call.args = [self.visit(each) for each in call.args]
            return call
        self.generic_visit(call)
        return call


def _keys(ours: str, theirs: str) -> str:
    return f'on="{ours}"' if ours == theirs else f'left_on="{ours}", right_on="{theirs}"'


def _ordered(text: str, fields: Collection[str]) -> str:
    """A part of an order, such as `-price` or `price desc`; "" if it is none."""
    found = _ORDER.fullmatch(text.strip())
    if found is None or found[2] not in fields:
        return ""
    descends = (found[1] is not None) != (str(found[3]).lower() == "desc")
    return f'ebbflow.desc("{found[2]}")' if descends else f'"{found[2]}"'


def _several(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def aggregate(text: str, names: Sequence[str], fields: Collection[str]) -> str:
    """Return the reducer that a text such as "sum(price)" stands for, or "avg" for the field that
    the last of `names` says; "" if there is none.

    >>> aggregate("avg(price)", ["top"], ["price"]), aggregate("avg", ["price"], ["price"])
    ('ebbflow.mean("price")', 'ebbflow.mean("price")')
    """
    found = _CALL.fullmatch(text.strip())
    if found is None:
        return ""
    name, of = found[1].lower(), (found[2] or "").strip()
    ours = REDUCERS.get(name, name)
    if ours not in REDUCERS.values():
        return ""
    if ours == "count" and of in ("", "*", "1"):
        return "ebbflow.count()"
    if not of:
        of = names[-1] if names and names[-1] in fields else ""
    if not of:
        return f"ebbflow.{ours}()"
    return f"ebbflow.{ours}({instead('{}', of, fields) or repr(of).replace(chr(39), chr(34))})"
