"""Copy a log's older rows to a Delta table, and verify them there.

spark-submit --packages io.delta:delta-spark_4.2_2.13:4.4.0 \\
    --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \\
    --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \\
    jobs/offload.py LOG --table /data/table --accept-single-copy --metadata file:///data/bk

A table in a bucket (``--table s3a://bucket/table``) needs Hadoop's client of S3 too, in the version
of Spark's Hadoop: ``--packages …,org.apache.hadoop:hadoop-aws:3.5.0`` for Spark 4.2. Spark takes
its endpoint from ``--conf spark.hadoop.fs.s3a.bucket.BUCKET.endpoint=URL``.
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("offload")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
