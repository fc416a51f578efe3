"""The values that inputs accept: one table of rules for rows, dicts, keys, requests and tables.

`rules` has the rules of single types, `hints` those of all types composed of them, `parsing` the
texts that stand for values, and `check` brings the rows of a change to their canonical form.
"""
