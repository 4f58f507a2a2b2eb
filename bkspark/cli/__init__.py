"""The command ``bkspark``. Data goes to stdout, everything else to stderr."""

from bkspark.cli.main import main

__all__ = ["main"]
