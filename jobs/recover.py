"""Recover ledgers: fence their writers and close them, without losing an acknowledged entry.

spark-submit jobs/recover.py --metadata file:///data/bk --all
spark-submit jobs/recover.py --metadata file:///data/bk --ledger 7
"""

import sys

from bkspark.cli.jobs import recover_job

main = recover_job

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
