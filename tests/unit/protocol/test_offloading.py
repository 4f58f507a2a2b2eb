"""A log's tier: every change of the record keeps each readable offset where the record says."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.errors import InvalidRequestError, MetadataVersionError
from bkspark.format import tier_record
from bkspark.protocol.log import offloading
from bkspark.protocol.log.compaction import compacted, runs_of
from bkspark.protocol.log.ledger_list import LOST_ENTRIES, LoggedLedger
from bkspark.protocol.log.record import LogRecord, paged
from bkspark.protocol.log.retention import retained_from
from bkspark.protocol.log.tier import (
    COLUMNS_MAX,
    GAPS_MAX,
    SEGMENTS_KEPT,
    SEGMENTS_MAX,
    SEGMENTS_OF_PAGE,
    FreedLedgers,
    Intent,
    SegmentsPage,
    TableVersion,
    Tier,
    TierColumn,
    TierSegment,
    TierTable,
)
from tests.log_with import log_with

from .test_log import EMPTY, ledger, splice
from .test_paging import Shelf, log_of

URL, TABLE_ID = "file:///tables/events", "an-id"
EPOCH, OTHER_EPOCH, ATTEMPT = "e" * 32, "f" * 32, "a" * 32
PAGE = "00000000-" + "d" * 32


def intent(log: LogRecord, end: int, attempt: str = ATTEMPT) -> Intent:
    return Intent(offloading.next_begin(log), end, attempt, 0)


def begun(log: LogRecord, end: int) -> LogRecord:
    """With an intent up to ``end``."""
    if log.tier is None:
        return offloading.attached(log, URL, TABLE_ID, EPOCH, intent(log, end))
    return offloading.with_intent(log, log.tier.epoch, intent(log, end))


def done(log: LogRecord) -> LogRecord:
    """With the intent finished."""
    assert log.tier is not None
    assert log.tier.intent is not None
    wanted = log.tier.intent
    begin = wanted.begin
    if wanted.begin < log.first_offset < wanted.end:
        begin = log.first_offset
    segment = offloading.segment_of(log, begin, wanted.end, PAGE, 5)
    return offloading.finished(log, log.tier.epoch, wanted.attempt, segment, found_in(log))


def found_in(log: LogRecord) -> TierTable:
    """The log's table, as a look found it."""
    assert log.tier is not None
    return replace(log.tier.table, verified=TableVersion(1))


def copied(log: LogRecord, end: int) -> LogRecord:
    return done(begun(log, end))


def freed(log: LogRecord, end: int) -> LogRecord:
    assert log.tier is not None
    return offloading.freed(log, log.tier.epoch, end, TableVersion(1), 9)


def released(log: LogRecord) -> LogRecord:
    assert log.tier is not None
    return offloading.released(log, log.tier.epoch, log.tier.freed, TableVersion(1))


# --- any sequence of changes -----------------------------------------------------------------

Step = tuple[str, int]
KINDS = ("append", "truncate", "overwrite", "delete", "compact", "intent", "finish", "free")
STEPS = st.lists(
    st.tuples(st.sampled_from((*KINDS, "release", "take back", "fence")), st.integers(1, 100)),
    max_size=16,
)


