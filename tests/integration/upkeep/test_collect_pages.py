"""Pages of logs that nothing names any more are collected with the ledgers that they list.

Pages have room for two ledgers here, and a record for four.
"""

import os
from collections.abc import Callable, Iterator

import pytest

from bkspark import verbs
from bkspark.admin.collecting.garbage import SpentPages
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.log_records import LogPages
from bkspark.errors import CorruptDataError, MetadataVersionError, NoSuchEntryError
from bkspark.format import layout
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.log.ledger_list import LogPage, PageContents
from tests.integration.log_scenes import NAME, fill, values
from tests.integration.rig import Rig, flat, partitions_of
from tests.kit.faulty import Fault, Operation
from tests.small_pages import forget_pages, pages_of

from .garbage import collected
from .small_ledgers import compacted

COUNTS = (2, 1, 3, 1, 1, 2, 2, 1, 1, 3, 1, 2, 1, 2, 1, 1, 2, 1, 3, 1)


@pytest.fixture(autouse=True)
def small_pages() -> Iterator[None]:
    with pages_of(2):
        yield


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=4)


@pytest.fixture
def keeper(rig: Rig) -> Iterator[BookKeeper]:
    with BookKeeper(rig.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    made = keeper.create_log(NAME)
    fill(made, *COUNTS)
    return made


def pages(rig: Rig, name: str = NAME) -> set[str]:
    with Cluster(rig.uri) as cluster:
        return set(cluster.logs.pages(name).names())


def named(rig: Rig, name: str = NAME) -> set[str]:
    with Cluster(rig.uri) as cluster:
        return {page.name for page in cluster.log(name).value.every_page()}


def finished(rig: Rig) -> Report:
    """The first collection frees the ledgers, and the next one what listed them."""
    collected(rig)
    return collected(rig)


# --- what goes ------------------------------------------------------------------------------------


def test_pages_of_truncated_ledgers_go_and_the_log_stays(rig: Rig, log: LogHandle) -> None:
    before = pages(rig)
    log.truncate(15)
    kept = values(log)
    plan = verbs.collect(rig.uri, dry_run=True)
    assert plan.plan["pages"] == 0
    assert collected(rig).done["pages"] == 0  # its ledgers were there
    plan = verbs.collect(rig.uri, dry_run=True)
    assert pages(rig) >= before
    report = collected(rig)
    assert report.plan["pages"] == plan.plan["pages"] == report.done["pages"] > 3
    assert named(rig) <= pages(rig)
    assert len(pages(rig) - named(rig)) <= 2  # half of a page, or a page above one, is listed still
    forget_pages()
    assert values(log) == kept
    fill(log, *COUNTS)
    assert values(log)[: len(kept)] == kept


def test_a_log_that_is_deleted_leaves_no_page(rig: Rig, log: LogHandle, keeper: BookKeeper) -> None:
    assert len(pages(rig)) > 5
    keeper.delete_log(log.name)
    finished(rig)
    assert pages(rig) == set()
    again = keeper.create_log(NAME)
    sent = fill(again, *COUNTS)
    finished(rig)
    forget_pages()
    assert values(again) == sent


def test_pages_of_dropped_ids_go(rig: Rig) -> None:
    for number in range(12):
        rig.write(partitions_of(1, first=number))
    rig.write(partitions_of(3), is_overwrite=True)
    assert pages(rig, rig.log_name)
    finished(rig)
    assert collected(rig).done["pages"] == 0
    assert pages(rig, rig.log_name) == named(rig, rig.log_name) == set()
    assert rig.rows() == flat(partitions_of(3))


def test_pages_of_what_was_compacted_go_with_it(rig: Rig, log: LogHandle) -> None:
    """Its readers are left the ledgers for a day, so they are left the pages."""
    held, sent = log.record, values(log)
    before = pages(rig)
    compacted(rig, NAME)
    finished(rig)
    assert pages(rig) >= before
    forget_pages()
    assert len(list(held.every_ledger())) == len(COUNTS)
    assert verbs.collect(rig.uri, abandoned_after=0).left == []
    assert verbs.collect(rig.uri, abandoned_after=0).done["pages"] >= len(before)
    assert pages(rig) == named(rig)
    assert values(log) == sent


# --- what stays -----------------------------------------------------------------------------------


def test_the_page_of_one_who_lost_a_race_stays_as_long_as_its_ledgers(
    rig: Rig, log: LogHandle
) -> None:
    """Rule 1: nobody can tell it from one that somebody reads by."""
    made = log._cluster.logs.page_maker(log.record)(page_of(log))
    assert made.name not in named(rig)
    finished(rig)
    assert made.name in pages(rig)
    log.truncate(log.end_offset)
    finished(rig)
    assert made.name not in pages(rig)


def test_a_page_goes_with_the_last_of_its_ledgers(rig: Rig, log: LogHandle) -> None:
    places = list(log.record.every_ledger())
    make = log._cluster.logs.page_maker(log.record)
    across = make(PageContents(ledgers=tuple(places[4:6])))
    log.truncate(places[5].first_offset)
    finished(rig)
    assert across.name in pages(rig)
    log.truncate(places[6].first_offset)
    finished(rig)
    assert across.name not in pages(rig)


def test_a_page_of_pages_goes_with_the_last_of_them(rig: Rig, log: LogHandle) -> None:
    places = list(log.record.every_ledger())
    make = log._cluster.logs.page_maker(log.record)
    below = [make(PageContents(ledgers=tuple(places[at : at + 2]))) for at in (4, 6)]
    above = make(PageContents(pages=tuple(below)))
    log.truncate(places[6].first_offset)
    finished(rig)
    assert (below[0].name in pages(rig), above.name in pages(rig)) == (False, True)
    log.truncate(places[8].first_offset)
    finished(rig)
    assert {above.name, below[1].name}.isdisjoint(pages(rig))


def test_a_listing_that_shows_too_little_frees_no_page_of_pages(
    rig: Rig, log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = list(log.record.every_ledger())
    make = log._cluster.logs.page_maker(log.record)
    below = make(PageContents(ledgers=tuple(places[4:6])))
    above = make(PageContents(pages=(below,)))
    monkeypatch.setattr(LogPages, "names", lambda _self: [above.name])
    assert collected(rig).plan["pages"] == 0


def page_of(log: LogHandle) -> PageContents:
    return PageContents(ledgers=tuple(log.record.every_ledger())[:2])


def test_whoever_has_made_a_page_meanwhile_loses_or_keeps_it(rig: Rig, log: LogHandle) -> None:
    """Rule 2: his compare-and-set is on its way while pages are collected."""
    log.truncate(15)
    collected(rig)
    with Cluster(rig.uri) as cluster:
        work = SpentPages(cluster, GoneLedgers(cluster.store, cluster.cluster_id))
        spent = work.found()
        assert list(spent) == [NAME]
        seen = cluster.log(NAME)
        assert work.free(NAME, spent[NAME]) == len(spent[NAME])
        with pytest.raises(MetadataVersionError):
            cluster.logs.replace(NAME, seen.value.stamped(1), seen)


def test_what_is_named_by_then_is_not_removed(rig: Rig, log: LogHandle) -> None:
    """Rule 2: what a plan names is looked at anew."""
    sent, before = values(log), pages(rig)
    source = log.record.source
    tops = [page for page in log.record.older if isinstance(page, LogPage)]
    below = [page for top in tops for page in source.contents(top).pages]
    assert below
    with Cluster(rig.uri) as cluster:
        work = SpentPages(cluster, GoneLedgers(cluster.store, cluster.cluster_id))
        assert work.free(NAME, [page.name for page in (*tops, *below)]) == 0
    forget_pages()
    assert pages(rig) == before
    assert values(log) == sent


def test_two_at_once_and_one_who_changes_the_log_meanwhile(rig: Rig, log: LogHandle) -> None:
    log.truncate(15)
    kept = values(log)
    collected(rig)
    with Cluster(rig.uri) as cluster:
        works = [
            SpentPages(cluster, GoneLedgers(cluster.store, cluster.cluster_id)) for _ in range(2)
        ]
        spent = [work.found()[NAME] for work in works]
        assert works[0].free(NAME, spent[0]) > 3
        fill(log, 1)
        works[1].free(NAME, spent[1])
    forget_pages()
    assert values(log)[: len(kept)] == kept
    assert named(rig) <= pages(rig)


# --- who comes late -------------------------------------------------------------------------------


def test_who_holds_an_older_record_is_told_so(rig: Rig, log: LogHandle) -> None:
    held = log.record
    log.truncate(15)
    finished(rig)
    forget_pages()
    with pytest.raises(
        NoSuchEntryError, match=r"has dropped offsets .*; read the log's record again"
    ):
        list(held.every_ledger())
    assert len(list(held.ledgers_in(held.end_offset - 1, held.end_offset))) == 1


def test_a_page_that_is_lost_is_still_told_from_one_that_was_collected(
    rig: Rig, log: LogHandle
) -> None:
    held = log.record
    first = next(page.name for page in held.every_page() if page.height > 1)
    log._cluster.store.delete(layout.log_page_key(NAME, first))
    forget_pages()
    with pytest.raises(CorruptDataError, match="is missing"):
        list(held.every_ledger())
    forget_pages()
    left = verbs.collect(rig.uri).left
    assert left[-1].subject == f"pages of log {NAME}"


def test_a_damaged_page_that_nothing_names_stays_and_is_told(rig: Rig, log: LogHandle) -> None:
    made = log._cluster.logs.page_maker(log.record)(page_of(log))
    key, store = layout.log_page_key(NAME, made.name), log._cluster.store
    found = store.get(key)
    assert found is not None
    store.put(key, found.value[:-1], found.version)
    log.truncate(15)
    verbs.collect(rig.uri)
    report = verbs.collect(rig.uri)
    assert [one.subject for one in report.left] == [f"metadata record {key}"]
    assert report.done["pages"] > 3
    assert made.name in pages(rig)


def test_what_is_no_page_stops_nothing_else(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="memory", bookie_count=3)
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        fill(log, *COUNTS)
        log.truncate(15)
    collected(rig)
    folder = rig.folder / "metadata" / layout.LOG_PAGES_PREFIX / NAME
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/")
    odd = [layout.log_page_name(1, letter * 32) for letter in "abc"]
    os.mkfifo(folder / odd[0])
    for name, make in ((odd[1], os.mkfifo), (odd[2], os.mkdir)):
        (folder / name).mkdir(mode=0o700)
        make(folder / name / f"{1:016x}")
    report = verbs.collect(rig.uri, no_lease=True)
    told = {one.subject.rpartition("/")[2] for one in report.left}
    assert told <= set(odd)
    assert odd[1] in told
    assert report.done["pages"] > 3


def test_a_store_that_fails_while_pages_go_is_told_and_the_next_run_goes_on(
    rig: Rig, log: LogHandle
) -> None:
    log.truncate(15)
    kept = values(log)
    collected(rig)
    calls = []

    def decide(_number: int, operation: Operation) -> Fault | None:
        is_page = operation.name.startswith(layout.LOG_PAGES_PREFIX)
        if operation.call == "delete" and is_page:
            calls.append(operation.name)
        return Fault() if is_page and operation.call == "delete" and len(calls) > 2 else None

    with rig.faults.installed():
        rig.faults.decide = decide
        report = verbs.collect(rig.uri)
    rig.faults.forget()
    assert [one.subject for one in report.left] == [f"pages of log {NAME}"]
    assert collected(rig).done["pages"] == report.plan["pages"] - 2
    forget_pages()
    assert values(log) == kept
