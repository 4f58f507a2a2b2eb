"""Mutants of what is believed of stored bytes."""

from .change import Drop, Replace
from .mutant import Mutant

ENTRY_LOG = "tests/unit/format/test_entry_log.py"
PIECES = "tests/unit/ledger/test_pieces_of_columns.py"
BLOCKS = "tests/unit/format/test_hostile_blocks.py"
COLUMNS = "tests/unit/format/test_block_columns.py"
HEADERS = "tests/unit/format/test_headers.py"
RECORDS = "tests/unit/format/test_hostile_records.py"
SMALL = "tests/unit/format/test_small_records.py"
LABELS = "tests/unit/protocol/test_labels.py"
ENVELOPE = "tests/unit/format/test_envelope.py"
VIEWS = "tests/unit/admin/test_views.py"
FORGED = "tests/integration/dataframe/test_forged_copies.py"

BLOCK_PLACE = f"{ENTRY_LOG}::test_a_block_is_bound_to_its_place"
INDEX_PLACE = f"{ENTRY_LOG}::test_an_index_is_bound_to_its_place"
BLOCK_CONTEXT = 'f"entry log section 1 {names[0]} {names[1]} {names[2]} {ordinal}"'
FRAME_CONTEXT = 'f"entry log frame 1 {names[0]} {names[1]} {names[2]} {row_count} {length_bytes}"'


def block_context_without(part: str, name: str) -> Mutant:
    return Mutant(
        f"the digest of a block does not bind its {name}",
        "_block_place",
        Replace(BLOCK_CONTEXT, BLOCK_CONTEXT.replace(part, "")),
        (BLOCK_PLACE,),
    )


def frame_context_without(part: str, name: str) -> Mutant:
    return Mutant(
        f"the digest of an index does not bind its {name}",
        "_frame_context",
        Replace(FRAME_CONTEXT, FRAME_CONTEXT.replace(part, "")),
        (INDEX_PLACE,),
    )


