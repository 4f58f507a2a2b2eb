"""``bkspark bookie lost``, ``ledger recover --accept-loss``, and what status says of a recovery."""

import json
from dataclasses import replace

import pytest

import bkspark
from bkspark.admin.absent_bookies import declare_lost
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.ledger.recovery.recover import recover
from bkspark.protocol.ledger.metadata import LedgerState


@pytest.fixture
def left_open(small_cluster):
    """A ledger with entries 0 to 2 whose writer ended, on three of the six bookies."""
    with bkspark.BookKeeper(small_cluster.uri) as bookkeeper:
        handle = bookkeeper.create_ledger(settings=bkspark.WriterSettings(explicit_lac_ms=0))
        for value in (b"a", b"b", b"c"):
            handle.append(value)
        handle.release()
    return handle


def ensemble_of(handle):
    return [member.bookie_id for member in handle.metadata.last_fragment.ensemble]


def take_away(cluster, *bookie_ids):
    for bookie_id in bookie_ids:
        cluster.bookie(bookie_id).rename(cluster.folder / f"{bookie_id}.away")


def state_of(cluster, ledger_id):
    with Cluster(cluster.uri) as found:
        return found.ledger(ledger_id).value.state


def test_a_bookie_that_answers_is_not_lost(run, small_cluster):
    status, out, err = run("bookie", "lost", "bookie-1", "--yes")
    assert (status, out) == (2, "")
    assert "bookie-1 is not lost: it answers" in err
    with Cluster(small_cluster.uri) as cluster:
        assert not cluster.lost_members()


def test_nothing_is_declared_without_consent(run, small_cluster):
    take_away(small_cluster, "bookie-1")
    status, _, err = run("bookie", "lost", "bookie-1")
    assert (status, err.count("\n")) == (2, 1)
    assert "give --yes" in err
    with Cluster(small_cluster.uri) as cluster:
        assert not cluster.lost_members()


@pytest.mark.parametrize(
    "words", [["bookie-9"], ["BAD ID"], ["bookie-1", "--incarnation", "0" * 32], []]
)
def test_bad_input_is_status_2(run, small_cluster, words):
    take_away(small_cluster, "bookie-1")
    status, out, err = run("bookie", "lost", *words, "--yes")
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_a_lost_bookie_is_lost_for_ever_and_is_chosen_no_more(run, small_cluster):
    take_away(small_cluster, "bookie-1")
    status, out, _ = run("bookie", "lost", "bookie-1", "--yes", "--json")
    assert (status, json.loads(out)["lost_bookie"]) == (0, "bookie-1")
    assert run("bookie", "lost", "bookie-1", "--yes")[0] == 0
    (small_cluster.folder / "bookie-1.away").rename(small_cluster.bookie("bookie-1"))
    with Cluster(small_cluster.uri) as cluster:
        assert [member.bookie_id for member in cluster.lost_members()] == ["bookie-1"]
        assert "bookie-1" not in {c.member.bookie_id for c in cluster.refresh_candidates()}


def test_an_earlier_incarnation_is_lost_alone(run, small_cluster, left_open):
    """The bookie was set up again under its id: that one is not lost."""
    bookie_id, old = ensemble_of(left_open)[0], left_open.metadata.last_fragment.ensemble[0]
    with Cluster(small_cluster.uri) as cluster:
        cluster.registrations.update(
            bookie_id, lambda record: replace(record, incarnation="2" * 32)
        )
    words = ("bookie", "lost", bookie_id, "--incarnation", old.incarnation, "--yes")
    status, _, err = run(*words)
    assert (status, "it answers, as incarnation" in err) == (2, True)
    take_away(small_cluster, bookie_id)
    assert run(*words)[0] == 0
    with Cluster(small_cluster.uri) as cluster:
        assert cluster.lost_members() == {old}
        assert cluster.is_lost(old)
        assert not cluster.is_lost(replace(old, incarnation="2" * 32))


def test_a_stuck_recovery_is_told_by_status_until_it_is_done(run, small_cluster, left_open):
    away = ensemble_of(left_open)[:2]
    take_away(small_cluster, *away)
    ledger_id = left_open.ledger_id
    assert run("ledger", "recover", ledger_id)[0] == 1
    status, out, _ = run("status", "--json")
    found = json.loads(out)
    [finding] = [f for f in found["findings"] if "IN_RECOVERY" in f["message"]]
    assert (status, finding["level"]) == (1, "fail")
    assert finding["subject"] == f"ledger {ledger_id}"
    assert "entry 3 is in doubt" in finding["message"]
    assert all(bookie_id in finding["message"] for bookie_id in away)
    assert finding["fix"].startswith("bring back one of these bookies, then recover again")
    assert all(f"`bkspark bookie lost {bookie_id}`" in finding["fix"] for bookie_id in away)
    [row] = [row["recovery"] for row in found["unclosed"]]
    assert (row["entry_id"], sorted(row["waiting_for"])) == (3, sorted(away))
    assert row["told"]

    (small_cluster.folder / f"{away[0]}.away").rename(small_cluster.bookie(away[0]))
    assert run("ledger", "recover", ledger_id)[0] == 0
    assert json.loads(run("status", "--json")[1])["unclosed"] == []


