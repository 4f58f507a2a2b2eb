"""The data source and Spark actions. The folders below this layer never import pyspark."""
