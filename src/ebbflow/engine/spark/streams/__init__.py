"""Views on Spark that are fed by streams."""
