"""The first load, and any that is large: queries of Spark write the state as sorted columns."""
