"""Rows as tables: the types of columns, Spark's schemas, and Arrow in and out."""
