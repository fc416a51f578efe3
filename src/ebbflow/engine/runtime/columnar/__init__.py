"""Stages on columns: the stages of a compiled plan, on the kernels of `ebbflow.kernel`.

A program that is fed with tables of typed rows runs *in columns*: its inputs make columns of
tables, and every stage whose functions, types and reducers allow it takes columns and gives
columns. A stage that cannot gets rows, which are made of the columns before it; its neighbours go
on in columns. Which it is, and why, is decided once, before the first epoch (`choose`), and
`explain` says it.

Every stage on columns has a *row stage*, the one that it replaces. When columns cannot go on (an
int of more than 64 bits comes, a sum overflows), the state is handed over to the row stage, which
goes on with it: nothing is lost, nothing is rounded, and only speed differs. A whole program does
so before what only rows can do, such as a branch.
"""
