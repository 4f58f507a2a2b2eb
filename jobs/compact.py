"""Make large ledgers of a log's small ones.

spark-submit jobs/compact.py LOG --metadata file:///data/bk
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("compact")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
