"""What a value may look like on a shell: units, bare paths, passwords of logs without entries."""

import pytest


@pytest.fixture(autouse=True)
def small_entries(small_cluster, numbers, monkeypatch):
    small_cluster.append("flights", [numbers(0, 30), numbers(30, 50)])
    monkeypatch.setenv("BKSPARK_METADATA_URI", small_cluster.uri)


def test_the_password_of_a_log_is_checked_though_it_is_empty(run, small_cluster, monkeypatch):
    monkeypatch.setenv("BKSPARK_METADATA_URI", small_cluster.uri)
    monkeypatch.setenv("PW", "secret")
    monkeypatch.setenv("WRONG", "wrong")
    with_password = ("--digest-type", "MAC", "--password-env", "PW")
    assert run("log", "create", "s", *with_password)[0] == 0
    for limit in ([], ["--limit", "0"], ["--start", "0", "--end", "0"]):
        assert run("log", "read", "s", *limit, "--password-env", "PW")[0] == 0
        for given in ([], ["--password-env", "WRONG"]):
            status, out, err = run("log", "read", "s", *limit, *given)
            assert (status, out, "password" in err) == (2, "", True)


@pytest.mark.parametrize(
    "words",
    [
        ["log", "retain", "flights", "--max-seconds", "1h", "--max-bytes", "1GB", "--dry-run"],
        ["compact", "flights", "--target-bytes", "1GB", "--dry-run"],
        ["repair", "--dry-run", "--open-grace", "1h", "--max-bytes-per-second", "50MB"],
        ["recover", "--all", "--dry-run", "--open-grace", "10min"],
        ["rebalance", "--dry-run", "--max-bytes-per-second", "50MB"],
        ["collect", "--dry-run", "--abandoned-after", "7d"],
    ],
)
def test_sizes_and_times_take_units(run, words):
    assert run(*words)[0] == 0
    place = next(n for n, word in enumerate(words) if word[-1] in "hBnd" and word[0].isdecimal())
    status, out, err = run(*words[:place], "5 apples", *words[place + 1 :])
    assert (status, out, err.count("\n")) == (2, "", 1)
    option = words[place - 1]
    assert err.startswith(f"bkspark: Invalid value for '{option}': {option} must be a ")
    assert words[place - 1] in err


def test_a_bare_path_is_a_directory(run, tmp_path, monkeypatch):
    status, out, _ = run("init", tmp_path / "m", "--bookie", tmp_path / "b")
    assert (status, out) == (0, f"export BKSPARK_METADATA_URI={(tmp_path / 'm').as_uri()}\n")
    monkeypatch.setenv("BKSPARK_METADATA_URI", f"{tmp_path / 'm'}\n")
    assert run("bookie", "add", tmp_path / "c")[0] == 0
    [_, *lines] = run("bookies")[1].splitlines()
    assert [line.split("\t")[4] for line in lines] == [(tmp_path / n).as_uri() for n in "bc"]
    assert run("status", "--metadata", tmp_path / "m")[0] == 0
