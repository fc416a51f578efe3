"""An epoch as Spark tasks: what a task holds and does, what goes between tasks, and the commit."""
