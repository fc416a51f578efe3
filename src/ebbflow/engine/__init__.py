"""Ways to run a plan."""
