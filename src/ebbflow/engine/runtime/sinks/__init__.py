"""Sinks: who gets the changes of a view, epoch by epoch; the same for every engine."""
