"""The Spark engine: the same program as a data pipeline on PySpark.

Nothing here is loaded by `import ebbflow`; it needs `ebbflow[spark]`. From the outside in:

    engine     `spark`, what to give to `run`: options, session
    view       a program that is running: handles, route, report, ways, log, sinks, targets,
               progress
    epochs     how an epoch runs, here, in one task or in waves, and how it becomes the state
    waves      which stages run together in tasks, and what goes from task to task
    task       what runs in tasks, on a replica of the program: replica, ship
    bulk       a first load, through Spark's SQL: sql, groups, native
    frames     what a view gives: DataFrames of rows, and of what changed
    changes    whatever a user gives as the change of an input, in one form: layout, tables
    kinds      rows as columns: arrow, encode, decode, unfit, schema

The operators are those of the local engine, compiled by it and run by its stages; the state is a
`Store` of `ebbflow.state.spine`, as that of a local view with a path.
"""
