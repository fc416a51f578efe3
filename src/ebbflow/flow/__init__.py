"""Programs over collections, as data."""
