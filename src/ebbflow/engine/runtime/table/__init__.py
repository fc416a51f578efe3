"""Rows as tables: the columns of a row type, Arrow tables of changes, and what does not fit."""
