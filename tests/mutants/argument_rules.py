"""Mutants of checks of arguments: what is refused at once, and what is said then."""

from .change import Drop, Replace
from .mutant import Mutant

LEDGERS = "tests/unit/ledger/test_ledger_requests.py"
START_UP = "tests/unit/spark/test_start_up.py"
ADDRESS = "tests/unit/storage/test_address.py"
CALLS = (
    "tests/unit/test_declared_calls.py"
    "::test_a_value_out_of_range_is_refused_before_anything_is_opened"
)
KAFKA = "tests/unit/spark/test_kafka_options.py"

MUTANTS = (
    # --- new ledgers -----------------------------------------------------------------------------
    Mutant(
        "a column takes a name that readers add",
        "_check_storable",
        Replace("name.lower() in METADATA_COLUMNS", "name in ()"),
        (f"{LEDGERS}::test_a_schema_that_could_not_be_read_back_makes_no_ledger",),
    ),
    Mutant(
        "a schema of another kind makes a ledger of bytes",
        "_row_schema",
        Replace("given is None", "not given"),
        (f"{LEDGERS}::test_a_schema_is_one_of_arrow",),
    ),
    Mutant(
        "custom metadata may hold anything",
        "texts_by_name",
        Replace("isinstance(text, str)", "True"),
        (f"{LEDGERS}::test_custom_metadata_is_text_by_text",),
    ),
    Mutant(
        "what waits for a missing entry may be bounded by anything",
        "BookKeeper.create_ledger_adv",
        Replace(
            "arguments.whole_number('waiting_bytes_max', waiting_bytes_max, least=1)",
            "waiting_bytes_max",
        ),
        (f"{LEDGERS}::test_limits_of_waiting_are_numbers",),
    ),
    # --- tables ----------------------------------------------------------------------------------
    # --- older Spark -----------------------------------------------------------------------------
    Mutant(
        "Spark 4.1 asks what a refused stream does not understand",
        "RefusedStreamReader",
        Replace(
            "def latestOffset(self, start: dict[str, Any] | None = None, "
            "limit: 'ReadLimit | None' = None) -> dict[str, Any]: ...",
            "def latestOffset(self, start: dict[str, Any], "
            "limit: 'ReadLimit | None' = None) -> dict[str, Any]: ...",
        ),
        (f"{START_UP}::test_a_spark_before_4_2_is_told_that_it_cannot_read_a_log_as_a_stream",),
    ),
    # --- what is shown ---------------------------------------------------------------------------
    # --- names and secrets -----------------------------------------------------------------------
    Mutant(
        "a column's name goes on behind NUL",
        "_require_readable_names",
        Replace("'\\x00' in field.name", "False"),
        (f"{LEDGERS}::test_a_schema_that_could_not_be_read_back_makes_no_ledger",),
    ),
    Mutant(
        "names inside a column are not looked at",
        "_require_readable_names",
        Drop("for part in parts:\n    ..."),
        (f"{LEDGERS}::test_a_schema_that_could_not_be_read_back_makes_no_ledger",),
    ),
    Mutant(
        "a struct has two fields of one name",
        "_require_readable_names",
        Replace("doubled and pa.types.is_struct(kind)", "False"),
        (f"{LEDGERS}::test_a_schema_that_could_not_be_read_back_makes_no_ledger",),
    ),
    Mutant(
        "a time after which a second bookie is asked has no bound",
        "ReaderSettings.__post_init__",
        Drop("object.__setattr__(self, 'speculative_read_ms', later)"),
        (f"{LEDGERS}::test_the_longest_time_is_for_ever",),
    ),
    Mutant(
        "an entry is taken whose id no record holds",
        "AdvWriteHandle.append_async",
        Replace("not 0 <= entry_id <= NUMBER_MAX", "entry_id < 0"),
        (f"{LEDGERS}::test_a_chosen_id_is_a_whole_number[huge]",),
    ),
    Mutant(
        "a variable's line end is part of the password",
        "Password.resolve",
        Replace(
            "_without_line_end(self._read() if self.file else os.environ.get(self.env, ''))",
            "_without_line_end(self._read()) if self.file else os.environ.get(self.env, '')",
        ),
        (
            "tests/unit/cluster/test_password.py"
            "::test_a_line_end_is_no_part_of_a_password_wherever_it_is_kept",
        ),
    ),
    Mutant(
        "an empty log is read with any password",
        "read_view_in_order",
        Drop("make_digester"),
        (
            "tests/unit/cli/test_values.py"
            "::test_the_password_of_a_log_is_checked_though_it_is_empty",
        ),
    ),
    Mutant(
        "a directory is named through its parent",
        "address._directory",
        Replace("'..' in path.split('/')", "False"),
        (f"{ADDRESS}::test_what_is_refused_is_refused_everywhere",),
    ),
    Mutant(
        "an added or moved bookie is registered as it was spelled",
        "with_store",
        Drop("url = canonical(url)"),
        (f"{ADDRESS}::test_each_spelling_is_one_place_for_metadata_and_bookies",),
    ),
    Mutant(
        "a metadata store is opened as it was spelled",
        "metadata.uri._store",
        Drop("uri = canonical(uri)"),
        (f"{ADDRESS}::test_each_spelling_is_one_place_for_metadata_and_bookies",),
    ),
    Mutant(
        "a number without a unit is added to a time",
        "quantities._sum",
        Drop("if is_part and (not found[2]):\n    ..."),
        ("tests/unit/test_quantities.py::test_what_is_neither_is_one_line",),
    ),
    Mutant(
        "a bookie is added at the emptied place of another",
        "admission.admit",
        Drop("_require_new_place"),
        (
            "tests/unit/cli/test_next_steps.py"
            "::test_an_emptied_place_of_a_bookie_is_begun_anew_by_reinit",
        ),
    ),
    Mutant(
        "a text counts as True in a maintenance call",
        "Parameter.checked",
        Replace("arguments.yes_or_no(self.name, given=given)", "given"),
        (f"{CALLS}[repair-given7]", f"{CALLS}[decommission-given8]"),
    ),
    Mutant(
        "a text counts as a list of its characters in a maintenance call",
        "Parameter.checked",
        Replace("arguments.several(self.name, given)", "given"),
        (f"{CALLS}[decommission-given9]", f"{CALLS}[audit-given10]"),
    ),
    Mutant(
        "a text accepts the loss of entries",
        "BookKeeper.recover_ledger",
        Replace("arguments.yes_or_no('accepts_loss', given=accepts_loss)", "accepts_loss"),
        ("tests/unit/test_declared_calls.py::test_what_loses_rows_takes_yes_or_no_only[no]",),
    ),
    Mutant(
        "a text makes a retention ignore what cursors have yet to read",
        "LogHandle.retain",
        Replace(
            "arguments.yes_or_no('respects_cursors', given=respects_cursors)", "respects_cursors"
        ),
        ("tests/unit/test_declared_calls.py::test_what_loses_rows_takes_yes_or_no_only[no]",),
    ),
    # --- Kafka's options -------------------------------------------------------------------------
    Mutant(
        "offsets in JSON may be those of another log",
        "_number_in_json",
        Replace("name != log_name", "False"),
        (f"{KAFKA}::test_an_end_is_not_the_earliest_and_a_ledger_is_no_log",),
    ),
    Mutant(
        "a read may begin at a time after all rows, whatever its strategy",
        "require_start",
        Replace("read.commits.requires_start and begin >= end", "False"),
        (
            f"{KAFKA}::test_a_batch_read_of_kafkas_options",
            f"{KAFKA}::test_a_stream_read_of_kafkas_options",
        ),
    ),
    Mutant(
        "a read has as few tasks as its size needs",
        "read_slices._tasks",
        Replace("least_tasks > count", "False"),
        (f"{KAFKA}::test_a_read_has_about_as_many_tasks_as_are_wanted",),
    ),
)