MUTANTS = (
    # --- what is left out ------------------------------------------------------------------------
    Mutant(
        "a field that is left out has no value",
        "Fields.take_or_none",
        Replace(
            "name in self._values and self._values[name] is None", "not self._values.get(name)"
        ),
        (f"{RECORDS}::test_a_record_without_one_of_its_fields_is_refused[ledger metadata]",),
    ),
    Mutant(
        "a record may leave out what some members have stored",
        "add_record._stored",
        Replace(
            "len(stored) != quorum.ensemble_size or set(map(type, stored)) != {int}",
            "not set(map(type, stored)) <= {int}",
        ),
        (f"{RECORDS}::test_what_members_cannot_have_stored_is_refused",),
    ),
    Mutant(
        "an open ledger needs no writer",
        "ledger_metadata.decode",
        Replace("metadata.state in _WITHOUT_WRITER or bool(metadata.last_fragment.token)", "True"),
        (f"{RECORDS}::test_a_record_that_contradicts_itself_or_its_name_is_refused",),
    ),
    # --- what is absurd --------------------------------------------------------------------------
    Mutant(
        "a record whose rows are none is not stepped over",
        "ReadHandle._found",
        Replace("self._entry_reader.refuse(record, str(error))\ncontinue", "raise"),
        (f"{FORGED}::test_what_holds_no_rows_of_the_ledger_is_stepped_over",),
    ),
    Mutant(
        "inline rows may be packed",
        "_require_bounded",
        Replace(
            "not unpacked_bytes_max or _declared_bytes(body, buffers) > unpacked_bytes_max",
            "unpacked_bytes_max and _declared_bytes(body, buffers) > unpacked_bytes_max",
        ),
        (f"{FORGED}::test_what_holds_no_rows_of_the_ledger_is_stepped_over",),
    ),
    Mutant(
        "any number is a time",
        "timestamp",
        Replace("0 < milliseconds <= CALENDAR_END_MS", "milliseconds != 0"),
        (f"{VIEWS}::test_a_time_outside_of_the_calendar_is_none",),
    ),
    Mutant(
        "an entry log may claim any length",
        "add_record._attempt",
        Replace("0 < index_offset < length <= ENTRY_LOG_BYTES_MAX", "0 < index_offset < length"),
        (f"{RECORDS}::test_a_record_that_cannot_be_is_refused",),
    ),
    # --- entry logs ------------------------------------------------------------------------------
    block_context_without("{names[0]}", "ledger"),
    block_context_without("{names[1]}", "attempt"),
    block_context_without("{names[2]}", "stripe"),
    block_context_without("{ordinal}", "position in the file"),
    frame_context_without("{names[0]}", "ledger"),
    frame_context_without("{names[1]}", "attempt"),
    frame_context_without("{names[2]}", "stripe"),
    frame_context_without("{row_count}", "number of rows"),
    Mutant(
        "the digest of a column does not bind its number, when it is written or read",
        "format.entry_log",
        (
            Replace("f'{place} {number}'", "place"),
            Replace("f'{place} {section.number}'", "place"),
        ),
        (f"{COLUMNS}::test_a_column_is_bound_to_its_place",),
    ),
    Mutant(
        "the digest of the metadata of a block is not checked",
        "check_block",
        Replace("block.sections(columns)", "block.sections(columns)[1:]"),
        (
            f"{COLUMNS}::test_damage_matters_to_the_readers_of_its_column",
            f"{COLUMNS}::test_the_message_names_what_is_damaged",
        ),
    ),
    Mutant(
        "only the first of the columns that are read is checked",
        "check_block",
        Replace("block.sections(columns)", "block.sections(columns)[:2]"),
        (f"{COLUMNS}::test_the_message_names_what_is_damaged",),
    ),
    Mutant(
        "the columns of a block may lie elsewhere than its index says",
        "decode_block",
        Replace("layout.section_lengths(header) != lengths", "False"),
        (
            f"{COLUMNS}::test_a_buffer_outside_of_its_column_is_refused",
            f"{COLUMNS}::test_an_index_with_other_columns_than_the_message_is_refused",
        ),
    ),
    Mutant(
        "a buffer may lie in another column",
        "_require_in_order",
        Replace("any(map(operator.lt, offsets, ends))", "False"),
        (f"{COLUMNS}::test_a_buffer_outside_of_its_column_is_refused",),
    ),
    Mutant(
        "there may be bytes before the first column",
        "BatchLayout.section_lengths",
        Replace("begins[0]", "False"),
        (f"{COLUMNS}::test_bytes_before_the_first_column_are_refused",),
    ),
    Mutant(
        "what a column unpacks to is not bounded",
        "decode_columns",
        Drop("_require_bounded"),
        (f"{COLUMNS}::test_only_the_wanted_columns_are_unpacked",),
    ),
    Mutant(
        "bytes after the message of a block are read as the next message",
        "_ColumnStream.decoded",
        Replace("self._source.has_more()", "False"),
        (f"{PIECES}::test_a_malformed_block_does_not_matter_to_the_next",),
    ),
    Mutant(
        "a stream goes on after a malformed message",
        "BatchLayout.stream_of",
        Replace("stream.is_over", "False"),
        (f"{PIECES}::test_a_malformed_block_does_not_matter_to_the_next",),
    ),
    Mutant(
        "any message counts as a record batch",
        "BatchHeader.__init__",
        Replace("message.byte(_MESSAGE_KIND) != _RECORD_BATCH", "False"),
        (f"{PIECES}::test_only_a_record_batch_has_a_header",),
    ),
    Mutant(
        "a block is written without a look at its columns",
        "entry_log._section_lengths",
        Replace("sum(lengths) != sum(map(len, block))", "False"),
        (f"{COLUMNS}::test_a_block_that_readers_would_refuse_is_not_written",),
    ),
    Mutant(
        "a block may claim any length",
        "entry_log._are_sane",
        Replace("0 < block.length <= BLOCK_LENGTH_MAX", "0 < block.length"),
        (f"{COLUMNS}::test_a_block_takes_no_more_room_than_its_bound",),
    ),
    Mutant(
        "the columns of a block are read one by one",
        "ranges_to_read",
        Replace("begin - ranges[-1][1] <= bytes_per_request", "False"),
        (f"{COLUMNS}::test_near_columns_are_read_at_once",),
    ),
    Mutant(
        "an end of stream is no damage",
        "_read_message",
        Replace("EOFError", "KeyError"),
        (f"{BLOCKS}::test_what_is_no_batch_is_refused",),
    ),
    # --- journals --------------------------------------------------------------------------------
    Mutant(
        "the digest of an add record is not checked",
        "_decode_frame",
        Replace("digester.matches(expected, _context(ledger_id, position), header)", "True"),
        (f"{RECORDS}::test_a_record_of_another_ledger_fails_its_digest_before_it_is_parsed",),
    ),
    Mutant(
        "the digest of an add record does not bind its ledger",
        "journal._context",
        Replace("f'add record 1 {ledger_id} {position}'", "f'add record 1 {position}'"),
        (f"{RECORDS}::test_a_record_of_another_ledger_fails_its_digest_before_it_is_parsed",),
    ),
    Mutant(
        "a copy of a record elsewhere in its journal is a record",
        "journal._checksum",
        Replace("crc32c(_POSITION.pack(position), 0)", "0"),
        (f"{RECORDS}::test_what_is_forged_without_a_lie_is_read",),
    ),
    Mutant(
        "a number in a header that is like others may be spelt in any way",
        "format.add_record",
        Replace(
            "{b'\"NUMBER\"': b'(-1|0|[1-9][0-9]{0,17})', b'\"DIGEST\"': b'\"([0-9a-f]{8,64})\"'}",
            "{b'\"NUMBER\"': b'(-?[0-9]+)', b'\"DIGEST\"': b'\"([0-9a-f]{8,64})\"'}",
        ),
        (f"{HEADERS}::test_what_is_spelt_in_another_way_is_judged_by_its_json",),
    ),
    Mutant(
        "what only begins like other headers is taken for one of them",
        "Headers._like_the_model",
        Replace("self._pattern.fullmatch", "self._pattern.match"),
        (f"{HEADERS}::test_what_is_spelt_in_another_way_is_judged_by_its_json",),
    ),
    Mutant(
        "a pattern is made anew for every few headers that are not alike",
        "Headers._from_json",
        Replace("self._long_ways, self._patience = (0, 2 * self._patience)", "self._long_ways = 0"),
        (f"{HEADERS}::test_patterns_are_not_made_again_and_again",),
    ),
    # --- small records, names, digests -----------------------------------------------------------
    Mutant(
        "the checksum of a record does not bind its name",
        "strict_json._checksum",
        Replace("f'{kind} {version} {cluster} {key}\\n'", "f'{kind} {version} {cluster}\\n'"),
        (f"{ENVELOPE}::test_record_under_another_name_or_kind_is_found",),
    ),
    Mutant(
        "the checksum of a record does not bind its cluster",
        "strict_json._checksum",
        Replace("f'{kind} {version} {cluster} {key}\\n'", "f'{kind} {version} {key}\\n'"),
        (f"{ENVELOPE}::test_cluster_of_a_record_is_covered_by_its_checksum",),
    ),
    Mutant(
        "a bookie's record may have any labels",
        "format.cluster._labels",
        Replace("require_labels(fields.mapping('labels', str))", "fields.mapping('labels', str)"),
        (f"{SMALL}::test_labels_that_are_none_are_damage",),
    ),
    Mutant(
        "a bookie has any number of labels",
        "require_labels",
        Replace("len(given) > bounds.LABELS_MAX", "False"),
        (
            f"{LABELS}::test_labels_beyond_their_bounds",
            f"{LABELS}::test_a_change_sets_replaces_and_removes",
        ),
    ),
    Mutant(
        "a label may have any name",
        "require_labels",
        Drop("require_label_name"),
        (f"{LABELS}::test_labels_beyond_their_bounds",),
    ),
    Mutant(
        "a label may have any value",
        "require_labels",
        Replace("not isinstance(value, str) or not _is_value(value)", "False"),
        (f"{LABELS}::test_labels_beyond_their_bounds",),
    ),
    Mutant(
        "a label that is given twice counts once",
        "arguments.labels",
        Replace("len(found) != len(pairs)", "False"),
        ("tests/unit/cli/test_labels.py::test_labels_that_cannot_be_make_no_bookie",),
    ),
    Mutant(
        "a label that is set and removed is set",
        "set_labels",
        Replace("sorted(given.keys() & set(removed))", "[]"),
        ("tests/unit/cli/test_labels.py::test_a_label_is_not_set_and_removed_at_once",),
    ),
    Mutant(
        "a cluster may have any id",
        "format.cluster._cluster_id",
        Replace("layout.token(fields.take('id', str))", "fields.take('id', str)"),
        (f"{SMALL}::test_a_cluster_has_an_id_that_can_be_one",),
    ),
    Mutant(
        "context and bytes can be traded",
        "Digester.digest",
        Replace("f'{len(context)}:{context}:'", "f'{context}:'"),
        (f"{SMALL}::test_context_and_bytes_cannot_be_traded",),
    ),
)
