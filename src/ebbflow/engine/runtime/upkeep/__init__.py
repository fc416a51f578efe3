"""Upkeep: to look into a state, check it, compact it, copy it, and repair it, without its program.

It is the same for every engine, and what `ebbflow state` does.
"""
