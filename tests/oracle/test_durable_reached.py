"""Whatever a function can reach is part of it: if it has changed, the state is computed again.

Each case is the text of a program, with a module of helpers above the line where it has one, and
an edit of it. What is computed changes with the edit, so state that is taken for still right is
seen to be wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ebbflow as ef
from ebbflow.errors import StateError
from ebbflow.expression import Fingerprints, assumed, fingerprint, fingerprints
from ebbflow.expression.library import _version, library
from ebbflow.zset import ZSet

LINE = "\n# ----\n"

CASES: dict[str, tuple[str, str, str]] = {
    "a constant": ("def f(n): return list(range(n + 1))[-1] + 1", "[-1] + 1", "[-1] + 2"),
    "a default": ("def f(n, k=1): return sum([n, k])", "k=1", "k=2"),
    "a keyword's default": ("def f(n, *, k=1): return sum([n, k])", "k=1", "k=2"),
    "a global": ("K = 1\ndef f(n): return sum([n, K])", "K = 1", "K = 2"),
    "a global of a function inside": (
        "K = 1\ndef f(n): return list(map(lambda x: x + K, [n]))[0]", "K = 1", "K = 2"),
    "an enclosed value": (
        "def make(k):\n def f(n): return sum([n, k])\n return f\nf = make([1][0])", "[1]", "[2]"),
    "an enclosed module": (
        "K = 1" + LINE + "def make():\n import helpers\n def f(n): return sum([n, helpers.K])\n"
        " return f\nf = make()", "K = 1", "K = 2"),
    "a pattern": ("import re\nP = re.compile('1')\ndef f(n): return len(P.findall(str(n)))",
                  "'1'", "'2'"),
    "the flags of a pattern": (
        "import re\nP = re.compile('a')\ndef f(n): return n + len(P.findall('A'))",
        "compile('a')", "compile('a', re.I)"),
    "an enclosed pattern": (
        "import re\ndef make(p):\n def f(n): return len(p.findall(str(n)))\n return f\n"
        "f = make(re.compile('1'))", "'1'", "'2'"),
    "a pattern as an attribute": (
        "import re\nclass C:\n def __init__(self): self.p = re.compile('1')\nc = C()\n"
        "def f(n): return len(c.p.findall(str(n)))", "'1'", "'2'"),
    "the bound method of a pattern": (
        "import re\nfind = re.compile('1').findall\ndef f(n): return len(find(str(n)))",
        "'1'", "'2'"),
    "a function of a module": ("def g(n): return n + 1" + LINE +
                               "import helpers\ndef f(n): return helpers.g(n)", "+ 1", "+ 2"),
    "a constant of a module": ("K = 1" + LINE + "import helpers\ndef f(n): return n + helpers.K",
                               "K = 1", "K = 2"),
    "a class of a module": (
        "class C:\n def m(self, n): return n + 1" + LINE +
        "import helpers\ndef f(n): return helpers.C().m(n)", "+ 1", "+ 2"),
    "a constant behind a function of a module": (
        "K = 1\ndef g(n): return n + K" + LINE + "import helpers\ndef f(n): return helpers.g(n)",
        "K = 1", "K = 2"),
    "a module under another name": (
        "K = 1" + LINE + "import helpers as h\ndef f(n): return n + h.K", "K = 1", "K = 2"),
    "a module given away": (
        "K = 1" + LINE + "import helpers\ndef f(n): return n + getattr(helpers, 'K')",
        "K = 1", "K = 2"),
    "a module imported inside": (
        "K = 1" + LINE + "import helpers\ndef f(n):\n import helpers as h\n return n + h.K",
        "K = 1", "K = 2"),
    "a name imported inside": (
        "K = 1" + LINE + "import helpers\ndef f(n):\n from helpers import K\n return n + K",
        "K = 1", "K = 2"),
    "a function under a cache": (
        "import functools\n@functools.cache\ndef g(n): return n + 1\ndef f(n): return g(n)",
        "+ 1", "+ 2"),
    "a cached function itself": (
        "import functools\n@functools.lru_cache(maxsize=5)\ndef f(n): return n + 1", "+ 1", "+ 2"),
    "a wrapped function": (
        "import functools\ndef twice(g):\n @functools.wraps(g)\n def w(n): return g(g(n))\n"
        " return w\n@twice\ndef f(n): return n + 1", "+ 1", "+ 2"),
    "a wrapper": (
        "import functools\ndef twice(g):\n @functools.wraps(g)\n def w(n): return g(n) + 1\n"
        " return w\n@twice\ndef f(n): return n", "+ 1", "+ 2"),
    "a partial": ("import functools\ndef g(k, n): return k + n\nf = functools.partial(g, 1)",
                  "(g, 1)", "(g, 2)"),
    "a keyword of a partial": (
        "import functools\ndef g(n, k): return k + n\nf = functools.partial(g, k=1)",
        "k=1", "k=2"),
    "an attribute of a function": ("def f(n): return n + f.k\nf.k = 1", "f.k = 1", "f.k = 2"),
    "an enum's value": (
        "import enum\nclass E(enum.Enum):\n A = 1\ndef f(n): return n + E.A.value",
        "A = 1", "A = 2"),
    "a flag's value": (
        "import enum\nclass E(enum.IntFlag):\n A = 1\n B = 2\ndef f(n): return n + int(E.A | E.B)",
        "B = 2", "B = 4"),
    "an enum's member as a constant": (
        "import enum\nclass E(enum.Enum):\n A = 1\nK = E.A\ndef f(n): return n + K.value",
        "A = 1", "A = 2"),
    "the order of an enum": (
        "import enum\nclass E(enum.Enum):\n A = 1\n B = 2\n"
        "def f(n): return n + list(E)[0].value", "A = 1\n B = 2", "B = 2\n A = 1"),
    "a default of a NamedTuple": (
        "from typing import NamedTuple\nclass T(NamedTuple):\n k: int = 1\n"
        "def f(n): return n + getattr(T(), 'k')", "int = 1", "int = 2"),
    "a default of a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass T:\n k: int = 1\n"
        "def f(n): return n + T().k", "int = 1", "int = 2"),
    "a default factory": (
        "from dataclasses import dataclass, field\n@dataclass\nclass T:\n"
        " k: list = field(default_factory=lambda: [1])\ndef f(n): return n + T().k[0]",
        "[1]", "[2]"),
    "a list in a class": ("class C:\n k = [1]\ndef f(n): return n + C.k[0]", "k = [1]", "k = [2]"),
    "a class in a class": (
        "class C:\n class D:\n  k = 1\ndef f(n): return n + C.D.k", "k = 1", "k = 2"),
    "a method of a class in a class": (
        "class C:\n class D:\n  def m(self): return 1\ndef f(n): return n + C.D().m()",
        "return 1", "return 2"),
    "a class before it": (
        "class B:\n k = 1\nclass C(B): pass\ndef f(n): return n + C.k", "k = 1", "k = 2"),
    "a class registered with an abstract one": (
        "import abc\nclass A(abc.ABC): pass\nclass B: pass\nclass C: pass\nA.register(B)\n"
        "def f(n): return n + isinstance(B(), A)", "register(B)", "register(C)"),
    "an attribute of a metaclass": (
        "class M(type):\n k = 1\nclass C(metaclass=M): pass\ndef f(n): return n + C.k",
        "k = 1", "k = 2"),
    "a method of a metaclass": (
        "class M(type):\n def __len__(cls): return 1\nclass C(metaclass=M): pass\n"
        "def f(n): return n + len(C)", "return 1", "return 2"),
    "a partialmethod": (
        "import functools\nclass C:\n def g(self, k, n): return k + n\n"
        " m = functools.partialmethod(g, 1)\ndef f(n): return C().m(n)", "(g, 1)", "(g, 2)"),
    "a descriptor": (
        "class D:\n def __init__(self, k): self.k = k\n def __get__(self, *a): return self.k\n"
        "class C:\n k = D(1)\ndef f(n): return n + C().k", "D(1)", "D(2)"),
    "a descriptor's method": (
        "class D:\n def __get__(self, *a): return 1\nclass C:\n k = D()\n"
        "def f(n): return n + C().k", "return 1", "return 2"),
    "a property": (
        "class C:\n @property\n def k(self): return 1\ndef f(n): return n + C().k",
        "return 1", "return 2"),
    "a cached property": (
        "import functools\nclass C:\n @functools.cached_property\n def k(self): return 1\n"
        "c = C()\ndef f(n): return n + c.k", "return 1", "return 2"),
    "a static method": (
        "class C:\n @staticmethod\n def k(): return 1\ndef f(n): return n + C.k()",
        "return 1", "return 2"),
    "a class method": (
        "class C:\n @classmethod\n def k(cls): return 1\ndef f(n): return n + C.k()",
        "return 1", "return 2"),
    "a slot": (
        "class C:\n __slots__ = ('k',)\n def __init__(self): self.k = 1\nc = C()\n"
        "def f(n): return n + c.k", "self.k = 1", "self.k = 2"),
    "a bound method's object": (
        "class C:\n def __init__(self, k): self.k = k\n def m(self, n): return n + self.k\n"
        "f = C(1).m", "C(1)", "C(2)"),
    "an object that is called": (
        "class C:\n def __call__(self, n): return n + 1\nf = C()", "+ 1", "+ 2"),
    "an object that hides its attributes": (
        "class C:\n def __init__(self): self.k = 1\n def __getstate__(self): return None\nc = C()\n"
        "def f(n): return n + c.k", "self.k = 1", "self.k = 2"),
    "what a list of a class of its own holds": (
        "class L(list):\n def __iter__(self): return iter(())\nc = L([1])\n"
        "def f(n): return n + c[0]", "[1]", "[2]"),
    "the order of a dict": (
        "K = {'a': 1, 'b': 2}\ndef f(n): return n + list(K.values())[0]",
        "'a': 1, 'b': 2", "'b': 2, 'a': 1"),
    "a struct": ("import struct\nS = struct.Struct('<i')\ndef f(n): return n + S.size",
                 "'<i'", "'<q'"),
    "a memoryview": ("M = memoryview(b'a')\ndef f(n): return n + M[0]", "b'a'", "b'b'"),
    "a context variable's default": (
        "from contextvars import ContextVar\nV = ContextVar('v', default=1)\n"
        "def f(n): return n + V.get()", "default=1", "default=2"),
    "a context variable's value": (
        "from contextvars import ContextVar\nV = ContextVar('v', default=1)\nV.set(3)\n"
        "def f(n): return n + V.get()", "set(3)", "set(4)"),
    "a set": ("K = {1, 2}\ndef f(n): return n + sum(K)", "{1, 2}", "{1, 3}"),
    "a deque": ("from collections import deque\nK = deque([1])\ndef f(n): return n + K[0]",
                "[1]", "[2]"),
    "a function for a type": (
        "import functools\n@functools.singledispatch\ndef g(n): return 0\n"
        "@g.register\ndef _(n: int): return n + 1\ndef f(n): return g(n)", "n + 1", "n + 2"),
    "a global of a class": (
        "K = 1\nclass C:\n def m(self): return K\ndef f(n): return n + C().m()", "K = 1", "K = 2"),
    "functions that call each other": (
        "def g(n): return h(n - 1) if n > 90 else n + 1\ndef h(n): return g(n)\n"
        "def f(n): return h(n)", "n + 1", "n + 2"),
    "a class that names itself": (
        "class C:\n def m(self): return C.k\n k = 1\ndef f(n): return n + C().m()",
        " k = 1", " k = 2"),
    "a weak reference": (
        "import weakref\nclass C: k = [1]\nw = weakref.ref(C)\ndef f(n): return n + w().k[0]",
        "[1]", "[2]"),
    "a generated row's method": (
        "from typing import NamedTuple\nclass T(NamedTuple):\n n: int\n"
        " def m(self): return self.n + 1\ndef f(n): return T(n).m()", "+ 1", "+ 2"),
}  # fmt: skip


def loaded(name: str, text: str) -> Any:
    module = sys.modules[name] = ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), vars(module))
    return module


def function_of(text: str) -> Any:
    helpers, _, own = text.rpartition(LINE)
    loaded("helpers", helpers)
    return loaded("program_of_the_test", own).f


@pytest.fixture(autouse=True)
def _modules() -> Any:
    yield
    sys.modules.pop("helpers", None)
    made = sys.modules.pop("program_of_the_test", None)
    if "OPEN" in vars(made or ef):
        vars(made)["OPEN"].close()


def program(text: str) -> Any:
    return ef.Input("numbers", int).map(function_of(text), type=int).distinct()


@pytest.mark.parametrize("what", CASES)
def test_a_change_of_what_a_function_reaches_is_noticed(tmp_path: Path, what: str) -> None:
    text, old, new = CASES[what]
    assert text.count(old) == 1, "the edit is one"
    with program(text).run(path=tmp_path, strict=True) as view:
        view.step(numbers=[1, 2, 11, 12])
        first = view.value
    with program(text).run(path=tmp_path, strict=True) as view:
        assert (view.rebuilt, view.assumed) == ((), {})
    with pytest.raises(StateError, match="would be computed again"):
        program(text.replace(old, new)).run(path=tmp_path, strict=True)
    with program(text.replace(old, new)).run(path=tmp_path) as view:
        assert view.rebuilt
        assert view.value != first
        view.verify()


def test_fingerprints_do_not_depend_on_the_order_of_hashes(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_durable_reached as t\n"
        "from ebbflow.expression import fingerprint\n"
        "for name, (text, *_) in t.CASES.items(): print(fingerprint(t.function_of(text)))"
    )
    said = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert len(said[0]) == len(CASES)
    assert said[0] == said[1]


# ---- what stays the same ----


SAME = {
    "moved and renamed": (
        "def f(n): return sum([n])", "\n\ndef other(n): return sum([n])\nf = other"),
    "a helper in another module": (
        "def g(n): return sum([n])\ndef f(n): return g(n)",
        "def g(n): return sum([n])" + LINE + "from helpers import g\ndef f(n): return g(n)"),
    "another name in the module": (
        "K = 1" + LINE + "import helpers\ndef f(n): return sum([n, helpers.K])",
        "K = 1\nother = 3" + LINE + "import helpers\ndef f(n): return sum([n, helpers.K])"),
    "a docstring of a class": (
        "class C:\n k = 1\ndef f(n): return n + C.k",
        "class C:\n 'words'\n k = 1\ndef f(n): return n + C.k"),
    "the order of methods": (
        "class C:\n def a(self): return 1\n def b(self): return 2\ndef f(n): return C().a()",
        "class C:\n def b(self): return 2\n def a(self): return 1\ndef f(n): return C().a()"),
    "what a cache holds": (
        "import functools\n@functools.cache\ndef g(n): return n\ndef f(n): return g(n)",
        "import functools\n@functools.cache\ndef g(n): return n\ndef f(n): return g(n)\nf(1)"),
    "a property that was computed": (
        "import functools\nclass C:\n @functools.cached_property\n def k(self): return 1\n"
        "c = C()\ndef f(n): return n + c.k",
        "import functools\nclass C:\n @functools.cached_property\n def k(self): return 1\n"
        "c = C()\ndef f(n): return n + c.k\nc.k"),
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_what_means_the_same_is_the_same(what: str) -> None:
    one, other = SAME[what]
    assert fingerprint(function_of(one)) == fingerprint(function_of(other))


def test_a_set_of_functions_that_call_each_other_has_no_order() -> None:
    text = "def a(n): return b\ndef b(n): return [a]\nK = {%s}\ndef f(n): return K"
    one, other = (function_of(text % order) for order in ("a, b", "b, a"))
    assert fingerprint(one) == fingerprint(other)


# ---- what cannot be known ----


UNKNOWN = {
    "a generator": ("K = (n for n in 'ab')\ndef f(n): return next(K)", "K: a generator"),
    "an open file": (
        "OPEN = open(__import__('os').devnull)\ndef f(n): return OPEN", "_io.TextIOWrapper"),
    "a socket": ("import socket\nOPEN = socket.socket()\ndef f(n): return OPEN", "socket.socket"),
    "code that is made": ("def f(n): return eval('n')", "it calls eval"),
    "names that are looked up": ("def f(n): return globals()['K']", "it calls globals"),
    "an import to come": ("def f(n):\n import nowhere_yet\n return n", "it imports nowhere_yet"),
    "deep inside": (
        "class C:\n def __init__(self): self.rest = (n for n in 'ab')\nK = [C()]\n"
        "def g(n): return K\ndef f(n): return g(n)", "rest: a generator"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_cannot_be_looked_into_is_told_and_refused_when_strict(
    tmp_path: Path, what: str
) -> None:
    text, reason = UNKNOWN[what]
    mapped = ef.Input("numbers", int).map(function_of(text), type=int)
    with mapped.run(path=tmp_path) as view:
        (told,) = view.assumed.items()
        assert told[0].startswith("map(f) ")
        assert reason in "; ".join(told[1])
    with pytest.raises(StateError, match="could go unseen") as raised:
        mapped.run(path=tmp_path, strict=True)
    assert reason in str(raised.value)
    assert "try " in str(raised.value)


def test_a_view_in_memory_assumes_nothing() -> None:
    assert ef.Input("numbers", int).run().assumed == {}


# ---- looking runs no code of the program ----


def test_looking_into_an_object_runs_none_of_its_code() -> None:
    text = """
