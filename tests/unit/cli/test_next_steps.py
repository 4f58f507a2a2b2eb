"""What a command says that comes next, and what Ctrl-C says before a command has begun."""

import shutil
import subprocess
import sys

import pytest

from tests.thorough import always


@pytest.mark.parametrize("is_lost", [True, False])
@pytest.mark.parametrize("with_id", [True, False])
def test_an_emptied_place_of_a_bookie_is_begun_anew_by_reinit(run, small_cluster, is_lost, with_id):
    bookie_id = "bookie-1"
    place = small_cluster.bookie(bookie_id)
    shutil.rmtree(place)
    if is_lost:
        assert run("bookie", "lost", bookie_id, "--yes")[0] == 0
    place.mkdir()
    words = ["--id", bookie_id] if with_id else []
    status, _, err = run("bookie", "add", place.as_uri(), *words)
    assert (status, err.count("\n")) == (2, 1)
    assert f"is the place of {bookie_id}" in err
    assert f"`bkspark bookie reinit {bookie_id}`" in err
    assert run("bookie", "reinit", bookie_id, "--yes")[0] == 0


def test_a_cluster_without_bookies_says_how_many_to_add(run, tmp_path):
    uri = (tmp_path / "m").as_uri()
    err = run("init", uri)[2]
    assert err.splitlines()[-1].startswith("next: add at least 3 bookies, ")
    assert f"`bkspark bookie add URL --metadata {uri}`" in err
    other = run("init", (tmp_path / "n").as_uri(), "--bookie", (tmp_path / "b").as_uri())[2]
    assert "next: " not in other


@pytest.mark.parametrize("module", always(["typer"], ["typer", "inspect", "textwrap"]))
def test_ctrl_c_while_commands_are_loaded_is_one_line(tmp_path, module):
    """The module that is loaded stands for the moment at which Ctrl-C comes."""
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt")
    code = "import sys; from bkspark.cli import main; sys.exit(main(['--version']))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "bkspark: stopped\n")
