"""Delete the oldest entries of a log that its settings do not keep.

spark-submit jobs/retain.py LOG --metadata file:///data/bk --max-seconds 7d --yes
"""

import sys

from bkspark.cli.jobs import job_of

main = job_of("retain")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
