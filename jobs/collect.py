"""Free what deleted ledgers, truncations, overwrites and aborted writes left on bookies.

spark-submit jobs/collect.py --metadata file:///data/bk
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("collect")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
