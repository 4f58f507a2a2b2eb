"""Empty bookies while the cluster is used, and remove them from it for ever.

spark-submit jobs/decommission.py --metadata file:///data/bk --yes bookie-3 bookie-4
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("decommission")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
