"""The programs here are read by type checkers; some are wrong, and are no tests of their own."""

collect_ignore = ["mistakes.py", "right.py"]
