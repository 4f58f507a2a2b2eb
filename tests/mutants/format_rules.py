"""Mutants of what is believed of stored bytes."""

from .mutant import Mutant

ENTRY_LOG = "tests/unit/format/test_entry_log.py"
BLOCKS = "tests/unit/format/test_hostile_blocks.py"
HEADERS = "tests/unit/format/test_headers.py"
RECORDS = "tests/unit/format/test_hostile_records.py"
SMALL = "tests/unit/format/test_small_records.py"
DAMAGE = "tests/unit/format/test_damage.py"
ENVELOPE = "tests/unit/format/test_envelope.py"
VIEWS = "tests/unit/admin/test_views.py"
FORGED = "tests/integration/dataframe/test_forged_copies.py"

BLOCK_PLACE = f"{ENTRY_LOG}::test_a_block_is_bound_to_its_place"
INDEX_PLACE = f"{ENTRY_LOG}::test_an_index_is_bound_to_its_place"
BLOCK_CONTEXT = 'f"entry log block 1 {names[0]} {names[1]} {names[2]} {ordinal}"'
FRAME_CONTEXT = 'f"entry log frame 1 {names[0]} {names[1]} {names[2]} {row_count} {length_bytes}"'


def block_context_without(part: str, name: str) -> Mutant:
    return Mutant(
        f"the digest of a block does not bind its {name}",
        "_block_context",
        BLOCK_CONTEXT,
        BLOCK_CONTEXT.replace(part, ""),
        (BLOCK_PLACE,),
    )


def frame_context_without(part: str, name: str) -> Mutant:
    return Mutant(
        f"the digest of an index does not bind its {name}",
        "_frame_context",
        FRAME_CONTEXT,
        FRAME_CONTEXT.replace(part, ""),
        (INDEX_PLACE,),
    )


