"""The Spark engine: the same program as a data pipeline on PySpark.

Nothing here is loaded by `import ebbflow`; it needs `ebbflow[spark]`. What is here so far is the
ground it stands on:

    kinds     what the fields of a row are, as columns of a table
    arrow     rows with weights to Arrow batches and back: encode, decode, unfit
    schema    row types to Spark schemas and back
    changes   whatever a user gives as the change of an input, in one form: layout, tables
    session   a Spark session that is fit to run on

Only `schema` and `changes` need PySpark to be imported, and `session` to be called.
"""
