"""Readers: a second process that reads the state of a view while the view writes it."""
