"""Mutants of bookies and metadata stores in S3."""

from .change import Drop, Replace
from .mutant import Mutant

FOLDER = "tests/unit/storage/s3"
BOOKIE = f"{FOLDER}/test_bookie.py"
COOKIE = f"{BOOKIE}::TestCookie"
FORMAT = f"{BOOKIE}::TestFormat"
ONCE = f"{BOOKIE}::TestOnce"
JOURNAL = f"{BOOKIE}::TestJournal"
POST_CHECK = f"{BOOKIE}::TestPostCheck"
GROWTH = f"{BOOKIE}::TestGrowth"
LISTED = f"{BOOKIE}::TestListedJournal"
FILES = f"{BOOKIE}::TestFiles"
METADATA = f"{FOLDER}/test_metadata.py"
SEEN = f"{METADATA}::TestSeenObjects"

MUTANTS = (
    # --- bookies ---------------------------------------------------------------------------------
    Mutant(
        "an absence counts in a place that was wiped",
        "BucketBookieRoot._look",
        Drop("self._confirm_cookie"),
        (
            f"{COOKIE}::test_nothing_is_absent_in_a_place_that_was_wiped[size]",
            f"{COOKIE}::test_nothing_is_absent_in_a_place_that_is_wiped_behind_the_look[sync]",
            f"{COOKIE}::test_a_cookie_that_cannot_be_read_proves_nothing[delete]",
        ),
    ),
    Mutant(
        "the cookie is looked for in front of the look",
        "BucketBookieRoot._look",
        Replace(
            "found = self._objects.look(name)\nif found is None:\n    self._confirm_cookie()",
            "self._confirm_cookie()\nfound = self._objects.look(name)",
        ),
        (f"{COOKIE}::test_nothing_is_absent_in_a_place_that_is_wiped_behind_the_look[size]",),
    ),
    Mutant(
        "a listing counts in a place that was wiped",
        "BucketBookieRoot.list",
        Drop("self._confirm_cookie"),
        (f"{COOKIE}::test_nothing_is_absent_in_a_place_that_was_wiped[list]",),
    ),
    Mutant(
        "any cookie is the one that was there",
        "BucketBookieRoot._confirm_cookie",
        Replace("cookie != self._cookie", "False"),
        (f"{COOKIE}::test_nothing_is_absent_in_a_place_that_was_wiped",),
    ),
    Mutant(
        "a block of looks ends without a look for the cookie",
        "BucketBookieRoot.confirmed_at_end",
        Drop("self._confirm_cookie"),
        (f"{BOOKIE}::TestConfirmedAtEnd::test_nothing_is_absent_in_a_place_that_was_wiped",),
    ),
    Mutant(
        "a bookie that was found a moment ago is there for good",
        "BucketBookieRoot._confirm_cookie",
        Drop("check_cookie"),
        (f"{BOOKIE}::TestFoundRoot::test_nothing_is_absent_where_the_bookie_is_no_more",),
    ),
    Mutant(
        "a journal that was listed is there for good",
        "BucketBookieRoot.size",
        Replace(
            "name in self._heads and (length := self._journal_size(name))",
            "(length := self._journal_size(name)) or name in self._heads",
        ),
        (f"{BOOKIE}::TestListedJournal::test_its_head_is_not_looked_at_again",),
    ),
    Mutant(
        "a journal ends where its place was wiped",
        "BucketBookieRoot._read_anew",
        Drop("self._confirm_cookie", at=1),
        (f"{COOKIE}::test_no_journal_ends_in_a_place_that_is_wiped[read]",),
    ),
    Mutant(
        "a bookie that another client formatted first is one's own",
        "BucketStorage.format",
        Replace("_read_cookie(objects) != cookie", "not _read_cookie(objects)"),
        (f"{FORMAT}::test_another_bookie_that_comes_first_is_left",),
    ),
    Mutant(
        "a bookie that was formatted without an answer is another's",
        "BucketStorage.require_suitable",
        Replace("_read_cookie(objects) != cookie", "True"),
        (f"{FORMAT}::test_a_lost_answer_is_settled_by_formatting_again",),
    ),
    Mutant(
        "the first record of a journal in S3 is sent again",
        "ObjectJournal._store",
        Replace("is_first", "False", at=1),
        (f"{ONCE}::test_in_doubt_it_is_not_sent_again[first record-503]",),
    ),
    Mutant(
        "a record of another is no end of a journal in S3",
        "ObjectJournal._store",
        Replace("created is None", "False"),
        (f"{JOURNAL}::test_a_record_of_another_ends_it",),
    ),
    Mutant(
        "records in S3 behind a gap are believed",
        "object_store._records",
        Replace("len(found) != listed", "False"),
        (f"{JOURNAL}::test_records_behind_a_gap_are_not_believed[read]",),
    ),
    Mutant(
        "sizes of records in S3 behind a gap are believed",
        "object_store.size",
        Replace(
            "records != [_record(number) for number in range(len(records))]",
            "not records and records != [_record(number) for number in range(len(records))]",
        ),
        (f"{JOURNAL}::test_records_behind_a_gap_are_not_believed[size]",),
    ),
    Mutant(
        "a listing says where a journal in S3 ends",
        "object_store._records",
        Replace("[*found, *_behind(look, name, listed)]", "found"),
        (f"{JOURNAL}::test_a_record_that_the_listing_does_not_show_is_asked_for[read]",),
    ),
    Mutant(
        "a listing says how long a journal in S3 is",
        "object_store.size",
        Replace(
            "[*filter(None, looked), *_behind(objects.look, name, len(records))]",
            "[*filter(None, looked)]",
        ),
        (f"{JOURNAL}::test_a_record_that_the_listing_does_not_show_is_asked_for[size]",),
    ),
    Mutant(
        "a range of a journal in S3 ends where its listing does",
        "object_store.read_range",
        Replace(
            "not (is_dense and fits) or start + len(data) < begin + length",
            "not (is_dense and fits)",
        ),
        (f"{JOURNAL}::test_a_record_that_the_listing_does_not_show_is_asked_for[read a range]",),
    ),
    Mutant(
        "copies of records in S3 are the records",
        "ObjectJournal.shows_all_records",
        Replace(
            "listed.get(_record(number)) == record.etag",
            "listed.get(_record(number)) or not record.etag",
        ),
        (f"{JOURNAL}::test_a_journal_is_there_if_all_its_records_are_its_own",),
    ),
    Mutant(
        "a copy of the last record in S3 is the record",
        "ObjectJournal.shows_last_record",
        Replace("found is not None and found.is_by(self._records[-1])", "found is not None"),
        (f"{POST_CHECK}::test_the_last_record_must_be_shown[True]",),
    ),
    Mutant(
        "a record counts on a bookie in S3 that does not show it",
        "BucketBookie.post_check",
        Replace("not is_shown", "False"),
        (f"{POST_CHECK}::test_the_last_record_must_be_shown[False]",),
    ),
    Mutant(
        "a writer in S3 looks for its permission before the fence",
        "BucketBookie.post_check",
        Replace(
            "is_fenced = objects.look(fence) is not None\n"
            "is_permitted = objects.look(permission) is not None",
            "is_permitted = objects.look(permission) is not None\n"
            "is_fenced = objects.look(fence) is not None",
        ),
        (f"{POST_CHECK}::test_a_fence_that_is_pruned_with_the_permission_meanwhile_is_seen",),
    ),
    Mutant(
        "a writer in S3 looks for the cookie before the markers",
        "BucketBookie.post_check",
        Replace(
            "is_shown = own.shows_last_record(objects)\n"
            "is_fenced = objects.look(fence) is not None\n"
            "is_permitted = objects.look(permission) is not None\n"
            "cookie = _read_cookie(objects)",
            "cookie = _read_cookie(objects)\n"
            "is_shown = own.shows_last_record(objects)\n"
            "is_fenced = objects.look(fence) is not None\n"
            "is_permitted = objects.look(permission) is not None",
        ),
        (f"{POST_CHECK}::test_a_place_that_is_wiped_during_the_looks_does_not_count",),
    ),
    Mutant(
        "a writer in S3 counts what a moved bookie's old place has",
        "BucketBookie.post_check",
        Drop("check_cookie"),
        (f"{POST_CHECK}::test_a_place_that_a_move_has_left_does_not_count",),
    ),
    Mutant(
        "a journal ends where its place was wiped after it was listed",
        "BucketBookieRoot.read",
        Replace("len(records) == length", "True"),
        (f"{LISTED}::test_what_is_gone_since_is_not_there[its place]",),
    ),
    Mutant(
        "a part of a journal ends where its place was wiped",
        "BucketBookieRoot._read_anew",
        Replace("length is None or len(records) < length", "length is None"),
        (f"{COOKIE}::test_no_journal_ends_in_a_place_that_is_wiped[read a range]",),
    ),
    Mutant(
        "the length of a journal in S3 is that of any look",
        "Lengths.count",
        Replace("known is not None and known[0] == length", "known is not None"),
        (f"{GROWTH}::test_a_length_that_was_not_found_may_have_grown",),
    ),
    Mutant(
        "a record in S3 that no listing showed is not counted",
        "object_store.size",
        Replace("len(records) + behind", "len(records)"),
        (f"{GROWTH}::test_records_that_the_listing_did_not_show_are_counted",),
    ),
    Mutant(
        "a journal in S3 loses its head first",
        "object_store.delete",
        Replace(
            "for number in sorted(_listed(objects, name), reverse=True):\n"
            "    objects.delete(_record_name(name, number))",
            "objects.delete(name)\n"
            "for number in sorted(_listed(objects, name), reverse=True):\n"
            "    objects.delete(_record_name(name, number))",
        ),
        (
            f"{JOURNAL}::test_a_deletion_begins_at_the_end_and_ends_with_the_head",
            f"{JOURNAL}::test_a_deletion_that_stops_half_way_is_found_again",
        ),
    ),
    Mutant(
        "a journal in S3 loses its first record first",
        "object_store.delete",
        Replace("sorted(_listed(objects, name), reverse=True)", "sorted(_listed(objects, name))"),
        (f"{JOURNAL}::test_a_deletion_begins_at_the_end_and_ends_with_the_head",),
    ),
    Mutant(
        "a journal in S3 that is made during a listing is a folder",
        "BucketBookieRoot._shown",
        Replace("self._objects.look(f'{folder}/{head}') is not None", "False"),
        (f"{JOURNAL}::test_a_journal_that_is_made_while_a_listing_goes_on_is_no_folder",),
    ),
    Mutant(
        "a file in S3 goes on after an error",
        "ObjectEntryFile.write",
        Drop("self.discard"),
        (f"{FILES}::test_a_file_that_failed_leaves_nothing_and_takes_no_more",),
    ),
    # --- metadata --------------------------------------------------------------------------------
    Mutant(
        "puts of equal values in S3 are one put",
        "ObjectRecords._store",
        Replace("environment.token()", "'0' * 32"),
        (f"{METADATA}::test_a_put_without_an_answer_that_another_client_was_ahead_of_is_lost",),
    ),
    Mutant(
        "a record in S3 is put without a condition",
        "S3Objects.put",
        Replace("{'IfMatch': replaced} if replaced else {'IfNoneMatch': '*'}", "{}"),
        (f"{METADATA}::test_another_client_between_any_two_requests[replace-replace]",),
    ),
    Mutant(
        "a put in S3 that meets its own object has lost",
        "Objects.put_if",
        Replace("sent > 1", "False"),
        (f"{METADATA}::test_a_change_whose_answer_was_lost_is_recognised",),
    ),
    Mutant(
        "a put in S3 that a later change hides has lost",
        "ObjectRecords._has_stored",
        Replace("is_deleted or (seen is not None and seen.version > version)", "False"),
        (f"{METADATA}::test_a_put_without_an_answer_that_is_hidden_by_a_later_change_is_unknown",),
    ),
    Mutant(
        "a put in S3 that may take effect yet has lost",
        "ObjectRecords._has_stored",
        Replace("seen is None or seen.version < version", "seen is None"),
        (f"{METADATA}::test_a_change_in_doubt_is_unknown[replace-lost]",),
    ),
    Mutant(
        "a put in S3 is known by the version that it would make",
        "ObjectRecords._has_stored",
        Replace("seen.token == token", "True"),
        (f"{METADATA}::test_a_put_without_an_answer_that_another_client_was_ahead_of_is_lost",),
    ),
    Mutant(
        "a deletion in S3 without an answer has taken effect",
        "ObjectRecords._delete",
        Replace("not is_deleted", "False"),
        (f"{METADATA}::test_a_change_in_doubt_is_unknown[delete-lost]",),
    ),
    Mutant(
        "a deleted record in S3 is listed",
        "ObjectRecords._listed",
        Replace("size != SENTINEL_BYTES", "size"),
        (f"{METADATA}::test_a_listing_shows_records_and_nothing_else",),
    ),
    Mutant(
        "each object in S3 is a record",
        "ObjectRecords._listed",
        Replace("_is_key(f'{prefix}/{name}')", "name"),
        (f"{METADATA}::test_a_listing_shows_records_and_nothing_else",),
    ),
    Mutant(
        "an absence in S3 counts without a look at the marker",
        "ObjectRecords._live",
        Drop("self._require_store"),
        (f"{METADATA}::test_a_prefix_without_the_marker_is_no_empty_store[get]",),
    ),
    Mutant(
        "a record in S3 is made without a look at the marker",
        "ObjectRecords.put",
        Drop("self._seen.once_in_a_block"),
        (f"{METADATA}::test_a_prefix_without_the_marker_is_no_empty_store[create]",),
    ),
    Mutant(
        "a record in S3 of any store counts",
        "ObjectRecords._read",
        Replace("head is None or head[1] != self._store_id", "head is None"),
        (f"{METADATA}::test_another_cluster_s_store_is_not_touched[get]",),
    ),
    Mutant(
        "a store that ignores If-Match holds metadata",
        "BucketMetadataStore.format",
        Drop("require_conditional_replaces"),
        (f"{METADATA}::test_a_store_that_overwrites_is_refused",),
    ),
    Mutant(
        "a change in S3 whose answer was lost may be repeated at once",
        "VersionedStore._known_errors",
        Drop("hint = f'{hint}; {_READ_BACK}' if hint else _READ_BACK"),
        (f"{METADATA}::test_a_change_in_doubt_is_unknown",),
    ),
    Mutant(
        "a prefix in S3 without a marker is a store",
        "VersionedStore._require_marker",
        Replace("raise self._no_store()", "return"),
        (f"{METADATA}::test_a_prefix_without_the_marker_is_no_empty_store",),
    ),
    Mutant(
        "another store in S3 is taken for the one that was opened",
        "VersionedStore._require_marker",
        Replace("marker != self._bound_to", "not marker.startswith(MARKER_TEXT)"),
        (f"{METADATA}::test_another_cluster_s_store_is_not_touched",),
    ),
    Mutant(
        "an answer from before a block is new enough in S3",
        "SeenObjects._is_of_block",
        Replace("max(needed.tick, self._changed)", "self._changed"),
        (f"{SEEN}::test_an_answer_from_before_a_block_is_not[from_here]",),
    ),
    Mutant(
        "an answer of the block is as of now in S3",
        "SeenObjects._is_of_block",
        Replace(
            "needed is None or needed.kind is not Kind.FROM_HERE",
            "needed is None",
        ),
        (f"{SEEN}::test_an_answer_from_before_a_block_is_not[recent]",),
    ),
    Mutant(
        "an answer from before an own change is new enough in S3",
        "SeenObjects.note_change",
        Replace("self._changed = freshness.tick()", "..."),
        (f"{SEEN}::test_after_a_change_of_its_own_a_client_asks_again",),
    ),
    Mutant(
        "a look in S3 has begun when it ends",
        "ObjectRecords._live",
        Replace(
            "tick = freshness.tick()\n_, seen = self._read(key)",
            "_, seen = self._read(key)\ntick = freshness.tick()",
        ),
        (f"{SEEN}::test_a_look_that_a_change_overtook_is_not_used_again",),
    ),
    Mutant(
        "the metadata check in S3 repeats an answer",
        "ObjectRecords.is_current",
        Replace("self._live(key)", "self.get(key)"),
        (f"{SEEN}::test_a_check_always_asks",),
    ),
    Mutant(
        "a change in S3 replaces any version that was read",
        "SeenObjects.of_version",
        Replace("seen is not None and seen.version == version", "seen is not None"),
        (f"{SEEN}::test_a_change_of_a_version_that_was_not_read_is_made",),
    ),
    Mutant(
        "a listing in S3 tells the newest value of what was read",
        "SeenObjects.note_listed",
        Replace("seen is not None and seen.etag == etag", "seen is not None"),
        (f"{SEEN}::test_a_listing_in_a_block_spares_a_look_at_what_has_not_changed",),
    ),
    Mutant(
        "a listing in S3 has begun when it ends",
        "ObjectRecords.names",
        Replace(
            "tick = freshness.tick()\nlisted = self._listed(prefix)",
            "listed = self._listed(prefix)\ntick = freshness.tick()",
        ),
        (f"{SEEN}::test_a_listing_that_a_change_overtook_spares_nothing",),
    ),
    Mutant(
        "the marker in S3 is looked at once for all",
        "SeenObjects.once_in_a_block",
        Replace("self._is_of_block(self._marked)", "self._marked"),
        (f"{SEEN}::test_the_marker_is_looked_at_once_in_a_block",),
    ),
)
