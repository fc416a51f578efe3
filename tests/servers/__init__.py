"""Real servers for tests: found on this machine, or fetched by their coordinates, and started when
a test first asks. Where one cannot be had, what needs it is skipped, in one line that says why."""
