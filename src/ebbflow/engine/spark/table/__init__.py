"""Rows as DataFrames: Spark's schemas, and changes that are DataFrames."""
