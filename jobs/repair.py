"""Make the copies that are missing of closed ledgers again, the worst first.

spark-submit jobs/repair.py --metadata file:///data/bk
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("repair")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
