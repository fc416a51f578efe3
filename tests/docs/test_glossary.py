"""The glossary has every term once, in order, with the file that defines it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.test_vocabulary import RETIRED, RETIRED_CLASSES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "glossary.md"
ENTRIES = [
    (term, " ".join(text.split()))
    for term, text in re.findall(
        r"^- \*\*(.+?)\*\*: (.+?)(?=^- |\Z)", PAGE.read_text(), re.M | re.S
    )
]
FILE = re.compile(r"\[([\w/.]+)\]\(\.\./src/ebbflow/([\w/.]+)\)$")
WANTED = {
    "arrange", "cells", "change data capture", "epoch", "generated loop", "guard",
    "incremental view", "index", "journal", "manifest", "materialized view", "reducer",
    "retraction", "segment", "spine", "stage", "upsert", "view", "wave", "weight", "Z-set",
}  # fmt: skip


def test_every_term_is_there_once_and_in_order() -> None:
    terms = [term for term, _ in ENTRIES]
    assert terms == sorted(set(terms), key=str.lower)
    assert set(terms) >= WANTED
    assert len(terms) == PAGE.read_text().count("\n- **")


@pytest.mark.parametrize(("term", "text"), ENTRIES, ids=[term for term, _ in ENTRIES])
def test_a_term_is_told_in_a_sentence_or_two_with_its_file(term: str, text: str) -> None:
    file = FILE.search(text)
    assert file is not None
    assert file[1] == file[2]
    assert (ROOT / "src" / "ebbflow" / file[2]).is_file()
    told = text[: file.start()].strip()
    assert told.endswith(".")
    assert len(re.findall(r"\.(?: |$)", told)) <= 3


@pytest.mark.parametrize(("term", "text"), ENTRIES, ids=[term for term, _ in ENTRIES])
def test_no_term_is_told_in_words_that_were_given_up(term: str, text: str) -> None:
    told = FILE.sub("", text)
    assert not {word.lower() for word in re.findall(r"\w+", f"{term} {told}")} & set(RETIRED)
    assert not set(re.findall(r"`(\w+)`", told)) & set(RETIRED_CLASSES)


def test_the_glossary_can_be_found() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text()
    assert "(glossary.md)" in (ROOT / "docs" / "README.md").read_text()
