"""The only folder that imports pyspark: the data source and Spark actions."""
