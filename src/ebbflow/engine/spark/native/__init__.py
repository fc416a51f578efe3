"""Traced functions, joins and groups as Spark's own columns and queries."""
