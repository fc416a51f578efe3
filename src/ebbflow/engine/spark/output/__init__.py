"""What a view on Spark gives: DataFrames, change logs, and sinks that get every epoch once."""