MUTANTS = (
    Mutant(
        "what was stored is left out when a record is written back",
        "to_json",
        "if version(record) > FIRST_VERSION:",
        "if False:",
        (
            f"{SMALL}::test_a_record_is_written_back_byte_for_byte_in_its_own_version"
            "[second version-CRC32C]",
        ),
    ),
    Mutant(
        "a record of the first version is written back in the second",
        "version",
        "return LAST_VERSION if record.stored else FIRST_VERSION",
        "return LAST_VERSION",
        (
            f"{SMALL}::test_a_record_is_written_back_byte_for_byte_in_its_own_version"
            "[first version-CRC32C]",
        ),
    ),
    Mutant(
        "who can compute checksums can take away what was stored",
        "_stored",
        "if (stored is None) is not (version == FIRST_VERSION):",
        "if stored is None and version > FIRST_VERSION:",
        (f"{RECORDS}::test_a_record_of_an_older_version_says_nothing_of_what_was_stored",),
    ),
    Mutant(
        "a record says that it was stored before it was written",
        "is_coherent",
        "-1 <= min(record.stored) <= max(record.stored) < first",
        "-1 <= min(record.stored) <= max(record.stored) <= first",
        (f"{RECORDS}::test_what_members_cannot_have_stored_is_refused[the record itself]",),
    ),
    # --- what is absurd --------------------------------------------------------------------------
    Mutant(
        "a record whose rows are none is not stepped over",
        "ReadHandle._found",
        "                self._entry_reader.refuse(record, str(error))\n                continue",
        "                raise",
        (f"{FORGED}::test_what_holds_no_rows_of_the_ledger_is_stepped_over",),
    ),
    Mutant(
        "inline rows may be packed",
        "decode_batch",
        "if not unpacked_bytes_max or _declared_bytes(message) > unpacked_bytes_max:",
        "if unpacked_bytes_max and _declared_bytes(message) > unpacked_bytes_max:",
        (f"{FORGED}::test_what_holds_no_rows_of_the_ledger_is_stepped_over",),
    ),
    Mutant(
        "half a character is text",
        "loads",
        'if b"\\\\u" in data:',
        "if False:",
        (f"{RECORDS}::test_a_record_that_cannot_be_is_refused",),
    ),
    Mutant(
        "numbers may have any size",
        "is_stored_number",
        "type(value) is int and NUMBER_MIN <= value <= NUMBER_MAX",
        "type(value) is int",
        (f"{RECORDS}::test_a_record_that_cannot_be_is_refused",),
    ),
    Mutant(
        "any number is a time",
        "timestamp",
        "0 < milliseconds <= CALENDAR_END_MS",
        "milliseconds != 0",
        (f"{VIEWS}::test_a_time_outside_of_the_calendar_is_none",),
    ),
    Mutant(
        "an entry log may claim any length",
        "add_record._attempt",
        "0 < index_offset < length <= ENTRY_LOG_BYTES_MAX",
        "0 < index_offset < length",
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
        "the digest of an index is not checked",
        "decode_index",
        "if not digester.matches(log.digest, context, head, end):",
        "if False:",
        (INDEX_PLACE,),
    ),
    Mutant(
        "the digest of a block is not checked",
        "check_block",
        "if not digester.matches(block.digest, _block_context(names, block.ordinal), data):",
        "if False:",
        (BLOCK_PLACE, f"{ENTRY_LOG}::test_files_and_blocks_that_were_swapped_are_found"),
    ),
    Mutant(
        "an index may contradict its record",
        "decode_index",
        "if offset != log.index_offset or row != log.row_count or not _are_sane(blocks):",
        "if False:",
        (f"{BLOCKS}::test_an_index_that_contradicts_its_record_is_refused",),
    ),
    Mutant(
        "a packed block may claim any size",
        "decode_batch",
        "if not unpacked_bytes_max or _declared_bytes(message) > unpacked_bytes_max:",
        "if not unpacked_bytes_max:",
        (f"{BLOCKS}::test_the_declared_size_of_a_packed_buffer_is_checked_first",),
    ),
    Mutant(
        "rows that cost nothing are not counted first",
        "decode_batch",
        "if _row_count(message) != row_count:",
        "if False:",
        (f"{BLOCKS}::test_rows_that_cost_nothing_are_counted_first",),
    ),
    Mutant(
        "what a block says inside is not validated",
        "decode_batch",
        "        batch = batch.select(list(columns))\n    batch.validate(full=True)\n",
        "        batch = batch.select(list(columns))\n",
        (
            f"{BLOCKS}::test_values_that_lead_outside_are_refused",
            f"{BLOCKS}::test_text_that_is_not_utf8_is_refused",
        ),
    ),
    Mutant(
        "an end of stream is no damage",
        "decode_batch",
        "except EOFError as error:",
        "except KeyError as error:",
        (f"{BLOCKS}::test_what_is_no_batch_is_refused",),
    ),
    # --- journals --------------------------------------------------------------------------------
    Mutant(
        "the digest of an add record is not checked",
        "_decode_frame",
        "is_whole = digester.matches(expected, _context(ledger_id, position), header)",
        "is_whole = True",
        (f"{RECORDS}::test_a_record_of_another_ledger_fails_its_digest_before_it_is_parsed",),
    ),
    Mutant(
        "the digest of an add record does not bind its ledger",
        "_context",
        'return f"add record 1 {ledger_id} {position}"',
        'return f"add record 1 {position}"',
        (f"{RECORDS}::test_a_record_of_another_ledger_fails_its_digest_before_it_is_parsed",),
    ),
    Mutant(
        "a copy of a record elsewhere in its journal is a record",
        "journal._checksum",
        "crc32c(prefix, crc32c(_POSITION.pack(position), 0))",
        "crc32c(prefix, 0)",
        (f"{RECORDS}::test_what_is_forged_without_a_lie_is_read",),
    ),
    Mutant(
        "a damaged record with something behind it is taken for a torn one",
        "_decode_frame",
        "    if end == len(data):\n        raise _CutError\n",
        "    raise _CutError\n",
        (f"{DAMAGE}::test_a_damaged_record_with_something_behind_it_is_corrupt",),
    ),
    Mutant(
        "an attempt may have fewer than no rows",
        "is_coherent",
        "is_next = attempt.row_count >= 1 and attempt.first_entry_id == expected",
        "is_next = attempt.first_entry_id == expected",
        (
            f"{RECORDS}::test_rows_below_zero_do_not_make_room_for_others_twice",
            f"{RECORDS}::test_an_attempt_without_rows_is_refused",
        ),
    ),
    Mutant(
        "attempts may overlap or leave gaps",
        "is_coherent",
        "is_next = attempt.row_count >= 1 and attempt.first_entry_id == expected",
        "is_next = attempt.row_count >= 1",
        (f"{RECORDS}::test_a_record_that_cannot_be_is_refused",),
    ),
    Mutant(
        "a header that is like others but for numbers may say what cannot be",
        "Headers._like_the_model",
        "return record if add_record.is_coherent(record) else None",
        "return record",
        (f"{HEADERS}::test_whatever_stands_in_their_places_is_judged_as_in_their_json",),
    ),
    Mutant(
        "a header that is like those of another version is taken for one of them",
        "Headers._like_the_model",
        "if found is None or model is None or version != add_record.version(model):",
        "if found is None or model is None:",
        (f"{HEADERS}::test_whatever_stands_in_their_places_is_judged_as_in_their_json",),
    ),
    Mutant(
        "a number in a header that is like others may be spelt in any way",
        "headers",
        "(-1|0|[1-9][0-9]{0,17})",
        "(-?[0-9]+)",
        (f"{HEADERS}::test_what_is_spelt_in_another_way_is_judged_by_its_json",),
    ),
    Mutant(
        "what only begins like other headers is taken for one of them",
        "Headers._like_the_model",
        "self._pattern.fullmatch(header)",
        "self._pattern.match(header)",
        (f"{HEADERS}::test_what_is_spelt_in_another_way_is_judged_by_its_json",),
    ),
    Mutant(
        "a pattern is made anew for every few headers that are not alike",
        "Headers._from_json",
        "self._long_ways, self._patience = 0, 2 * self._patience",
        "self._long_ways = 0",
        (f"{HEADERS}::test_patterns_are_not_made_again_and_again",),
    ),
    Mutant(
        "a pattern is made of a header that names transactions",
        "Headers._from_json",
        "is_model = not record.attempts and not record.transactions",
        "is_model = not record.attempts",
        (f"{HEADERS}::test_others_are_decoded_all_the_same",),
    ),
    Mutant(
        "headers that are alike are parsed each",
        "Headers.decode",
        "return self._like_the_model(header, version) or self._from_json(header, version)",
        "return self._from_json(header, version)",
        (f"{HEADERS}::test_those_that_are_alike_are_decoded_without_their_json",),
    ),
    # --- small records, names, digests -----------------------------------------------------------
    Mutant(
        "an id may be a path",
        "layout.token",
        "if not _TOKEN.fullmatch(value):",
        "if False:",
        (f"{SMALL}::test_names_that_could_lead_elsewhere_are_refused",),
    ),
    Mutant(
        "the checksum of a record does not bind its name",
        "envelope._checksum",
        'f"{kind} {version} {key}\\n"',
        'f"{kind} {version}\\n"',
        (f"{ENVELOPE}::test_record_under_another_name_or_kind_is_found",),
    ),
    Mutant(
        "metadata may be of another ledger",
        "ledger_metadata.decode",
        "if metadata.ledger_id != ledger_id or",
        "if",
        (f"{RECORDS}::test_a_record_that_contradicts_itself_or_its_name_is_refused",),
    ),
    Mutant(
        "doubled keys are taken",
        "_without_doubles",
        "if len(found) != len(pairs):",
        "if False:",
        (f"{ENVELOPE}::test_strange_payload_with_a_right_checksum",),
    ),
    Mutant(
        "context and bytes can be traded",
        "Digester.digest",
        'f"{len(context)}:{context}:"',
        'f"{context}:"',
        (f"{SMALL}::test_context_and_bytes_cannot_be_traded",),
    ),
    Mutant(
        "any password is the right one",
        "_checked_key",
        "if not hmac.compare_digest(_key_check(key), spec.check):",
        "if False:",
        (f"{SMALL}::test_a_wrong_password_is_unauthorized",),
    ),
)
