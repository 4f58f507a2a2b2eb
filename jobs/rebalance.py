"""Move copies from bookies that have more than others to those that have less.

spark-submit jobs/rebalance.py --metadata file:///data/bk
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("rebalance")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
