"""Rows without fields, steps that fuse, functions that cannot be seen into."""

import ebbflow as ef


def words_of(line: str) -> list[str]:
    return line.split()


lines = ef.Input("lines", str)
words = lines.flat_map(words_of).filter(str.isalpha).map(str.lower, type=str)
counts = words.group_by(lambda word: word[0]).reduce(ef.count())

program = ef.program(words=words, counts=counts)
