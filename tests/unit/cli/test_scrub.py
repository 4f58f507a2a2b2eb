"""``bkspark scrub``: what it prints, and how it ends."""

import json

import pytest


@pytest.fixture
def ledger_id(small_cluster, numbers):
    return small_cluster.append("events", [numbers(0, 9)])


def damage(cluster, at=600):
    """Flip a bit of an entry log; its bookie and name."""
    path = min(cluster.folder.glob("bookie-*/ledgers/*/*/entries/*"))
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    bookie_id, *name = path.relative_to(cluster.folder).parts
    return bookie_id, "/".join(name)


def test_what_is_good_is_told_in_one_line(run, ledger_id):
    status, out, err = run("scrub")
    assert (status, out.splitlines()[1:]) == (0, [])
    assert err.startswith("scrub: 1 ledger, ")
    assert err.endswith(" bytes: all is well (all that was read is good)\n")


def test_what_is_damaged_is_a_row_and_the_exit_status_is_1(run, small_cluster, ledger_id):
    bookie_id, name = damage(small_cluster)
    status, out, err = run("scrub")
    [row] = [line.split("\t") for line in out.splitlines()[1:]]
    assert (status, row[:3]) == (1, [str(ledger_id), bookie_id, name])
    assert err.splitlines()[0].startswith(f"ledger {ledger_id} on {bookie_id}: {name}, b")
    assert err.endswith(": 1 damaged file: 1 copy of 1 ledger to be made again\n")
    assert run("audit")[0] == 1


def test_the_document_has_plan_done_left_and_counters(run, small_cluster, ledger_id):
    bookie_id, name = damage(small_cluster)
    status, out, _ = run("scrub", "--json", "--ledger", ledger_id, "--max-bytes-per-second", "1e9")
    document = json.loads(out)
    assert status == 1
    assert document["plan"]["max_bytes_per_second"] == 1e9
    assert document["counters"]["NUM_DAMAGED_COPIES"] == 1
    assert [row["file"] for row in document["damage"]] == [name]
    assert [left["subject"] for left in document["left"]] == [f"ledger {ledger_id} on {bookie_id}"]


def test_a_sample_that_is_none_is_bad_use(run):
    status, out, err = run("scrub", "--sample", "2")
    assert (status, out) == (2, "")
    assert "a sample cannot be 2.0 of the files" in err


def last_scrub(run):
    document = json.loads(run("status", "--json")[1])
    [found] = [f for f in document["findings"] if f["subject"] == "scrub"]
    return found["level"], found["message"], found["fix"]


def test_status_and_metrics_say_when_the_last_one_was_and_what_it_found(
    run, small_cluster, ledger_id
):
    level, message, fix = last_scrub(run)
    assert (level, message) == ("ok", "there was no scrub yet: no byte was checked")
    assert "bkspark scrub" in fix
    run("scrub", "--ledger", ledger_id)
    assert last_scrub(run)[1] == message  # that was not of all
    run("scrub")
    level, message, fix = last_scrub(run)
    assert (level, fix) == ("ok", "")
    assert message.endswith(" files: all data read is good")
    damage(small_cluster)
    run("scrub")
    level, message, fix = last_scrub(run)
    assert level == "warn"
    assert message.endswith(" files: 1 damaged file: 1 copy of 1 ledger to be made again")
    assert "bkspark repair" in fix
    metrics = json.loads(run("metrics", "--json")[1])
    assert metrics["bkspark_scrub_NUM_DAMAGED_FILES"] == 1
    assert metrics["bkspark_last_run_left"]["scrub"] == 1
    assert metrics["bkspark_scrub_TIME"] > 0


def test_a_bookie_that_could_not_be_read_is_in_the_status(run, small_cluster, ledger_id):
    next(small_cluster.folder.glob("bookie-*/ledgers/*/*/journal")).parents[3].rename(
        small_cluster.folder / "away"
    )
    run("scrub")
    level, message, fix = last_scrub(run)
    assert level == "warn"
    assert ": 1 thing left" in message
    assert fix == "`bkspark scrub` says which data could not be read"
