"""Scrub a cluster: read every copy and check every byte, on executors.

spark-submit jobs/scrub.py --metadata file:///data/bk
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("scrub")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
