"""``bkspark recover``: which ledgers, and how it ends."""

import json

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json, upkeep_records
from bkspark.protocol.upkeep.idleness import Sighting


@pytest.fixture
def ledger_ids(small_cluster):
    found = []
    with BookKeeper(small_cluster.uri) as keeper:
        for _ in range(3):
            handle = keeper.create_ledger()
            handle.append(b"0")
            handle.release()
            found.append(handle.ledger_id)
    return found


def states(uri, ids):
    with Cluster(uri) as cluster:
        return [cluster.ledger(ledger_id).value.state.value for ledger_id in ids]


def test_all_are_recovered_and_shown(run, small_cluster, ledger_ids):
    status, out, err = run("recover", "--all")
    assert (status, out.splitlines()[1:]) == (0, [])
    assert err == "recover: 0 ledgers: all is well (3 open ledgers left to their writers)\n"
    status, out, err = run("recover", "--all", "--open-grace", "0")
    assert [line.split("\t")[:2] for line in out.splitlines()[1:]] == [
        [str(ledger_id), "0"] for ledger_id in ledger_ids
    ]
    assert (status, err) == (0, "recover: 3 ledgers: all is well\n")
    assert states(small_cluster.uri, ledger_ids) == ["CLOSED"] * 3


def test_those_that_are_named_are_recovered(run, small_cluster, ledger_ids):
    status, out, _ = run("recover", ledger_ids[0], ledger_ids[2], "--json")
    document = json.loads(out)
    assert (status, document["done"]) == (0, {"ledgers": 2})
    assert states(small_cluster.uri, ledger_ids) == ["CLOSED", "OPEN", "CLOSED"]


def test_which_ones_must_be_said(run, small_cluster, ledger_ids):
    assert run("recover")[0] == 2
    assert run("recover", ledger_ids[0], "--all")[0] == 2
    assert states(small_cluster.uri, ledger_ids) == ["OPEN"] * 3
    status, out, _ = run("recover", "--all", "--open-grace", "0", "--dry-run")
    assert (status, "ledgers\t3\n" in out) == (0, True)
    assert states(small_cluster.uri, ledger_ids) == ["OPEN"] * 3


def test_what_was_seen_comes_back_as_it_went_and_nothing_else():
    seen = {7: Sighting(7, "1-a-1", 5, {"bookie-1": 9})}
    key = layout.OPEN_LEDGERS_KEY
    assert (
        upkeep_records.decode_sightings(key, upkeep_records.encode_sightings(seen, "nonce")) == seen
    )
    for sizes in ([], {"bookie-1": "9"}):
        fields = {"ledger": 7, "writer": "", "since_ms": 5, "sizes": sizes}
        with pytest.raises(CorruptDataError):
            upkeep_records.decode_sightings(
                key, strict_json.encode(upkeep_records.SIGHTINGS_KIND, key, {"ledgers": [fields]})
            )
    many = {n: Sighting(n, "", 0) for n in range(upkeep_records.SIGHTINGS_MAX + 1)}
    with pytest.raises(CorruptDataError):
        upkeep_records.decode_sightings(key, upkeep_records.encode_sightings(many, "nonce"))
    sizes = {f"bookie-{n}" * 3: 2**62 for n in range(7)}
    token = "0123456789abcdef" * 2
    full = {n: Sighting(n, f"4000000000-{token}-99", 2**62, sizes) for n in range(2000)}
    assert len(upkeep_records.encode_sightings(full, "nonce")) < 2**20