def test_a_reason_of_an_earlier_term_is_not_shown(run, small_cluster, left_open):
    def killed(instructions):
        raise KeyboardInterrupt

    take_away(small_cluster, *ensemble_of(left_open)[:2])
    ledger_id = left_open.ledger_id
    assert run("ledger", "recover", ledger_id)[0] == 1
    with Cluster(small_cluster.uri) as cluster, pytest.raises(KeyboardInterrupt):
        recover(cluster, ledger_id, Password(), run=killed)
    [row] = [row["recovery"] for row in json.loads(run("status", "--json")[1])["unclosed"]]
    assert (row["term"], row["reason"], row["waiting_for"]) == (3, None, [])


def test_entries_are_given_up_by_two_words_of_the_operator_and_named(run, small_cluster, left_open):
    """Entry 3 was never written; but the two bookies that could say so are lost."""
    ledger_id, gone = left_open.ledger_id, ensemble_of(left_open)[:2]
    take_away(small_cluster, *gone)
    words = ("ledger", "recover", ledger_id)
    assert "bring back" in run(*words, "--accept-loss", "--yes")[2]  # nobody was declared lost

    assert run("bookie", "lost", gone[0], "--yes")[0] == 0
    status, _, err = run(*words, "--accept-loss", "--yes")
    assert status == 1
    assert f"no sure answer from {gone[1]} " in err.splitlines()[-1]

    assert run("bookie", "lost", gone[1], "--yes")[0] == 0
    status, _, err = run(*words)
    assert status == 1
    assert "only " in err.splitlines()[-1]
    assert "--accept-loss" in err.splitlines()[-1]
    assert state_of(small_cluster, ledger_id) is LedgerState.IN_RECOVERY

    status, _, err = run(*words, "--accept-loss")
    loss = "entries from 3 on are given up, although they may have been acknowledged"
    assert status == 2
    refused = f"cannot ask (no terminal): Close ledger {ledger_id} with this loss: {loss}?"
    assert err.splitlines()[-1] == f"bkspark: {refused}; give --yes"
    assert "--accept-loss" in run("ledger", "show", ledger_id)[1]
    status, out, err = run(*words, "--accept-loss", "--yes", "--json")
    assert (status, json.loads(out)["last_entry_id"], json.loads(out)["lost_from"]) == (0, 2, 3)
    told = err.splitlines()
    [maybe] = json.loads(out)["losses"]
    assert maybe.startswith("of entries 0 to 1, the entries stored on ")
    assert all(bookie_id in maybe.partition(" may have had copies on ")[2] for bookie_id in gone)
    assert f"POSSIBLE DATA LOSS: {maybe}; read the entries to find out" in told
    [line] = [line for line in told if line.startswith("DATA LOSS")]
    assert line.startswith(f"DATA LOSS: {loss}")
    assert told.index(line) > told.index(f"ledger {ledger_id} is CLOSED at entry 2")
    assert state_of(small_cluster, ledger_id) is LedgerState.CLOSED
    assert run("ledger", "read", ledger_id)[1].count("\n") == 3


def journals(cluster, handle):
    """The journals of a ledger, by the index of their bookie."""
    found = (cluster.bookie(name).glob("ledgers/*/*/journal/*") for name in ensemble_of(handle))
    return [next(file for file in files if handle.metadata.token in file.name) for files in found]


