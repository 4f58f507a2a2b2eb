"""The code on the pages runs as it stands there."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from bkspark.cluster.cluster import init_cluster

from ..kit.delta_session import ready_for_delta  # noqa: TID252
from ..thorough import always  # noqa: TID252
from .code_blocks import blocks, make_places
from .servers import SERVERS, own_places

ROOT = Path(__file__).parents[2]
FIRST_PAGES = ("README.md", "docs/quickstart.md", "docs/deploying-on/disks.md", *SERVERS)
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
    (folder / "jobs").symlink_to(ROOT / "jobs")  # it stands for the checkout
    with ExitStack() as needed:
        places = needed.enter_context(SERVERS[page](tmp_path)) if page in SERVERS else {}
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
        if needs_delta(page):
            needed.enter_context(ready_for_delta(environment))
        done = run_page(own_places(page, places, tmp_path), folder, environment)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"


def test_pages_of_stores_have_the_same_steps() -> None:
    pages = sorted(ROOT.glob("docs/deploying-on/*.md"))
    steps = {
        page: re.findall(r"^## (?!Without)(.+)$", page.read_text(), re.MULTILINE) for page in pages
    }
    assert len(pages) > len(SERVERS)
    assert {tuple(names) for names in steps.values()} == {tuple(steps[pages[0]])}


def needs_delta(page: str) -> bool:
    return any("configure_delta" in code for _, code in blocks(ROOT / page))


def run_page(
    page: Path, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tests/docs/code_blocks.py"), str(page), str(folder)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
