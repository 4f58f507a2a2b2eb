"""What repairs elsewhere got wrong about ledgers that are open, or were fenced."""

from collections.abc import Callable

import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies

from .scenes import audited, copies, members, take


@pytest.mark.parametrize("lost", [2, 1])
def test_rb_25_an_open_ledger_that_lost_a_bookie_with_nothing_of_it_is_recovered_at_once(
    make_rig: Callable[..., Rig], lost: int
) -> None:
    """Its only entry is on the first two of three; the next one to be lost may have it."""
    rig = make_rig(kind="memory", bookie_count=4)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(ensemble_size=3, write_quorum_size=2, ack_quorum_size=2)
        handle.append(b"0")
        handle.release()
        names = members(rig, handle.ledger_id)
        rig.lose(names[lost])
        [waiting] = audited(rig).details["waiting"]
        assert (waiting["ledger_id"], waiting["waiting_for"]) == (handle.ledger_id, [names[lost]])
        report = verbs.repair(rig.uri, no_lease=True, open_grace=0)
        assert report.exit_status == 0, report.left
        rig.lose(names[1 if lost == 2 else 0])
        [entry] = keeper.open_ledger(handle.ledger_id).read()
        assert entry.value == b"0"


def test_rb_26_copies_are_made_where_a_fence_is(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", bookie_count=3)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        wait_for_all_copies(handle)
        handle.release()
        keeper.recover_ledger(handle.ledger_id)
        one = members(rig, handle.ledger_id)[0]
        assert [name for name in rig.names(one) if name.endswith("/terms/00000002")]
        take(rig, one, "/journal/", handle.ledger_id)
        assert verbs.repair(rig.uri, no_lease=True).done["places"] == 1
        assert copies(audited(rig)) == []
        assert members(rig, handle.ledger_id)[0] == one