def test_a_damaged_journal_is_waited_for_by_nobody_and_given_up_by_one_word(
    run, small_cluster, left_open
):
    """Two of three are damaged in front of entry 0; everybody answers, and nobody can tell."""
    for file in journals(small_cluster, left_open)[:2]:
        data = bytearray(file.read_bytes())
        for at in range(100, len(data), 50):
            data[at] ^= 1
        file.write_bytes(data)
    words = ("ledger", "recover", left_open.ledger_id)
    journals(small_cluster, left_open)[2].unlink()
    status, _, err = run(*words)
    last = err.splitlines()[-1]
    assert status == 1
    assert "entry 0 is in doubt (it may have been acknowledged), and only " in last
    assert all(bookie_id in last for bookie_id in ensemble_of(left_open)[:2])
    assert "ends in wrong bytes" in last
    assert f"`bkspark ledger recover {left_open.ledger_id} --accept-loss` closes it" in last
    assert (
        "this loss: entries from 0 on are given up, although they may have been acknowledged"
        in last
    )
    [row] = [row["recovery"] for row in json.loads(run("status", "--json")[1])["unclosed"]]
    assert ("--accept-loss" in row["hint"], row["waiting_for"]) == (True, [])

    take_away(small_cluster, ensemble_of(left_open)[2])
    assert run(*words, "--accept-loss", "--yes")[0] == 1  # the third may have them
    (small_cluster.folder / f"{ensemble_of(left_open)[2]}.away").rename(
        small_cluster.bookie(ensemble_of(left_open)[2])
    )
    status, out, err = run(*words, "--accept-loss", "--yes", "--json")
    assert (status, json.loads(out)["last_entry_id"], json.loads(out)["lost_from"]) == (0, -1, 0)
    [line] = [line for line in err.splitlines() if line.startswith("DATA LOSS")]
    assert "ends in wrong bytes" in line


def test_a_loss_that_nobody_agrees_to_is_none(small_cluster, left_open):
    gone = ensemble_of(left_open)[:2]
    take_away(small_cluster, *gone)
    asked = []

    def refuses(loss):
        asked.append(loss)
        return False

    with Cluster(small_cluster.uri) as cluster:
        with pytest.raises(bkspark.NotEnoughBookiesError):
            recover(cluster, left_open.ledger_id, Password(), accepts_loss=refuses)
        assert asked == []  # somebody may still come back
        for bookie_id in gone:
            declare_lost(cluster, bookie_id)
        with pytest.raises(bkspark.NotEnoughBookiesError):
            recover(cluster, left_open.ledger_id, Password(), accepts_loss=refuses)
    assert asked == ["entries from 3 on are given up, although they may have been acknowledged"]
    assert state_of(small_cluster, left_open.ledger_id) is LedgerState.IN_RECOVERY


def test_where_too_few_are_left_another_bookie_lets_the_ledger_be_closed(tmp_path, run):
    """Of three bookies two are lost: what the third has must be on two before it is closed."""
    uri = (tmp_path / "meta").as_uri()
    urls = [(tmp_path / f"disk{n}").as_uri() for n in range(4)]
    assert run("init", uri, *[f"--bookie={url}" for url in urls[:3]])[0] == 0
    with bkspark.BookKeeper(uri) as bookkeeper:
        handle = bookkeeper.create_ledger(settings=bkspark.WriterSettings(explicit_lac_ms=0))
        handle.append(b"a")
        handle.release()
    on = ("--metadata", uri)
    for number in (1, 2):
        (tmp_path / f"disk{number - 1}").rename(tmp_path / f"away{number}")
        assert run("bookie", "lost", f"bookie-{number}", "--yes", *on)[0] == 0
    words = ("ledger", "recover", handle.ledger_id, "--accept-loss", "--yes", *on)
    status, _, err = run(*words)
    assert status == 1
    assert "entry 0 was found but cannot be written to 2 bookies" in err.splitlines()[-1]
    assert "`bkspark bookie add URL`" in err.splitlines()[-1]
    assert "DATA LOSS" not in err
    assert "\nwill be lost if the ledger can be closed: entries from 1 on are given up" in err

    assert run("bookie", "add", urls[2], *on)[0] == 2  # it exists already
    assert run("bookie", "add", urls[3], "--id", "bookie-3", *on)[0] == 2
    status, _, err = run("bookie", "add", urls[3], *on)
    assert (status, err) == (0, "added bookie bookie-4\n")
    status, out, err = run(*words, "--json")
    assert (status, json.loads(out)["last_entry_id"]) == (0, 0)
    assert "\nDATA LOSS: entries from 1 on are given up" in err
    assert run("ledger", "read", handle.ledger_id, *on)[1].count("\n") == 1


def test_status_tells_a_lost_bookie_from_one_that_fails(run, small_cluster, left_open):
    gone, failing = ensemble_of(left_open)[:2]
    take_away(small_cluster, gone, failing)
    assert run("bookie", "lost", gone, "--yes")[0] == 0
    found = {item["subject"]: item for item in json.loads(run("status", "--json")[1])["findings"]}
    assert found["bookies"]["message"] == "4 of 5 can be used"
    assert found[gone]["level"] == "warn"
    assert found[gone]["message"].startswith("declared lost: recoveries do not wait for it")
    assert found[failing]["level"] == "fail"
    assert f"`bkspark bookie lost {failing}`" in found[failing]["fix"]
    assert "`bkspark bookie add URL`" in found[gone]["fix"]
    states = [line.split("\t")[:2] for line in run("bookies")[1].splitlines()]
    assert [gone, "lost"] in states
    assert [failing, "unavailable"] in states


