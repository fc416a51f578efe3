"""Ways to run a plan.

batch       from scratch: the meaning of a plan, and the oracle of every test
runtime     a compiled program: what every incremental engine owns
local       in this process, in memory or with its state on disk
spark       on Spark, through PySpark
"""