class HEARD(Exception):
    def __init__(self): heard.append(1)
heard = []
class Loud:
    def __getattribute__(self, name): raise HEARD
    def __getattr__(self, name): raise HEARD
    def __reduce__(self): raise HEARD
    def __getstate__(self): raise HEARD
    def __eq__(self, other): raise HEARD
    def __hash__(self): raise HEARD
    def __iter__(self): raise HEARD
    def __len__(self): raise HEARD
    @property
    def __class__(self): raise HEARD
    @property
    def k(self): raise HEARD
K = Loud()
def __getattr__(name): raise HEARD
def f(n): return [n, K.k, K]
"""
    assert fingerprint(function_of(text)) == fingerprint(function_of(text))
    assert sys.modules["program_of_the_test"].heard == []


# ---- libraries ----


def test_libraries_are_known_by_name_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert library("json.decoder") == "json"
    assert library("numpy.linalg") == f"numpy {pytest.importorskip('numpy').__version__}"
    assert library("hypothesis.strategies").startswith("hypothesis 6")  # type: ignore[union-attr]
    assert library("no_such_module") is None
    before = fingerprint(function_of("import numpy\ndef f(n): return numpy.add(n, 1)"))
    monkeypatch.setattr("ebbflow.expression.library._version", lambda top: f"{top} 99")
    after = fingerprint(function_of("import numpy\ndef f(n): return numpy.add(n, 1)"))
    assert before != after


def test_a_module_that_hides_one_of_pythons_belongs_to_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = ModuleType("calendar")
    mine.__file__ = os.path.join(os.sep, "home", "me", "calendar.py")
    monkeypatch.setitem(sys.modules, "calendar", mine)
    assert library("calendar") is None


def test_a_package_of_python_files_is_known_by_them() -> None:
    assert _version("numpy").count(" ") == 1  # type: ignore[union-attr]
    assert _version("hypothesis").count(" ") >= 1  # type: ignore[union-attr]
    assert _version("pytest").count(" ") == 2  # type: ignore[union-attr]


# ---- one look ----


def test_what_is_used_twice_is_looked_into_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    look = fingerprints.parts_of
    monkeypatch.setattr(fingerprints, "parts_of", lambda each: (seen.append(each), look(each))[1])
    text = "def g(n): return n\ndef f(n): return g(n)\ndef h(n): return [g(n)]"
    function_of(text)
    made = sys.modules["program_of_the_test"]
    prints = Fingerprints()
    assert prints.of(made.f) != prints.of(made.h)
    assert sum(each is made.g for each in seen) == 1


def test_rows_that_do_not_say_what_they_hold_are_told(tmp_path: Path) -> None:
    class Loose:
        def __init__(self, n: int) -> None:
            self.n = n

    with ef.Input("rows", Loose).run(path=tmp_path) as view:
        assert view.assumed == {"input rows": ("Loose: a class without declared fields",)}


def test_a_row_s_method_that_a_reducer_calls_is_part_of_it(tmp_path: Path) -> None:
    text = (
        "import ebbflow as ef\nfrom typing import NamedTuple\n"
        "class Row(NamedTuple):\n k: str\n n: int\n def m(self): return self.n + 1\n"
        "f = ef.Input('rows', Row).group_by('k').reduce(\n"
        "    ef.Reducer(0, lambda a, row: max(a, row.m())))\n"
    )
    with function_of(text).run(path=tmp_path) as view:
        view.step(rows=[sys.modules["program_of_the_test"].Row("a", 1)])
    with function_of(text.replace("+ 1", "+ 2")).run(path=tmp_path) as view:
        assert view.rebuilt
        view.verify()


def test_operators_of_a_field_s_class_are_part_of_a_traced_function(tmp_path: Path) -> None:
    text = (
        "import ebbflow as ef\nfrom typing import NamedTuple\nfrom dataclasses import dataclass\n"
        "@dataclass(frozen=True)\nclass Money:\n n: int\n"
        " def __add__(self, k): return Money(self.n + k)\n"
        "class Row(NamedTuple):\n k: str\n money: Money\n"
        "f = ef.Input('rows', Row).map(lambda row: row.money + 1).distinct()\n"
    )
    with function_of(text).run(path=tmp_path) as view:
        made = sys.modules["program_of_the_test"]
        assert view.plan.outputs["output"].parent.fn.expression is not None
        view.step(rows=[made.Row("a", made.Money(1))])
    changed = text.replace("self.n + k", "self.n - k")
    with function_of(changed).run(path=tmp_path) as view:
        assert view.rebuilt == ("distinct program_of_the_test.py:11",)
        made = sys.modules["program_of_the_test"]
        assert view.value == ZSet.of([made.Money(0)])


@pytest.mark.parametrize(
    "verb", ["agg(n=ef.max('money'))", "top_k(1, order='money')", "select('money').distinct()"]
)
@pytest.mark.parametrize(
    "kind", ["@dataclass(frozen=True)\nclass Money", "class Money(NamedTuple)"]
)
def test_what_compares_values_of_a_class_depends_on_its_code(
    tmp_path: Path, kind: str, verb: str
) -> None:
    text = (
        "import ebbflow as ef\nfrom typing import NamedTuple\nfrom dataclasses import dataclass\n"
        f"{kind}:\n n: int\n"
        " def __lt__(self, other): return self.n < other.n\n"
        "class Row(NamedTuple):\n k: str\n money: Money | None\n def m(self): return 1\n"
        f"f = ef.Input('rows', Row).{verb}\n"
    )
    with function_of(text).run(path=tmp_path) as view:
        made = sys.modules["program_of_the_test"]
        view.step(rows=[made.Row("a", made.Money(n)) for n in range(3)])
    with function_of(text.replace("return 1", "return 2")).run(path=tmp_path) as view:
        assert view.rebuilt == ()
    with function_of(text.replace("self.n < other.n", "self.n > other.n")).run(path=tmp_path) as v:
        assert v.rebuilt
        v.verify()


def test_reasons_are_found_wherever_they_are() -> None:
    assert assumed([1, {"a": (n for n in "ab")}]) == ("a: a generator",)