class Model:
    """A log, and where each of its offsets is: its ledger, and whether the table has it."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.log = log_with(EMPTY, source=self.shelf)
        self.ids = count(1)
        self.ledger_of: dict[int, int] = {}
        self.in_table: set[int] = set()

    def do(self, what: str, how_much: int) -> None:
        for _ in range(1 + how_much // 5 if what == "append" else 1):
            self.log = self.shelf.short(getattr(self, f"_{what.replace(' ', '_')}")(how_much))
            self.check()

    def _append(self, how_much: int) -> LogRecord:
        made = ledger(next(self.ids), 1 + how_much % 5)
        end = self.log.end_offset
        self.ledger_of |= dict.fromkeys(range(end, end + 1 + how_much % 5), made.ledger_id)
        return splice(self.log, made).stamped(made.ledger_id)

    def _truncate(self, how_much: int) -> LogRecord:
        span = self.log.end_offset - self.log.first_offset
        return self.log.truncated(self.log.first_offset + span * how_much // 100).stamped(7)

    def _overwrite(self, _: int) -> LogRecord:
        made = ledger(next(self.ids))
        self.ledger_of = dict.fromkeys(range(4), made.ledger_id)
        self.in_table = set()
        return splice(self.log, made, overwrite=True)

    def _delete(self, _: int) -> LogRecord:
        self.ledger_of, self.in_table = {}, set()
        return self.log.vacated()

    def _compact(self, how_much: int) -> LogRecord:
        places = list(self.log.every_ledger())
        run = places[how_much % len(places) :][: 1 + how_much % 7] if places else []
        if not run:
            return self.log
        made = ledger(next(self.ids), sum(place.entry_count for place in run))
        begin, end = run[0].first_offset, run[-1].end_offset
        tier = self.log.tier
        try:
            after = compacted(self.log, run, made, self.shelf.make).stamped(made.ledger_id)
        except MetadataVersionError:
            assert tier is not None
            assert any(begin < border < end for border in tier.borders)
            return self.log
        self.ledger_of |= dict.fromkeys(range(begin, end), made.ledger_id)
        return after

    def _intent(self, how_much: int) -> LogRecord:
        most = how_much * self.log.length_bytes // 50
        end = offloading.eligible_end(self.log, most_bytes=most)
        if self.log.is_tombstone or end <= offloading.next_begin(self.log):
            return self.log
        return begun(self.log, end)

    def _finish(self, _: int) -> LogRecord:
        tier = self.log.tier
        if tier is None or tier.intent is None:
            return self.log
        self.in_table |= set(range(tier.intent.begin, tier.intent.end))
        return done(self.log)

    def _free(self, how_much: int) -> LogRecord:
        tier = self.log.tier
        if tier is None or not tier.segments:
            return self.log
        return freed(self.log, tier.segments[how_much % len(tier.segments)].end)

    def _release(self, _: int) -> LogRecord:
        return self.log if self.log.tier is None else released(self.log)

    def _take_back(self, _: int) -> LogRecord:
        tier = self.log.tier
        if tier is None:
            return self.log
        if tier.of_freed.waiting:
            self.in_table -= set(range(tier.released, self.log.end_offset))
        return offloading.taken_back(self.log, tier.epoch)

    def _fence(self, how_much: int) -> LogRecord:
        tier = self.log.tier
        return self.log if tier is None else offloading.fenced(self.log, tier.epoch, "e" * 31 + "0")

    def check(self) -> None:
        log = self.log
        to_delete = set(log.every_id_to_delete())
        waiting = set(log.every_waiting_id())
        places = {
            offset: place.ledger_id
            for place in log.every_ledger()
            for offset in range(place.first_offset, place.end_offset)
        }
        for offset in range(log.first_offset, log.end_offset):
            if offset < log.freed:
                assert offset in self.in_table
                assert log.tier is not None
                assert offset < log.tier.copied
            else:
                assert places[offset] == self.ledger_of[offset]
                assert self.ledger_of[offset] not in to_delete | waiting
        for ledger_id in waiting:
            assert log.has_dropped(ledger_id)
            assert log.is_waiting(ledger_id)
            assert not log.lists(ledger_id)
            assert ledger_id not in to_delete


@settings(deadline=None, max_examples=50)
@given(STEPS)
def test_each_readable_offset_is_where_the_record_says(steps: list[Step]) -> None:
    model = Model()
    for step in steps:
        model.do(*step)


# --- single rules ----------------------------------------------------------------------------


def test_an_offload_copies_frees_and_releases_whole_ledgers() -> None:
    log = copied(log_of(20, Shelf()), 40)
    assert log.tier is not None
    assert (log.tier.copied, log.tier.freed) == (40, 0)
    log = freed(log, 40)
    assert (log.first_offset, log.freed, log.listed.first_version) == (0, 40, 10)
    assert list(log.listed_ids) == list(range(10, 20))
    assert sorted(log.every_waiting_id()) == list(range(10))
    assert not log.to_delete_count
    assert not list(log.every_dropped_id())
    log = released(log)
    assert sorted(log.every_id_to_delete()) == list(range(10))
    assert log.end_offset == 80


def test_a_log_that_is_freed_as_a_whole_goes_on_at_its_end() -> None:
    log = released(freed(copied(log_of(3, Shelf()), 12), 12))
    assert (log.end_offset, log.ledger_count, log.last_ms) == (12, 0, 0)
    log = splice(log, ledger(50))
    assert next(iter(log.every_ledger())).first_offset == 12
    assert log.truncated(12).first_offset == 12


def test_the_times_of_rows_never_go_back_after_all_ledgers_were_freed() -> None:
    place = LoggedLedger(1, 0, 4, 40, 1, 0, 900, 1_000)
    log = released(freed(copied(log_with(EMPTY, ledgers=(place,)), 4), 4))
    assert splice(log, ledger(2)).ledgers[0].first_ms == 1_000


def test_two_offloads_work_on_one_intent() -> None:
    log = begun(log_of(5, Shelf()), 8)
    assert offloading.with_intent(log, EPOCH, intent(log, 16, "b" * 32)) is log
    after = done(log)
    segment = offloading.segment_of(log, 0, 8, PAGE, 5)
    assert offloading.finished(after, EPOCH, ATTEMPT, segment, found_in(log)) is after


def test_a_second_attachment_of_one_epoch_changes_nothing() -> None:
    log = copied(log_of(5, Shelf()), 8)
    again = Intent(0, 8, ATTEMPT, 0)
    assert offloading.attached(log, URL, TABLE_ID, EPOCH, again) is log
    with pytest.raises(MetadataVersionError, match="ended by another command"):
        offloading.attached(log, URL, TABLE_ID, OTHER_EPOCH, again)


def test_a_later_offload_cannot_begin_in_the_middle() -> None:
    log = copied(log_of(5, Shelf()), 8)
    with pytest.raises(MetadataVersionError, match="up to offset 8"):
        offloading.with_intent(log, EPOCH, Intent(0, 16, ATTEMPT, 0))


@pytest.mark.parametrize("end", [3, 21, 0])
def test_an_intent_ends_where_a_closed_ledger_does(end: int) -> None:
    with pytest.raises(InvalidRequestError):
        begun(log_of(5, Shelf()), end)


def test_an_ended_epoch_changes_nothing() -> None:
    log = begun(log_of(5, Shelf()), 8)
    segment = offloading.segment_of(log, 0, 8, PAGE, 5)
    after = offloading.fenced(log, EPOCH, OTHER_EPOCH)
    assert after.tier is not None
    assert after.tier.intent is None
    for change in (
        partial(offloading.finished, attempt=ATTEMPT, segment=segment, table=found_in(log)),
        partial(offloading.with_intent, intent=intent(log, 8)),
        partial(offloading.freed, end=8, verified=TableVersion(1), now_ms=1),
        partial(offloading.released, end=8, verified=TableVersion(1)),
        offloading.taken_back,
        offloading.forgotten,
    ):
        for record in (after, splice(log, ledger(90), overwrite=True), log.vacated()):
            with pytest.raises(MetadataVersionError, match="ended by another command"):
                change(record, epoch=EPOCH)  # type: ignore[operator]


def test_what_was_found_in_a_table_does_not_count_for_the_place_that_it_was_moved_to() -> None:
    log = begun(copied(log_of(5, Shelf()), 8), 16)
    assert log.tier is not None
    after = offloading.moved(log, log.tier, "s3a://lake/events", TableVersion(7))
    assert after.tier is not None
    assert (after.tier.table_url, after.tier.verified_version) == ("s3a://lake/events", 7)
    assert after.tier == replace(log.tier, table=after.tier.table)
    segment = offloading.segment_of(log, 8, 16, PAGE, 5)
    with pytest.raises(MetadataVersionError, match="was moved by another command"):
        offloading.finished(after, EPOCH, ATTEMPT, segment, found_in(log))
    assert done(after).freed == 0
    with pytest.raises(MetadataVersionError, match="was moved by another command"):
        offloading.tier_of(after, EPOCH, URL)


def test_a_table_moves_only_with_the_segments_that_were_looked_at() -> None:
    log = copied(log_of(5, Shelf()), 8)
    assert log.tier is not None
    for later in (copied(log, 16), freed(log, 8), log.truncated(6).truncated(8)):
        if later.tier != log.tier:
            with pytest.raises(MetadataVersionError, match="meanwhile"):
                offloading.moved(later, log.tier, "s3a://lake/events", TableVersion(7))


def test_rows_are_accepted_as_they_are_only_if_nothing_changed_since_the_look() -> None:
    log = copied(copied(log_of(9, Shelf()), 8), 16)
    log = log.with_tier(replace(log.tier, older=PAGE))  # type: ignore[type-var]
    seen = log.tier
    assert seen is not None
    other = "11111111-" + "d" * 32
    named = tuple(offloading.with_digests(segment, other) for segment in seen.segments)
    assert [segment.digests for segment in named] == [other] * 2
    after = offloading.accepted(log, seen, named, ((3, 5),), TableVersion(7))
    table = replace(seen.table, verified=TableVersion(7))
    wanted = replace(seen, table=table, segments=named, older="", missing=((3, 5),))
    assert after.tier == wanted
    with pytest.raises(MetadataVersionError, match="offloaded, truncated or freed meanwhile"):
        offloading.accepted(freed(log, 8), seen, named, ((3, 5),), TableVersion(7))


def test_a_verification_notes_the_version_of_the_table_and_nothing_else() -> None:
    log = copied(log_of(9, Shelf()), 8)
    assert log.tier is not None
    after = offloading.verified_again(log, EPOCH, TableVersion(9)).tier
    assert after == replace(log.tier, table=replace(log.tier.table, verified=TableVersion(9)))
    with pytest.raises(MetadataVersionError, match="ended by another command"):
        offloading.verified_again(log, OTHER_EPOCH, TableVersion(9))


def test_a_segment_is_the_intents() -> None:
    log = begun(log_of(5, Shelf()), 8)
    for begin, end in ((0, 4), (4, 8), (0, 12)):
        segment = TierSegment(begin, end, 1, 1, PAGE)
        with pytest.raises(InvalidRequestError, match="not those"):
            offloading.finished(log, EPOCH, ATTEMPT, segment, found_in(log))


def test_a_truncation_clips_what_is_being_copied() -> None:
    log = begun(log_of(5, Shelf()), 16).truncated(6)
    log = done(log)
    assert log.tier is not None
    assert [(one.begin, one.end) for one in log.tier.segments] == [(6, 16)]
    hidden = done(begun(log, 20).truncated(20))
    assert hidden.tier is not None
    assert (hidden.tier.segments, hidden.tier.copied) == ((), 20)


def test_nothing_is_freed_while_ledgers_wait() -> None:
    log = freed(copied(copied(log_of(9, Shelf()), 8), 16), 8)
    assert freed(log, 16) is log
    log = freed(released(log), 16)
    assert log.tier is not None
    assert (log.tier.released, log.freed) == (8, 16)


def test_only_what_waits_is_released() -> None:
    log = copied(log_of(9, Shelf()), 8)
    assert offloading.released(log, EPOCH, 0, TableVersion(1)) is log
    waiting = freed(log, 8)
    assert offloading.released(waiting, EPOCH, 4, TableVersion(1)) is waiting
    after = released(waiting)
    assert offloading.released(after, EPOCH, 8, TableVersion(2)) is after


def test_segments_are_freed_once_they_were_copied_long_enough_ago() -> None:
    assert offloading.freeable_end(log_of(9, Shelf()), 9) == 0
    log = copied(copied(log_of(9, Shelf()), 8), 16)  # copied at 5 ms
    assert log.tier is not None
    assert offloading.freeable_end(log, 4) == 0
    assert offloading.freeable_end(log, 5) == 16
    first, second = log.tier.segments
    later = log.with_tier(replace(log.tier, segments=(first, replace(second, copied_ms=6))))
    assert offloading.freeable_end(later, 5) == 8
    waiting = freed(log, 8)
    assert offloading.freeable_end(waiting, 9) == 8
    assert offloading.freeable_end(released(waiting), 9) == 16


@pytest.mark.parametrize("end", [4, 12, 40])
def test_only_a_recorded_segment_is_freed(end: int) -> None:
    log = copied(log_of(9, Shelf()), 8)
    with pytest.raises(InvalidRequestError, match="no segment"):
        freed(log, end)


def test_waiting_ledgers_come_back_at_their_places() -> None:
    before = copied(log_of(40, Shelf()), 80)
    log = freed(before, 80)
    log = offloading.taken_back(log, EPOCH)
    assert list(log.every_ledger()) == list(before.every_ledger())
    assert log.listed.first_version == before.listed.first_version
    assert log.tier is not None
    assert (log.tier.copied, log.freed, log.tier.length_bytes) == (0, 0, 0)
    assert not log.tier.segments


def test_released_ledgers_never_come_back() -> None:
    log = released(freed(copied(log_of(9, Shelf()), 8), 8))
    assert offloading.taken_back(log, EPOCH) is log


def test_a_truncation_past_the_freed_offsets_deletes_what_waits() -> None:
    log = freed(copied(log_of(9, Shelf()), 8), 8)
    assert sorted(log.truncated(8).every_id_to_delete()) == [0, 1]
    kept = log.truncated(7)
    assert not kept.to_delete_count
    assert sorted(kept.every_waiting_id()) == [0, 1]


def test_a_tier_is_forgotten_only_if_all_rows_are_in_ledgers() -> None:
    log = copied(log_of(9, Shelf()), 8)
    assert offloading.forgotten(log, EPOCH).tier is None
    for only_there in (freed(log, 8), released(freed(log, 8))):
        with pytest.raises(InvalidRequestError, match="only in the table"):
            offloading.forgotten(only_there, EPOCH)
    assert offloading.forgotten(released(freed(log, 8)).truncated(8), EPOCH).tier is None


def test_an_overwritten_or_deleted_log_has_no_tier() -> None:
    log = freed(copied(log_of(9, Shelf()), 8), 8)
    overwritten = splice(log, ledger(90), overwrite=True)
    assert overwritten.tier is None
    assert set(overwritten.every_dropped_id()) == set(range(9))
    deleted = log.vacated()
    assert deleted.tier is None
    assert set(deleted.every_id_to_delete()) == set(range(9))


def test_a_lost_ledger_ends_what_is_offloaded() -> None:
    lost = LoggedLedger(7, 20, LOST_ENTRIES, 0)
    log = log_of(5, Shelf())
    log = log_with(log, ledgers=(*log.ledgers, lost))
    assert offloading.eligible_end(log) == 20
    with pytest.raises(InvalidRequestError, match="lost rows"):
        begun(log, log.end_offset)


def test_what_is_young_or_to_be_kept_is_not_due() -> None:
    log = log_of(10, Shelf())  # closed at 1 to 10 ms, 40 bytes each
    assert offloading.eligible_end(log) == 40
    assert offloading.eligible_end(log, closed_before_ms=4) == 12
    assert offloading.eligible_end(log, keep_bytes=100) == 28
    assert offloading.eligible_end(log, most_bytes=100) == 8
    assert offloading.eligible_end(log, most_bytes=1) == 4


def test_a_compaction_keeps_the_borders_of_the_tier() -> None:
    log = begun(copied(log_of(9, Shelf()), 8), 20)
    assert [(run.begin, run.end) for run in runs_of(log)] == [(0, 8), (8, 20), (20, 36)]
    places = list(log.ledgers_in(4, 12))
    with pytest.raises(MetadataVersionError, match="offloaded"):
        compacted(log, places, ledger(99, 8), Shelf().make)


# --- retention -------------------------------------------------------------------------------


def retained(log: LogRecord, **limits: int) -> int:
    assert log.tier is not None
    kept = log_with(log, **limits)
    return retained_from(kept, now_ms=100, segments=reversed(log.tier.segments))


@pytest.mark.parametrize("is_freed", [False, True])
def test_each_offset_counts_once_wherever_it_is(is_freed: bool) -> None:
    log = copied(copied(copied(log_of(10, Shelf()), 8), 16), 24)
    if is_freed:
        log = released(freed(log, 16))
    assert retained(log, retention_bytes=0) == 36
    assert retained(log, retention_bytes=160) == 24
    assert retained(log, retention_bytes=240) == 16
    assert retained(log, retention_bytes=320) == 8
    assert retained(log, retention_bytes=321) == (0 if is_freed else 4)
    assert retained(log, retention_bytes=400) == 0


def test_freed_rows_go_by_the_age_of_their_ledgers() -> None:
    log = freed(copied(copied(log_of(10, Shelf()), 8), 16), 16)
    assert retained(log, retention_ms=98) == 0
    assert retained(log, retention_ms=97) == 8
    assert retained(log, retention_ms=90) == 36
    kept = log_with(log, retention_ms=10)
    assert log.tier is not None
    found = retained_from(kept, now_ms=100, positions=[9], segments=reversed(log.tier.segments))
    assert found == 8


def test_what_a_truncation_hid_in_the_table_is_not_counted_again() -> None:
    log = released(freed(copied(copied(copied(log_of(10, Shelf()), 8), 16), 24), 24))
    assert log.tier is not None
    pages = tuple(reversed(log.tier.segments))  # as pages of older segments still have them
    kept = log_with(log.truncated(16), retention_bytes=0)
    assert retained_from(kept, now_ms=100, positions=[12], segments=pages) == 16


def test_bytes_are_counted_where_they_are() -> None:
    log = freed(copied(copied(log_of(10, Shelf()), 8), 16), 8)  # 10 bytes an entry
    assert log.tier is not None
    assert (log.tier.length_bytes, log.tier.copied_bytes) == (80, 160)
    found = [log.tier.bytes_in(*ends) for ends in ((0, 8), (2, 5), (4, 16), (3, 3), (20, 24))]
    assert found == [80, 30, 40, 0, 0]
    not_freed = copied(log_of(10, Shelf()), 8).tier
    assert not_freed is not None
    assert not_freed.bytes_in(0, 8) == 0


# --- pages of segments -----------------------------------------------------------------------


def test_a_record_keeps_its_newest_segments_and_those_not_released() -> None:
    shelf = Shelf()
    log = log_of(200, shelf)
    for end in range(4, 801, 4):
        log = copied(log, end)
    result = paged(log, shelf.new_name)
    assert not result.segments
    log = released(freed(log, 400))
    result = paged(log, shelf.new_name)
    tier = result.record.tier
    assert tier is not None
    assert tier.segments[0].begin == 384
    assert len(result.segments) == 3
    for end in range(404, 801, 4):
        log = released(freed(log, end))
    result = paged(log, shelf.new_name)
    tier = result.record.tier
    assert tier is not None
    assert len(tier.segments) > SEGMENTS_KEPT - SEGMENTS_OF_PAGE
    assert len(tier.segments) <= SEGMENTS_KEPT
    pages = dict(result.segments)
    assert list(_every(tier, pages)) == list(log.tier.segments)  # type: ignore[union-attr]


def _every(tier: Tier, pages: dict[str, SegmentsPage]) -> Iterator[TierSegment]:
    found, older = list(reversed(tier.segments)), tier.older
    while older:
        data = tier_record.encode_page("events", older, pages[older])
        page = tier_record.decode_page("events", older, data)
        assert page == pages[older]
        found += reversed(page.segments)
        older = page.older
    return reversed(found)


# --- what is valid ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"begin": -1},
        {"freed": 9},
        {"copied": 21},
        {"copied": 7},
        {"table": TierTable("", TABLE_ID, TableVersion(1))},
        {"table": TierTable(URL, "", TableVersion(1))},
        {"table": TierTable(URL, TABLE_ID, TableVersion(-2))},
        {"table": TierTable(URL, TABLE_ID, TableVersion(1), (TierColumn("n", "n", "long"),) * 2)},
        {"epoch": ""},
        {"length_bytes": -1},
        {"segments": (TierSegment(0, 8, 1, 1, PAGE), TierSegment(4, 16, 1, 1, PAGE))},
        {"segments": (TierSegment(8, 8, 1, 1, PAGE),)},
        {"segments": (TierSegment(0, 20, 1, 1, PAGE),)},
        {"intent": Intent(0, 20, ATTEMPT, 0)},
        {"intent": Intent(16, 40, ATTEMPT, 0)},
        {"intent": Intent(16, 20, "", 0)},
        {"missing": ((3, 3),)},
        {"missing": ((3, 5), (4, 6))},
        {"missing": ((3, 50),)},
    ],
)
def test_an_impossible_tier_is_refused(changes: dict[str, object]) -> None:
    log = freed(copied(copied(log_of(5, Shelf()), 8), 16), 8)
    assert log.tier is not None
    with pytest.raises(InvalidRequestError):
        log.with_tier(replace(log.tier, **changes))  # type: ignore[arg-type]


def test_a_list_that_does_not_begin_at_the_freed_offset_is_refused() -> None:
    log = released(freed(copied(log_of(5, Shelf()), 8), 8))
    with pytest.raises(InvalidRequestError):
        log.with_tier(None)
    with pytest.raises(InvalidRequestError):
        log_with(log, ledgers=log.ledgers[1:])


def test_a_page_has_as_many_segments_as_it_may() -> None:
    one = [TierSegment(n, n + 1, 1, 1, PAGE) for n in range(SEGMENTS_OF_PAGE + 1)]
    assert len(SegmentsPage(tuple(one[1:])).segments) == SEGMENTS_OF_PAGE
    for wrong in (one, []):
        with pytest.raises(InvalidRequestError, match="a page has 1 to 32 segments"):
            SegmentsPage(tuple(wrong))
    with pytest.raises(InvalidRequestError, match="segments of a tier are not in order"):
        SegmentsPage(tuple(reversed(one[1:])))


def test_a_tier_of_too_many_parts_is_refused() -> None:
    log = copied(log_of(5, Shelf()), 8)
    assert log.tier is not None
    columns = tuple(TierColumn(f"c{n}", f"c{n}", "long") for n in range(COLUMNS_MAX + 1))
    for changes in (
        {"table": replace(log.tier.table, columns=columns)},
        {"segments": (TierSegment(0, 8, 1, 1, PAGE),) * (SEGMENTS_MAX + 1)},
        {"missing": ((0, 1),) * (GAPS_MAX + 1)},
    ):
        with pytest.raises(InvalidRequestError, match="too many columns, segments or gaps"):
            replace(log.tier, **changes)  # type: ignore[arg-type]
    assert replace(log.tier, table=replace(log.tier.table, columns=columns[1:]))


def test_a_tier_is_refused_where_the_log_cannot_have_it() -> None:
    log = copied(log_of(5, Shelf()), 8)
    assert log.tier is not None
    with pytest.raises(InvalidRequestError, match="a deleted log has no tier"):
        log_with(log.vacated(), tier=log.tier)
    later = replace(log.tier, begin=4, freed=4, segments=(), of_freed=FreedLedgers(4))
    told = "its tier has offsets 4 to 4, and the log begins at 0, its ledgers at 0"
    with pytest.raises(InvalidRequestError, match=told):
        log.with_tier(later)
    hidden = released(freed(log, 8)).truncated(4)
    assert hidden.tier is not None
    with pytest.raises(
        InvalidRequestError, match="its tier has offsets 8 to 8, and the log begins"
    ):
        hidden.with_tier(replace(hidden.tier, begin=8, segments=()))
    with pytest.raises(InvalidRequestError, match="its tier is longer than its ledgers"):
        log.with_tier(replace(log.tier, intent=Intent(8, 24, ATTEMPT, 0)))
