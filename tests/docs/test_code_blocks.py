"""The code on the pages runs as it stands there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bkspark.cluster.cluster import init_cluster

from ..thorough import always  # noqa: TID252
from .code_blocks import blocks, make_places

ROOT = Path(__file__).parents[2]
FIRST_PAGES = ("README.md", "docs/quickstart.md")
"""They make the cluster that they use; the others are given one."""
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))
    if "_build" not in path.parts and path.parent.name != "reference" and blocks(path)
)


def test_pages_have_code() -> None:
    assert {*FIRST_PAGES, "docs/dataframes.md", "docs/streaming.md", "docs/python.md"} <= {*PAGES}


@pytest.mark.parametrize("page", always(["docs/python.md"], PAGES))
def test_every_block_of_a_page_runs(page: str, tmp_path: Path) -> None:
    folder = make_places(tmp_path / "page")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    if page not in FIRST_PAGES:
        uri = (folder / "data/meta").as_uri()
        init_cluster(uri, [(folder / f"disk{number}/bk").as_uri() for number in (1, 2, 3)])
        environment["BKSPARK_METADATA_URI"] = uri
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/docs/code_blocks.py"), str(ROOT / page), str(folder)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
