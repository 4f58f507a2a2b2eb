"""Mutants of what is read from a Delta table."""

from .change import Drop, DropArgument, Replace
from .mutant import Mutant

VERSIONS = "tests/unit/table/test_versions.py"
RANGES = "tests/unit/table/test_ranges.py"
VECTORS = "tests/unit/table/test_deletion_vectors.py"
COLUMNS = "tests/unit/table/test_columns.py"
FOLDERS = "tests/unit/storage/test_folders.py"

MUTANTS = (
    Mutant(
        "a file that was removed stays",
        "Replay.apply",
        Drop("self._adds.pop"),
        (f"{VERSIONS}::test_a_version_has_the_files_that_were_added_and_not_removed",),
    ),
    Mutant(
        "a file with a deletion vector is the file without",
        "replay._key_of",
        Replace("vector.identity if vector is not None else ''", "''"),
        (f"{VECTORS}::test_a_commit_may_say_in_any_order_what_it_does",),
    ),
    Mutant(
        "an unknown reader feature is overlooked",
        "replay.require_features",
        Replace("_features(protocol) - READER_FEATURES", "set()"),
        (f"{VERSIONS}::test_an_unknown_reader_feature_is_refused_by_its_name",),
    ),
    Mutant(
        "a later reader version is overlooked",
        "replay.require_features",
        Replace("version > _WITH_FEATURES", "False"),
        (f"{VERSIONS}::test_a_later_reader_version_is_refused",),
    ),
    Mutant(
        "some parts of a checkpoint are a checkpoint",
        "replay._parsed",
        Replace("sorted(names) == list(range(1, count + 1))", "True"),
        (f"{VERSIONS}::test_a_checkpoint_without_all_its_parts_is_none",),
    ),
    Mutant(
        "the hint of the last checkpoint is believed",
        "replay.list_log",
        Replace(
            "any(checkpoint.version <= (version or found.newest) "
            "for checkpoint in found.checkpoints)",
            "True",
        ),
        (f"{VERSIONS}::test_a_wrong_hint_of_the_last_checkpoint_changes_nothing",),
    ),
    Mutant(
        "an empty commit is a commit",
        "replay.parse_lines",
        Replace("not actions", "False"),
        (f"{VERSIONS}::test_a_damaged_commit_is_named[emptied]",),
    ),
    Mutant(
        "the rows of another table are this table's",
        "asking.path_below",
        Replace("not place.startswith(f'{root}/')", "False"),
        (f"{VERSIONS}::test_a_file_outside_of_the_table_is_refused",),
    ),
    Mutant(
        "a path leads out of the table",
        "asking.path_below",
        Replace("'..' in path.split('/')", "False"),
        (f"{VERSIONS}::test_a_file_outside_of_the_table_is_refused[../x.parquet]",),
    ),
    Mutant(
        "an offset that is in two files is overlooked",
        "OffsetBits.admit",
        Replace("seen[places].any()", "False"),
        (f"{RANGES}::test_an_offset_that_is_there_twice_is_named",),
    ),
    Mutant(
        "an offset that is twice in one batch is overlooked",
        "OffsetBits.admit",
        Replace("np.count_nonzero(seen) - before != len(offsets)", "False"),
        (f"{RANGES}::test_an_offset_that_is_twice_in_one_batch_is_named",),
    ),
    Mutant(
        "the end does not ask whether all offsets were there",
        "_Reading.require_all",
        Replace("not left", "True"),
        (f"{RANGES}::test_missing_offsets_are_named",),
    ),
    Mutant(
        "a row that is accepted as missing comes back",
        "OffsetBits.__init__",
        Drop("self._mark_done"),
        (f"{RANGES}::test_accepted_gaps_may_be_missing_and_are_not_given",),
    ),
    Mutant(
        "a second pass gives rows again",
        "OffsetBits.begin_pass",
        Drop("self._done |= self._seen"),
        (f"{RANGES}::test_a_read_goes_on_if_its_files_are_rewritten_and_vacuumed",),
    ),
    Mutant(
        "a second pass takes the rows of the first for doubled ones",
        "OffsetBits.begin_pass",
        Drop("self._seen[:] = 0"),
        (f"{RANGES}::test_a_read_goes_on_if_its_files_are_rewritten_and_vacuumed",),
    ),
    Mutant(
        "a second pass does not look at what the first gave",
        "_Reading._rows_of",
        Replace(
            "is_done = bits.are_done(group.first_offset, group.last_offset)",
            "is_done = bits.are_done(group.first_offset, group.last_offset)\n"
            "if is_done:\n"
            "    continue",
        ),
        (f"{RANGES}::test_an_offset_that_is_twice_in_the_newer_version_is_named",),
    ),
    Mutant(
        "a read goes on in another table",
        "reading.read_range",
        Replace("snapshot.table_id != table_id", "False"),
        (f"{RANGES}::test_another_table_at_the_place_is_not_read",),
    ),
    Mutant(
        "a live file that is gone is looked for again and again",
        "reading._newer",
        Replace("found.version <= before.version", "False"),
        (f"{RANGES}::test_a_file_that_the_newest_version_needs_must_be_there",),
    ),
    Mutant(
        "a dropped column is null",
        "_Reading._located",
        Replace("raise self._dropped(str(error), snapshot) from None", "return None"),
        (f"{COLUMNS}::test_a_dropped_column_is_an_error_and_never_null",),
    ),
    Mutant(
        "a column in other letters is null",
        "conversion.index_of",
        Replace("folded.index(lower) if lower in folded else None", "None"),
        (f"{COLUMNS}::test_a_column_in_other_letters_is_not_taken_for_a_missing_one",),
    ),
    Mutant(
        "the numbers of columns are overlooked",
        "conversion.index_of",
        Replace("by_id and located.field_id is not None", "False"),
        (f"{COLUMNS}::test_a_renamed_column_is_the_same[mode1]",),
    ),
    Mutant(
        "a value that changes in the log's type is given",
        "Converter._cast",
        Replace("_is_relabelled(array.type, wanted) or _are_same(array, found)", "True"),
        (f"{COLUMNS}::test_a_value_that_does_not_fit_is_an_error",),
    ),
    Mutant(
        "dates of the Julian calendar are given as others",
        "Converter._leaf",
        Replace("self.has_julian_days", "False"),
        (f"{COLUMNS}::test_dates_of_another_calendar_are_refused",),
    ),
    Mutant(
        "old times are read in nanoseconds",
        "data_files.opened",
        DropArgument("coerce_int96_timestamp_unit"),
        (f"{COLUMNS}::test_int96_is_read_in_microseconds",),
    ),
    Mutant(
        "the digests of pages are not checked",
        "data_files.opened",
        DropArgument("page_checksum_verification"),
        (f"{RANGES}::test_a_damaged_data_file_is_named[_flip_value]",),
    ),
    Mutant(
        "a time without its zone is read in UTC",
        "conversion._timestamp",
        Replace("not _ZONED.fullmatch(text)", "False"),
        (f"{COLUMNS}::test_a_partition_value_of_two_meanings_is_refused",),
    ),
    Mutant(
        "an empty partition value is a text",
        "conversion.parse_value",
        Replace("not text", "text is None"),
        (f"{COLUMNS}::test_a_partition_value_is_parsed",),
    ),
    Mutant(
        "deleted rows come back",
        "reading._admitted",
        Drop("is_wanted[deleted[first:last] - batch.first_row] = False"),
        (f"{VECTORS}::test_deleted_rows_are_not_read",),
    ),
    Mutant(
        "rows are counted from the beginning of their row group",
        "DataFile.row_groups",
        Drop("first_row += group.num_rows"),
        (f"{VECTORS}::test_deleted_rows_are_not_read",),
    ),
    Mutant(
        "the digest of a deletion vector is not checked",
        "deletion_vectors.stored_rows",
        Replace("zlib.crc32(bitmap) != digest", "False"),
        (f"{VECTORS}::test_a_flipped_bit_of_a_vector_file_is_noticed",),
    ),
    Mutant(
        "the number of deleted rows is not checked",
        "deletion_vectors._rows",
        Replace("len(rows) != vector.cardinality", "False"),
        (f"{VECTORS}::test_a_damaged_bitmap_is_refused",),
    ),
    Mutant(
        "a file's name leads out of its folder",
        "folders._checked",
        Replace("'..' in name.split('/')", "False"),
        (f"{FOLDERS}::test_a_name_stays_in_its_folder",),
    ),
    Mutant(
        "a file that became shorter is read as it is",
        "RangedFile._read_range",
        Replace("len(data) != end - begin", "False"),
        (f"{FOLDERS}::test_a_file_that_becomes_shorter_is_an_error",),
    ),
)
