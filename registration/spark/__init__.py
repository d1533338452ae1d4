"""Planning and backtests on Spark: the only code that imports pyspark, and only when it runs."""
