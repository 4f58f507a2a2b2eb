"""The data source and Spark actions: the only folder that imports pyspark."""
