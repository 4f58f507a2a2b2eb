"""The command line, run in this process."""

import pytest

from bkspark.cli import main


@pytest.fixture
def run(capfd, small_cluster, monkeypatch):
    """``run(*words)`` -> (exit status, stdout, stderr)."""
    monkeypatch.setenv("BKSPARK_METADATA_URI", small_cluster.uri)

    def run(*words):
        status = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return status, out, err

    return run
