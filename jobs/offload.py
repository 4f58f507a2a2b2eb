"""Copy a log's older rows to a Delta table, and verify them there.

spark-submit --packages io.delta:delta-spark_4.2_2.13:4.4.0 \\
    --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \\
    --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \\
    jobs/offload.py LOG --table s3a://bucket/table --metadata file:///data/bk
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("offload")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
