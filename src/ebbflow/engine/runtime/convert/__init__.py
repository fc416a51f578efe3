"""Rows that were stored when their input had another type, as rows of the type it has now.

A program that is opened again may have changed what the rows of an input are: a field more, a wider
type, another order, other names. The state says what the rows were (`described`), so they are made
into what they are now (`plan`), and everything that depends on them is computed again. What would
lose something, or make something up, is refused.
"""
