"""``python -m bkspark`` runs the command line where the script ``bkspark`` is not on the PATH."""

import sys

from bkspark.cli import main

if __name__ == "__main__":
    sys.exit(main())