def test_a_lost_bookie_that_came_back_is_told_what_it_is_and_what_to_do(
    run, small_cluster, left_open
):
    gone = ensemble_of(left_open)[0]
    take_away(small_cluster, gone)
    assert run("bookie", "lost", gone, "--yes")[0] == 0
    (small_cluster.folder / f"{gone}.away").rename(small_cluster.bookie(gone))
    for command in ("status", "doctor"):
        [line] = [row for row in run(command)[1].splitlines() if f"\t{gone}\t" in row]
        assert "declared lost, but it came back: its data can be read" in line
        assert "add another bookie (`bkspark bookie add URL`)" in line
    assert f"{gone}\tlost, came back\t" in run("bookies")[1]
    status, _, err = run("bookie", "lost", gone, "--yes")  # it is no news
    assert (status, err[:23]) == (0, f"bookie {gone} is lost")


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_a_lost_bookie_leaves_status_once_nothing_is_left_on_it(
    run, small_cluster, left_open, command
):
    def is_told():
        return any(f"\t{gone}\t" in row for row in run(command)[1].splitlines())

    ledger_id, gone = left_open.ledger_id, ensemble_of(left_open)[0]
    take_away(small_cluster, gone)
    assert run("bookie", "lost", gone, "--yes")[0] == 0
    assert is_told()
    assert run("bookie", "add", (small_cluster.folder / "another").as_uri())[0] == 0
    assert run("ledger", "recover", ledger_id)[0] == 0
    assert is_told()  # the ledger still names it
    assert run("ledger", "delete", ledger_id, "--yes")[0] == 0
    assert not is_told()
    assert gone in run("bookies")[1]
    with Cluster(small_cluster.uri) as cluster:
        name = f"{layout.ledger_key(ledger_id)}"
        cluster.store.put(name, b"damaged", cluster.store.get(name).version)
    assert is_told()  # what the damaged record says may be about it


def stuck_reason(run):
    [finding] = [
        found
        for found in json.loads(run("status", "--json")[1])["findings"]
        if "IN_RECOVERY" in found["message"]
    ]
    [row] = json.loads(run("status", "--json")[1])["unclosed"]
    return finding["message"], finding["fix"], row["recovery"]["waiting_for"]


def test_status_says_what_a_recovery_waits_for_after_bookies_were_declared_lost(
    run, small_cluster, left_open
):
    first, second = ensemble_of(left_open)[:2]
    take_away(small_cluster, first, second)
    words = ("ledger", "recover", left_open.ledger_id)
    assert run(*words)[0] == 1
    assert run("bookie", "lost", first, "--yes")[0] == 0
    message, fix, waiting_for = stuck_reason(run)
    assert f"no sure answer from {second} (declared lost since then: {first})" in message
    assert f"`bkspark bookie lost {second}`" in fix
    assert first not in fix
    assert waiting_for == [second]

    assert run("bookie", "lost", second, "--yes")[0] == 0
    message, fix, waiting_for = stuck_reason(run)
    assert message.endswith(
        f"waited for bookies that were declared lost since then: {first}, {second}"
    )
    assert fix.startswith(f"`bkspark ledger recover {left_open.ledger_id}` closes it, or names")
    assert waiting_for == []
    assert "no sure answer" not in run("ledger", "show", left_open.ledger_id)[1]

    assert run(*words)[0] == 1
    message, fix, waiting_for = stuck_reason(run)
    assert f"only {first}, {second} could tell (declared lost)" in message
    assert ("--accept-loss" in fix, waiting_for) == (True, [])


def test_what_the_others_have_is_kept_whoever_is_lost(run, small_cluster, left_open):
    ledger_id, gone = left_open.ledger_id, ensemble_of(left_open)[0]
    take_away(small_cluster, gone)
    assert run("bookie", "lost", gone, "--yes")[0] == 0
    status, out, err = run("ledger", "recover", ledger_id, "--accept-loss", "--json")
    assert (status, json.loads(out)["last_entry_id"]) == (0, 2)  # nothing had to be answered
    assert "lost_from" not in json.loads(out)
    assert f"{gone} was declared lost, so the recovery does not wait for it" in err
    assert "DATA LOSS" not in err
