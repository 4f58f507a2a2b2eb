"""Mutants of what an S3 store's answers are taken for, by objects, bookies and metadata stores."""

from .mutant import Mutant

FOLDER = "tests/unit/storage/s3"
OBJECTS = f"{FOLDER}/test_objects.py"
CREATE = f"{OBJECTS}::TestCreate"
LOOKS = f"{OBJECTS}::TestLooks"
UPLOAD = f"{OBJECTS}::TestUpload"
PROBE = f"{OBJECTS}::TestProbe"
BOOKIE = f"{FOLDER}/test_bookie.py"
COOKIE = f"{BOOKIE}::TestCookie"
FORMAT = f"{BOOKIE}::TestFormat"
ONCE = f"{BOOKIE}::TestOnce"
JOURNAL = f"{BOOKIE}::TestJournal"
FILES = f"{BOOKIE}::TestFiles"
METADATA = f"{FOLDER}/test_metadata.py"

MUTANTS = (
    # --- objects ---------------------------------------------------------------------------------
    Mutant(
        "an object is put without the condition",
        "Objects._create",
        '                IfNoneMatch="*",\n',
        "",
        (f"{CREATE}::test_a_race_has_one_winner", f"{PROBE}::test_one_that_does"),
    ),
    Mutant(
        "an object that is there is another's",
        "Objects._create",
        "        except ObjectTaken:\n            return self.own(name, token)\n",
        "        except ObjectTaken:\n            return None\n",
        (f"{CREATE}::test_a_lost_answer_is_settled_by_a_look[lost answer-False]",),
    ),
    Mutant(
        "an object that is there is one's own",
        "Objects.own",
        " if found.token == token else None",
        "",
        (
            f"{CREATE}::test_a_race_has_one_winner",
            f"{CREATE}::test_the_object_of_another_is_a_sure_answer",
        ),
    ),
    Mutant(
        "an object in doubt is not looked for",
        "Objects._create",
        "            return self.own(name, token, doubt)\n",
        "            raise doubt\n",
        (
            f"{CREATE}::test_a_lost_answer_is_settled_by_a_look[lost answer-True]",
            f"{CREATE}::test_the_object_of_another_is_a_sure_answer",
        ),
    ),
    Mutant(
        "an object that is absent after a doubt will never be there",
        "Objects.own",
        '            raise doubt or S3Doubt("the name was taken and is free again")\n',
        "            return None\n",
        (
            f"{CREATE}::test_what_is_sent_once_stays_in_doubt",
            f"{CREATE}::test_what_lasts_is_a_doubt_and_never_somebody_else_s",
            f"{CREATE}::test_a_name_that_was_taken_and_is_free_again_is_a_doubt",
        ),
    ),
    Mutant(
        "the doubt of a look hides that of the request",
        "Objects.own",
        "            raise doubt or second from None\n",
        "            raise second from None\n",
        (f"{CREATE}::test_a_look_that_fails_leaves_the_doubt_of_the_request",),
    ),
    Mutant(
        "each request that makes an object has another token",
        "Objects._create",
        "Metadata=marked_by(token),",
        "Metadata=marked_by(environment.token()),",
        (f"{CREATE}::test_it_is_one_request",),
    ),
    Mutant(
        "a conflict of two requests is final",
        "connection._meaning",
        "status >= 500 or status == 409 or asks_for_less",
        "status >= 500 or asks_for_less",
        (f"{CREATE}::test_what_passes_is_sent_again[409]",),
    ),
    Mutant(
        "a conflict of two requests is a lost race",
        "connection._meaning",
        "        case 412, _:\n",
        "        case (409 | 412), _:\n",
        (f"{CREATE}::test_what_passes_is_sent_again[409]",),
    ),
    Mutant(
        "any 404 is an absence",
        "connection._meaning",
        '        case 404, "NoSuchKey":\n',
        "        case 404, _:\n",
        (f"{LOOKS}::test_no_other_answer_is_an_absence",),
    ),
    Mutant(
        "an answer that was cut short is whole",
        "connection.get",
        'if len(data) != answer["ContentLength"]:',
        "if False:",
        (f"{LOOKS}::test_a_look_is_sent_again[cut short]",),
    ),
    Mutant(
        "an answer that was cut short is final",
        "connection.get",
        'raise S3Doubt("the answer was cut short", is_passing=True)',
        'raise S3Doubt("the answer was cut short")',
        (f"{LOOKS}::test_a_look_is_sent_again[cut short]",),
    ),
    Mutant(
        "what was sent once is sent again",
        "connection.repeated",
        "doubt.asks_for_less or (doubt.is_passing and not only_if_refused)",
        "doubt.asks_for_less or doubt.is_passing",
        (f"{UPLOAD}::test_it_is_begun_once_in_doubt",),
    ),
    Mutant(
        "a store that answers no request for a range is believed",
        "_size_behind",
        "    if not size.isdecimal():\n",
        '    size = size or "0"\n    if False:\n',
        (f"{LOOKS}::test_a_store_that_ignores_ranges_is_a_doubt",),
    ),
    Mutant(
        "a range of sixteen bytes is never a sentinel",
        "Objects.read",
        "if found is not None and found.size == SENTINEL_BYTES:",
        "if False:",
        (f"{LOOKS}::test_sixteen_bytes_may_be_a_sentinel",),
    ),
    Mutant(
        "contents may be a sentinel",
        "objects._plain",
        "    if _is_sign(data):\n",
        "    if False:\n",
        (f"{CREATE}::test_contents_that_look_like_a_sentinel_are_refused",),
    ),
    Mutant(
        "only the first page of a listing is read",
        "Objects._listed",
        'if not answer.get("IsTruncated"):',
        "if True:",
        (f"{LOOKS}::test_a_listing_is_read_to_its_end",),
    ),
    Mutant(
        "the object of a folder is in it",
        "Objects._listed",
        '                found.pop("", None)\n',
        "",
        (f"{LOOKS}::test_a_listing_is_read_to_its_end",),
    ),
    Mutant(
        "what is gone cannot be deleted",
        "Objects.delete",
        "suppress(NoSuchObject)",
        "suppress(ZeroDivisionError)",
        (f"{LOOKS}::test_what_is_gone_can_be_deleted",),
    ),
    # --- uploads ---------------------------------------------------------------------------------
    Mutant(
        "an upload replaces what is there",
        "Upload._send_end",
        '            IfNoneMatch="*",\n',
        "",
        (f"{UPLOAD}::test_the_object_of_another_stays",),
    ),
    Mutant(
        "an upload whose answer was lost is not looked for",
        "Upload._complete",
        "            return self._objects.own(self._name, self._token, doubt)\n",
        "            raise doubt\n",
        (f"{UPLOAD}::test_a_lost_answer_is_settled_by_a_look",),
    ),
    Mutant(
        "an upload is begun again in doubt",
        "Upload.send",
        "                only_if_refused=True,\n",
        "",
        (f"{UPLOAD}::test_it_is_begun_once_in_doubt",),
    ),
    Mutant(
        "an upload that lost stays behind",
        "Upload.finish",
        "        if created is not None:\n",
        "        if True:\n",
        (f"{UPLOAD}::test_the_object_of_another_stays",),
    ),
    Mutant(
        "a store that overwrites large objects is taken",
        "require_conditional_creates",
        " or third is not None or not is_kept",
        "",
        (f"{PROBE}::test_one_that_ignores_conditions",),
    ),
    # --- bookies ---------------------------------------------------------------------------------
    Mutant(
        "an absence counts in a place that was wiped",
        "S3Root._look",
        "            self._confirm_cookie()\n",
        "            pass\n",
        (
            f"{COOKIE}::test_nothing_is_absent_in_a_place_that_was_wiped[size]",
            f"{COOKIE}::test_nothing_is_absent_in_a_place_that_is_wiped_behind_the_look[sync]",
            f"{COOKIE}::test_a_cookie_that_cannot_be_read_proves_nothing[delete]",
        ),
    ),
    Mutant(
        "the cookie is looked for in front of the look",
        "S3Root._look",
        "        found = self._objects.look(name)\n        if found is None:\n"
        "            self._confirm_cookie()\n",
        "        self._confirm_cookie()\n        found = self._objects.look(name)\n",
        (f"{COOKIE}::test_nothing_is_absent_in_a_place_that_is_wiped_behind_the_look[size]",),
    ),
    Mutant(
        "a listing counts in a place that was wiped",
        "S3Root.list",
        "            self._confirm_cookie()\n",
        "",
        (f"{COOKIE}::test_nothing_is_absent_in_a_place_that_was_wiped[list]",),
    ),
    Mutant(
        "any cookie is the one that was there",
        "S3Root._confirm_cookie",
        "if _read_cookie(self._objects) != self._cookie:",
        "if False:",
        (f"{COOKIE}::test_nothing_is_absent_in_a_place_that_was_wiped",),
    ),
    Mutant(
        "a journal ends where its place was wiped",
        "S3Root.read",
        "            # The journal ended at an absence, which is as sure as any other.\n"
        "            self._confirm_cookie()\n",
        "",
        (f"{COOKIE}::test_no_journal_ends_in_a_place_that_is_wiped[read]",),
    ),
    Mutant(
        "a bookie that another client formatted first is one's own",
        "S3Storage.format",
        "is None and _read_cookie(objects) != cookie:",
        "is None and not _read_cookie(objects):",
        (f"{FORMAT}::test_another_bookie_that_comes_first_is_left",),
    ),
    Mutant(
        "a bookie that was formatted without an answer is another's",
        "S3Storage.require_suitable",
        "                if _read_cookie(objects) != cookie:\n",
        "                if True:\n",
        (f"{FORMAT}::test_a_lost_answer_is_settled_by_formatting_again",),
    ),
    Mutant(
        "the first record of a journal in S3 is sent again",
        "S3Journal._store",
        "once=is_first",
        "once=False",
        (f"{ONCE}::test_in_doubt_it_is_not_sent_again[first record-503]",),
    ),
    Mutant(
        "a record of another is no end of a journal in S3",
        "S3Journal._store",
        "        if created is None:\n",
        "        if False:\n",
        (f"{JOURNAL}::test_a_record_of_another_ends_it",),
    ),
    Mutant(
        "records in S3 behind a gap are believed",
        "object_journal._records",
        "    if len(found) != listed:\n",
        "    if False:\n",
        (f"{JOURNAL}::test_records_behind_a_gap_are_not_believed[read]",),
    ),
    Mutant(
        "sizes of records in S3 behind a gap are believed",
        "object_journal.size",
        "    if records != [",
        "    if not records and records != [",
        (f"{JOURNAL}::test_records_behind_a_gap_are_not_believed[size]",),
    ),
    Mutant(
        "a listing says where a journal in S3 ends",
        "object_journal._records",
        "return [*found, *_behind(look, name, listed)]",
        "return found",
        (f"{JOURNAL}::test_a_record_that_the_listing_does_not_show_is_asked_for[read]",),
    ),
    Mutant(
        "a listing says how long a journal in S3 is",
        "object_journal.size",
        "*_behind(objects.look, name, len(records))",
        "",
        (f"{JOURNAL}::test_a_record_that_the_listing_does_not_show_is_asked_for[size]",),
    ),
    Mutant(
        "a range of a journal in S3 ends where its listing does",
        "object_journal.read_range",
        "    if not (is_dense and fits) or start + len(data) < begin + length:\n",
        "    if not (is_dense and fits):\n",
        (f"{JOURNAL}::test_a_record_that_the_listing_does_not_show_is_asked_for[read a range]",),
    ),
    Mutant(
        "copies of records in S3 are the records",
        "S3Journal.has_all_records",
        "            listed.get(_record(number)) == record.etag\n",
        "            listed.get(_record(number)) or not record.etag\n",
        (f"{JOURNAL}::test_a_journal_is_there_if_all_its_records_are_its_own",),
    ),
    Mutant(
        "a journal in S3 loses its head first",
        "object_journal.delete",
        "    for number in sorted(",
        "    objects.delete(name)\n    for number in sorted(",
        (
            f"{JOURNAL}::test_a_deletion_begins_at_the_end_and_ends_with_the_head",
            f"{JOURNAL}::test_a_deletion_that_stops_half_way_is_found_again",
        ),
    ),
    Mutant(
        "a journal in S3 loses its first record first",
        "object_journal.delete",
        "sorted(_listed(objects, name), reverse=True)",
        "sorted(_listed(objects, name))",
        (f"{JOURNAL}::test_a_deletion_begins_at_the_end_and_ends_with_the_head",),
    ),
    Mutant(
        "a journal in S3 that is made during a listing is a folder",
        "S3Root._shown",
        'is_there = head in listed or self._objects.look(f"{folder}/{head}") is not None',
        "is_there = head in listed",
        (f"{JOURNAL}::test_a_journal_that_is_made_while_a_listing_goes_on_is_no_folder",),
    ),
    Mutant(
        "a file in S3 goes on after an error",
        "S3EntryFile.write",
        "                self.discard()\n",
        "                pass\n",
        (f"{FILES}::test_a_file_that_failed_leaves_nothing_and_takes_no_more",),
    ),
    # --- metadata --------------------------------------------------------------------------------
    Mutant(
        "a put in S3 does not look for a tombstone behind it",
        "VersionedRecords.put",
        "if self._is_superseded(key, version):",
        "if False:",
        (f"{METADATA}::test_a_record_that_is_deleted_meanwhile_is_not_put",),
    ),
    Mutant(
        "a change in S3 whose answer was lost may be repeated at once",
        "VersionedStore._known_errors",
        'hint = f"{hint}; {_READ_BACK}" if hint else _READ_BACK',
        "pass",
        (f"{METADATA}::test_a_change_in_doubt_is_unknown",),
    ),
    Mutant(
        "a prefix in S3 without a marker is a store",
        "VersionedStore._require_marker",
        "        if marker is None:\n            raise self._no_store()\n",
        "        if marker is None:\n            return\n",
        (f"{METADATA}::test_a_prefix_without_the_marker_is_no_empty_store",),
    ),
    Mutant(
        "another store in S3 is taken for the one that was opened",
        "VersionedStore._require_marker",
        "        if marker != self._bound_to:\n",
        "        if not marker.startswith(_MARKER_TEXT):\n",
        (f"{METADATA}::test_another_cluster_s_store_is_not_touched",),
    ),
)
