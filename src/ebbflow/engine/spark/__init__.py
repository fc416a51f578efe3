"""The Spark engine: the same program as a data pipeline on PySpark.

Nothing here is loaded by `import ebbflow`; it needs `ebbflow[spark]`. From the outside in:

    engine     `spark`, what to give to `run`: options, session
    view       a program that is running: handles, report, progress
    tasks/     how an epoch runs, in the driver, in one task or in waves, and how it becomes the
               state; what runs in a task, on a replica of the program
    bulk/      a first load, through Spark's SQL
    native/    what Spark's SQL can compute of a plan, and why not the rest
    output/    what a view gives: DataFrames of rows and of changes, change logs, sinks
    table/     rows as columns, and whatever a user gives as the change of an input in one form

The operators are those of every engine, compiled and run by `engine.runtime`; the state is a
`Store` of `ebbflow.state.spine`, as that of a local view with a path.
"""
