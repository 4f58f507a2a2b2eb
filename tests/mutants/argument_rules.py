"""Mutants of checks of arguments: what is refused at once, and what is said then."""

from .mutant import Mutant

FRONT = "tests/unit/test_bookkeeper.py"
LEDGERS = "tests/unit/ledger/test_ledger_requests.py"
S3_MESSAGES = "tests/conformance/test_s3_messages.py"
START_UP = "tests/unit/spark/test_start_up.py"
TABLES = "tests/unit/spark/test_tables.py"
ADDRESS = "tests/unit/storage/test_address.py"

MUTANTS = (
    Mutant(
        "something new takes a password that protects nothing",
        "new_spec",
        "        if password:\n",
        "        if False:\n",
        (f"{FRONT}::test_a_password_that_would_protect_nothing_is_refused",),
    ),
    Mutant(
        "rows are written with a password that protects nothing",
        "_digest_of",
        "    require_of_use(log, request.password)\n",
        "",
        (f"{FRONT}::test_nothing_is_written_with_a_password_that_protects_nothing",),
    ),
    Mutant(
        "a writer opens a log with a password that protects nothing",
        "LogHandle.writer",
        "        require_of_use(self.record, self._password)\n",
        "",
        (f"{FRONT}::test_nothing_is_written_with_a_password_that_protects_nothing",),
    ),
    Mutant(
        "a closed BookKeeper goes on",
        "BookKeeper._cluster",
        "        if self._is_closed:\n            raise",
        "        if False:\n            raise",
        (f"{FRONT}::test_a_closed_one_is_not_used",),
    ),
    Mutant(
        "a deleted cursor is said to have moved",
        "Cursor.advance",
        "            self._require_existing()\n",
        "",
        (f"{FRONT}::test_a_deleted_cursor_says_so",),
    ),
    Mutant(
        "a log is truncated below 0",
        "LogHandle.truncate",
        '"before_offset", before_offset, least=0)',
        '"before_offset", before_offset)',
        (f"{FRONT}::test_what_is_below_0_is_refused",),
    ),
    Mutant(
        "a log that is gone is listed",
        "BookKeeper.list_logs",
        "if seen is not None and not seen.value.is_tombstone]",
        "if seen is not None]",
        (f"{FRONT}::test_logs_are_listed_and_deleted",),
    ),
    # --- new ledgers -----------------------------------------------------------------------------
    Mutant(
        "a ledger is made whose rows cannot be read back",
        "creating.create_ledger",
        "    arrow_schema.require_storable(arrow_schema.decode(schema))\n",
        "",
        (f"{LEDGERS}::test_a_schema_that_could_not_be_read_back_makes_no_ledger",),
    ),
    Mutant(
        "a column takes a name that readers add",
        "require_storable",
        "if name.lower() in METADATA_COLUMNS]",
        "if name in ()]",
        (f"{LEDGERS}::test_a_schema_that_could_not_be_read_back_makes_no_ledger",),
    ),
    Mutant(
        "a schema of another kind makes a ledger of bytes",
        "_row_schema",
        "    if given is None:\n        return VALUE_SCHEMA\n",
        "    if not given:\n        return VALUE_SCHEMA\n",
        (f"{LEDGERS}::test_a_schema_is_one_of_arrow",),
    ),
    Mutant(
        "custom metadata may hold anything",
        "texts_by_name",
        "isinstance(text, str) for pair in given.items() for text in pair",
        "True for pair in given.items() for text in pair",
        (f"{LEDGERS}::test_custom_metadata_is_text_by_text",),
    ),
    Mutant(
        "custom metadata may hold half a character",
        "texts_by_name",
        "        require_whole_characters(what, text)\n",
        "        pass\n",
        (f"{LEDGERS}::test_custom_metadata_is_of_whole_characters",),
    ),
    Mutant(
        "a record is written that cannot be read back",
        "canonical_json",
        '    if "\\\\ud" in text:',
        "    if False:",
        ("tests/unit/format/test_envelope.py::test_what_could_not_be_read_back_is_not_written",),
    ),
    Mutant(
        "custom metadata may say that a ledger is of a log",
        "texts_by_name",
        "    if taken in given:\n",
        "    if False:\n",
        (f"{LEDGERS}::test_custom_metadata_does_not_say_which_log_a_ledger_is_of",),
    ),
    Mutant(
        "a limit may be infinite",
        "require_number",
        "if not (isfinite(number) and is_in_range):",
        "if not is_in_range:",
        (
            f"{LEDGERS}::test_writer_settings_are_numbers",
            f"{LEDGERS}::test_reader_settings_are_numbers",
        ),
    ),
    Mutant(
        "a limit may be 0 where that makes no sense",
        "require_number",
        "is_in_range = number >= 0 if may_be_0 else number > 0",
        "is_in_range = number >= 0",
        (f"{LEDGERS}::test_0_is_only_what_can_be_off",),
    ),
    Mutant(
        "what waits for a missing entry may be bounded by anything",
        "BookKeeper.create_ledger_adv",
        'arguments.whole_number("waiting_bytes_max", waiting_bytes_max, least=1)',
        "waiting_bytes_max",
        (f"{LEDGERS}::test_limits_of_waiting_are_numbers",),
    ),
    # --- tables ----------------------------------------------------------------------------------
    Mutant(
        "a new table takes rows that no query on it reads",
        "BookKeeperWriter.write",
        "        require_no_new_table(context)\n",
        "",
        (f"{TABLES}::test_a_table_is_refused_before_a_row_is_taken",),
    ),
    Mutant(
        "the function of a micro-batch cannot write to a log",
        "require_no_new_table",
        "    if task is None or task.getLocalProperty(BATCH_ID) is not None:\n",
        "    if task is None:\n",
        (f"{TABLES}::test_other_writes_are_let_through",),
    ),
    # --- older Spark -----------------------------------------------------------------------------
    Mutant(
        "Spark 4.1 is told a time zone that it does not take",
        "utc_for",
        'if "timezone" in signature(convert).parameters else {}',
        "",
        (f"{START_UP}::test_times_are_utc_for_each_spark",),
    ),
    Mutant(
        "Spark 4.1 asks what a refused stream does not understand",
        "RefusedStreamReader.latestOffset",
        "start: dict[str, Any] | None = None, limit",
        "start: dict[str, Any], limit",
        (f"{START_UP}::test_a_spark_before_4_2_is_told_that_it_cannot_read_a_log_as_a_stream",),
    ),
    # --- what is shown ---------------------------------------------------------------------------
    Mutant(
        "the credentials in an endpoint are shown",
        "shown_endpoint",
        'scheme, _, rest = shown_url(url).partition("://")',
        'scheme, _, rest = url.partition("://")',
        (f"{S3_MESSAGES}::test_of_an_endpoint_only_host_and_port_are_shown",),
    ),
    Mutant(
        "an object that fails its checksum is said to be a store that is down",
        "_no_answer",
        'if "Checksum" in kind:',
        "if False:",
        (f"{S3_MESSAGES}::test_an_object_that_does_not_match_its_checksum_is_called_damaged",),
    ),
    Mutant(
        "a look that failed is said to have changed something",
        "VersionedStore._known_errors",
        "if doing.startswith(_CHANGES):",
        "if True:",
        (f"{S3_MESSAGES}::test_an_endpoint_that_is_down_is_named",),
    ),
    # --- names and secrets -----------------------------------------------------------------------
    Mutant(
        "a column's name goes on behind NUL",
        "_require_readable_names",
        'if "\\0" in field.name:',
        "if False:",
        (f"{LEDGERS}::test_a_schema_that_could_not_be_read_back_makes_no_ledger",),
    ),
    Mutant(
        "names inside a column are not looked at",
        "_require_readable_names",
        "    for part in parts:\n        _require_readable_names(part, column)\n",
        "",
        (f"{LEDGERS}::test_a_schema_that_could_not_be_read_back_makes_no_ledger",),
    ),
    Mutant(
        "a struct has two fields of one name",
        "_require_readable_names",
        "if doubled and pa.types.is_struct(kind):",
        "if False:",
        (f"{LEDGERS}::test_a_schema_that_could_not_be_read_back_makes_no_ledger",),
    ),
    Mutant(
        "a time after which a second bookie is asked has no bound",
        "ReaderSettings.__post_init__",
        '            object.__setattr__(self, "speculative_read_ms", later)\n',
        "            pass\n",
        (f"{LEDGERS}::test_the_longest_time_is_for_ever",),
    ),
    Mutant(
        "an entry is taken whose id no record holds",
        "AdvWriteHandle.append_async",
        "not 0 <= entry_id <= NUMBER_MAX",
        "entry_id < 0",
        (f"{LEDGERS}::test_a_chosen_id_is_a_whole_number[huge]",),
    ),
    Mutant(
        "a variable's line end is part of the password",
        "Password.resolve",
        """_without_line_end(
            self._read() if self.file else os.environ.get(self.env, "")
        )""",
        """(
            _without_line_end(self._read()) if self.file else os.environ.get(self.env, "")
        )""",
        (
            "tests/unit/cluster/test_password.py"
            "::test_a_line_end_is_no_part_of_a_password_wherever_it_is_kept",
        ),
    ),
    Mutant(
        "an empty log is read with any password",
        "read_view_in_order",
        "    make_digester(log.digest, password)\n",
        "",
        (
            "tests/unit/cli/test_values.py"
            "::test_the_password_of_a_log_is_checked_though_it_is_empty",
        ),
    ),
    Mutant(
        "a directory is named through its parent",
        "address._directory",
        'if ".." in path.split("/"):',
        "if False:",
        (f"{ADDRESS}::test_what_is_refused_is_refused_everywhere",),
    ),
    Mutant(
        "an added bookie is registered as it was spelled",
        "admission.admit",
        "    url = canonical(url)\n",
        "",
        (f"{ADDRESS}::test_each_spelling_is_one_place_for_metadata_and_bookies",),
    ),
    Mutant(
        "a moved bookie is registered as it was spelled",
        "moving.move",
        "    new_url = canonical(new_url)\n",
        "",
        (f"{ADDRESS}::test_each_spelling_is_one_place_for_metadata_and_bookies",),
    ),
    Mutant(
        "a metadata store is opened as it was spelled",
        "metadata.uri._store",
        "    uri = canonical(uri)\n",
        "",
        (f"{ADDRESS}::test_each_spelling_is_one_place_for_metadata_and_bookies",),
    ),
    Mutant(
        "a number without a unit is added to a time",
        "quantities._sum",
        "        if is_part and not found[2]:\n            break\n",
        "",
        ("tests/unit/test_quantities.py::test_what_is_neither_is_one_line",),
    ),
    Mutant(
        "a bookie is added at the emptied place of another",
        "admission.admit",
        "        _require_new_place(site, url)\n",
        "        pass\n",
        (
            "tests/unit/cli/test_next_steps.py"
            "::test_an_emptied_place_of_a_bookie_is_begun_anew_by_reinit",
        ),
    ),
)
