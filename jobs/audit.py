"""Audit a cluster: which copies are missing, and which ledgers wait for recovery.

spark-submit jobs/audit.py --metadata file:///data/bk
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("audit")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
