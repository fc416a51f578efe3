"""The state of a view as a data source of Spark: `spark.read.format("ebbflow").load(path)`."""
