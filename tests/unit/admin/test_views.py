"""Metadata as tables: what each view says about a cluster that was written to and damaged."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from bkspark.admin import views
from bkspark.admin.auditing.copies import EVERYTHING
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import NoSuchLedgerError
from bkspark.ledger.deleting import delete_ledger
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.batch.commit import abort
from bkspark.protocol.ledger.record import Transaction
from bkspark.quantities import timestamp
from bkspark.spark.options import VIEW_NAMES


def table(cluster, name, log_name=None):
    with Cluster(cluster.uri) as opened:
        return views.table(name, opened, log_name)


def rows(cluster, name, log_name=None):
    return table(cluster, name, log_name).to_pylist()


@pytest.fixture
def written(small_cluster, numbers):
    small_cluster.append("a", [numbers(0, 30), numbers(30, 50)])
    small_cluster.append("a", [numbers(50, 60)], transaction=Transaction("nightly", 7))
    small_cluster.append("b", [numbers(0, 10)])
    return small_cluster


def test_spark_is_offered_every_view_but_that_of_logs() -> None:
    assert {*VIEW_NAMES} == views.VIEWS.keys()


@pytest.mark.parametrize("name", sorted(views.VIEWS))
def test_every_view_has_exactly_its_schema_with_and_without_rows(small_cluster, numbers, name):
    assert table(small_cluster, name).schema == views.VIEWS[name].schema
    small_cluster.append("a", [numbers(0, 10)])
    shutil.rmtree(small_cluster.bookie("bookie-1"))
    assert table(small_cluster, name).schema == views.VIEWS[name].schema
    assert table(small_cluster, name, "a").schema == views.VIEWS[name].schema


@pytest.mark.parametrize("name", sorted(views.VIEWS))
def test_views_of_a_log_that_is_not_there(small_cluster, name):
    with pytest.raises(NoSuchLedgerError):
        table(small_cluster, name, "nope")


def test_logs(written):
    a, b = rows(written, "logs")
    assert (a["log"], a["entries"], a["ledgers"], a["end_offset"]) == ("a", 60, 2, 60)
    assert a["columns"] == ["n: int64", "name: string"]
    assert b["log"] == "b"
    assert rows(written, "logs", "b") == [b]


def test_ledgers_say_where_they_are(written, numbers):
    open_target = written.prepare("a", numbers(0, 1).schema)
    dropped_target = written.prepare("a", numbers(0, 1).schema)
    abort(dropped_target)
    found = {row["ledger_id"]: row for row in rows(written, "ledgers")}
    assert found[0]["place"] == "listed"
    assert (found[0]["state"], found[0]["entries"]) == ("CLOSED", 50)
    unfinished = found[open_target.ledger_id]
    assert (unfinished["place"], unfinished["state"], unfinished["entries"]) == (None, "OPEN", None)
    assert found[dropped_target.ledger_id]["place"] == "dropped"
    assert {row["log"] for row in rows(written, "ledgers", "b")} == {"b"}


def test_a_deleted_ledger_stays_as_a_tombstone_in_ledgers_only(written, numbers):
    target = written.prepare("a", numbers(0, 1).schema)
    with Cluster(written.uri) as cluster:
        delete_ledger(cluster, target.ledger_id)
    assert rows(written, "ledgers")[-1]["state"] == "DELETING"
    assert target.ledger_id not in {row["ledger_id"] for row in rows(written, "fragments")}


def test_fragments(written):
    first = rows(written, "fragments")[0]
    assert (first["first_entry_id"], first["last_entry_id"], first["term"]) == (0, 49, 1)
    assert len(set(first["ensemble"])) == 5


def test_history_has_offsets_and_transactions_in_order(written):
    found = rows(written, "history", "a")
    assert [(row["version"], row["first_offset"], row["entries"]) for row in found] == [
        (0, 0, 50),
        (1, 50, 10),
    ]
    assert found[0]["transactions"] == []
    assert found[1]["transactions"] == [{"app_id": "nightly", "version": 7}]
    assert found[0]["timestamp"] is not None
    committed = [row[name] for row in found for name in ("first_committed", "last_committed")]
    assert None not in committed
    assert committed == sorted(committed)


def told(cluster):
    return [
        (row["version"], row["operation"], row["first_offset"], row["entries"])
        for row in rows(cluster, "history", "a")
    ]


def test_history_says_what_wrote(written, numbers):
    assert told(written) == [(0, "append", 0, 50), (1, "append", 50, 10)]
    written.append("a", [numbers(0, 5)], is_overwrite=True)
    assert told(written) == [(2, "overwrite", 0, 5)]
    silent = WriterSettings(explicit_lac_ms=0)
    with BookKeeper(written.uri) as keeper, keeper.open_log("a").writer(settings=silent) as writer:
        writer.append_many(numbers(5, 6))
        assert told(written)[1:] == [(None, "writer", None, None)]
        writer.roll()
        writer.append_many(numbers(6, 8))
    assert told(written)[1:] == [(3, "writer", 5, 1), (4, "writer", 6, 2)]


def test_a_version_is_that_of_one_write_for_ever(written, numbers):
    written.append("a", [numbers(60, 70)])
    with BookKeeper(written.uri) as keeper:
        keeper.open_log("a").truncate(before_offset=55)
        begin = (None, "truncate", 55, None)
        assert told(written) == [begin, (1, "append", 50, 10), (2, "append", 60, 10)]
        assert rows(written, "history", "a")[0]["timestamp"] is not None
        written.append("a", [numbers(70, 71)])
        keeper.open_log("a").truncate(before_offset=70)
        assert told(written) == [(None, "truncate", 70, None), (3, "append", 70, 1)]
        keeper.delete_log("a")
    written.append("a", [numbers(0, 3)])
    assert told(written) == [(4, "append", 0, 3)]


def test_bookies_say_what_is_wrong_with_them(written):
    shutil.rmtree(written.bookie("bookie-2"))
    found = {row["bookie_id"]: row for row in rows(written, "bookies")}
    assert len(found) == 6
    assert not found["bookie-2"]["is_usable"]
    assert "bookie-2" in found["bookie-2"]["problem"]
    assert found["bookie-1"]["is_usable"]
    assert found["bookie-1"]["problem"] is None


def test_nothing_is_underreplicated_at_first(written):
    assert rows(written, "underreplicated") == []


def ensemble_of(cluster, ledger_id):
    [ids] = [r["ensemble"] for r in rows(cluster, "fragments") if r["ledger_id"] == ledger_id]
    return ids


def test_a_lost_bookie_is_missing_from_every_ledger_on_it(written):
    lost = ensemble_of(written, 0)[1]
    shutil.rmtree(written.bookie(lost))
    found = [row for row in rows(written, "underreplicated") if row["ledger_id"] == 0]
    assert [(row["bookie_id"], row["missing"]) for row in found] == [(lost, EVERYTHING)]


def entry_logs(written, bookie_id, ledger_id=0):
    return sorted(written.bookie(bookie_id).glob(f"ledgers/*/{ledger_id:016x}/entries/*"))


def test_a_lost_and_a_cut_file_are_found_one_by_one(written):
    bookie_id = ensemble_of(written, 0)[2]
    gone, cut, *_ = entry_logs(written, bookie_id)
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])
    found = rows(written, "underreplicated", "a")
    assert {Path(row["missing"]).name: row["reason"] for row in found} == {
        gone.name: "the bookie does not have the file",
        cut.name: f"the file has {cut.stat().st_size} bytes in place of {cut.stat().st_size + 1}",
    }
    assert {row["bookie_id"] for row in found} == {bookie_id}
    assert rows(written, "underreplicated", "b") == []


def test_a_damaged_journal_is_found(written):
    bookie_id = ensemble_of(written, 0)[0]
    [journal] = written.bookie(bookie_id).glob(f"ledgers/*/{0:016x}/journal/*")
    journal.write_bytes(journal.read_bytes()[:-1])
    [row] = rows(written, "underreplicated")
    assert row["bookie_id"] == bookie_id
    assert row["missing"].endswith("/journal")


def test_all_journals_lost_is_reported_and_does_not_stop_the_others(written):
    for bookie_id in ensemble_of(written, 0):
        [journal] = written.bookie(bookie_id).glob(f"ledgers/*/{0:016x}/journal/*")
        journal.unlink()
    found = rows(written, "underreplicated")
    assert len(found) == 5
    assert {row["ledger_id"] for row in found} == {0}


def test_what_is_missing_of_a_ledger_with_a_password_is_found_without_it(small_cluster, numbers):
    secret = Password(literal="secret")
    small_cluster.append("s", [numbers(0, 10)], password=secret)
    member, other = ensemble_of(small_cluster, 0)[:2]
    entry_logs(small_cluster, member)[0].unlink()
    shutil.rmtree(small_cluster.bookie(other))
    found = {row["bookie_id"]: row for row in rows(small_cluster, "underreplicated")}
    assert set(found) == {member, other}
    assert {who for who, row in found.items() if row["is_unknown"]} == {other}


def test_a_dropped_ledger_is_not_missed(written, numbers):
    target = written.prepare("a", numbers(0, 1).schema)
    abort(target)
    for address in target.ensemble:
        shutil.rmtree(written.bookie(address.bookie_id))
    assert target.ledger_id not in {r["ledger_id"] for r in rows(written, "underreplicated")}


def test_views_are_arrow_tables_of_types_spark_knows():
    for view in views.VIEWS.values():
        for field in view.schema:
            assert not pa.types.is_dictionary(field.type)
            if pa.types.is_timestamp(field.type):
                assert field.type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("milliseconds", [0, -1, 2**53, 253_402_300_800_000])
def test_a_time_outside_of_the_calendar_is_none(milliseconds):
    assert timestamp(milliseconds) is None
    assert timestamp(253_402_300_799_000).year == 9999
