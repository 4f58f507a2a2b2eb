"""Mutants of what may be stored: types that Spark reads, and values that readers can decode."""

from .change import Drop, Replace
from .mutant import Mutant

SCHEMAS = "tests/unit/format/test_arrow_schema.py"
TYPES = "tests/unit/format/test_spark_types.py"
VALUES = "tests/unit/format/test_arrow_values.py"
TEXTS = "tests/unit/format/test_schema_text.py"
LEDGERS = "tests/unit/ledger/test_ledger_requests.py"
NOT_UTF_8 = f"{VALUES}::test_a_string_that_is_not_utf_8_is_refused_with_its_column_and_row"
GROUPS = "tests/unit/ledger/test_group_bounds.py"
GROWTH = "tests/unit/format/test_schema_growth.py"
WIDER = "tests/integration/log/test_wider_columns.py"
TASKS = "tests/integration/dataframe/test_stored_values.py"

MUTANTS = (
    Mutant(
        "only the layout of rows is looked at before they are stored",
        "ValueRules.require",
        Replace("rows.validate(full=True)", "rows.validate()"),
        (
            f"{NOT_UTF_8}[map key]",
            f"{VALUES}::test_a_decimal_that_has_too_many_digits_is_refused",
        ),
    ),
    Mutant(
        "lists of length 0 are stored, and no reader can make them",
        "spark_types.natural_type",
        Replace("not _is_of_length_0(kind)", "True"),
        (
            f"{TYPES}::test_a_type_that_spark_has_no_name_for_is_refused_with_the_nearest"
            "[fixed_size_list<item: int8>[0]]",
        ),
    ),
    Mutant(
        "a task writes what readers cannot decode",
        "AttemptWriter._write_stripes",
        Drop("self._rules.require"),
        (f"{TASKS}::test_a_string_that_is_not_utf_8_fails_its_task[none]",),
    ),
    Mutant(
        "a handle appends what readers cannot decode",
        "TableIntake.rows_of",
        Drop("self._rules.require"),
        (f"{LEDGERS}::test_a_string_that_is_not_utf_8_gets_no_id",),
    ),
    Mutant(
        "a table of any type is cast",
        "TableIntake.rows_of",
        Drop("arrow_values.require_convertible"),
        (f"{LEDGERS}::test_a_table_is_cast_only_where_no_value_changes",),
    ),
    Mutant(
        "a table whose schema was refused is taken the next time",
        "TableIntake.rows_of",
        Replace(
            "arrow_values.require_convertible(self._schema, table.schema)\n"
            "self._convertible = table.schema",
            "before, self._convertible = (self._convertible, table.schema)\n"
            "arrow_values.require_convertible(self._schema, before)",
        ),
        (f"{LEDGERS}::test_a_table_is_cast_only_where_no_value_changes",),
    ),
    Mutant(
        "a string may be one character longer than its column",
        "_require_length",
        Replace("longest > most", "longest > most + 1"),
        (f"{VALUES}::test_a_string_is_not_longer_than_its_column_allows[char(3)]",),
    ),
    Mutant(
        "rows are held to what the DataFrame says of its columns, not to what the log says",
        "resolve_settings",
        Replace(
            "ResolvedSettings(log, quorum, spec, schema, is_strict, min_distinct)",
            "ResolvedSettings(log, quorum, spec, "
            "arrow_schema.encode(request.schema), is_strict, min_distinct)",
        ),
        (f"{TASKS}::test_rows_are_held_to_what_the_log_says_of_its_columns",),
    ),
    Mutant(
        "a log is made of types that Spark cannot read",
        "arrow_schema._check_storable",
        Drop("_require_spark_type"),
        (f"{LEDGERS}::test_a_type_that_spark_cannot_read_makes_neither_ledger_nor_log[uint8]",),
    ),
    Mutant(
        "a schema with other notes counts as the one that was accepted",
        "require_storable",
        Replace("schema.equals(known, check_metadata=True)", "schema.equals(known)"),
        (f"{SCHEMAS}::test_a_schema_with_other_notes_is_checked_too",),
    ),
    Mutant(
        "a schema that was refused counts as accepted",
        "require_storable",
        Replace("_check_storable(schema)", "None"),
        (f"{SCHEMAS}::test_a_refused_schema_is_refused_again",),
    ),
    Mutant(
        "a log is made of types that Arrow cannot write",
        "arrow_schema._check_storable",
        Replace("if not _why_unreadable(schema):\n    ...", "if True:\n    ..."),
        (f"{TYPES}::test_nesting_beyond_arrows_depth_is_refused[struct-70]",),
    ),
    Mutant(
        "a collation that a DataFrame says is not compared",
        "_column_of_both",
        Replace("spark_types.is_declared(given)", "False"),
        (f"{TYPES}::test_types_that_arrow_cannot_tell_do_not_fit[no collation, said so]",),
    ),
    Mutant(
        "a column may say a type that it is not stored as",
        "spark_types.spark_type",
        Replace("_agreed(_declared(field.name, text), natural)", "_declared(field.name, text)"),
        (f"{TYPES}::test_a_column_that_contradicts_itself_is_refused[a narrower type]",),
    ),
    Mutant(
        "structs that Spark has tagged are structs like others",
        "_struct_type",
        Replace("tags.get(name.encode()) == b'true'", "False"),
        (f"{TYPES}::test_types_that_arrow_cannot_tell_do_not_fit[a variant into a struct]",),
    ),
    Mutant(
        "columns with voids are cast as a whole",
        "arrow_schema._cast",
        Replace("column_names.arranged_array(column, field.type, pa.Array.cast)", "column"),
        (f"{VALUES}::test_values_beside_lists_of_void_stay_as_they_are",),
    ),
    Mutant(
        "rows are appended without having been decoded",
        "_messages_of_rows",
        Drop("_require_decodable"),
        (f"{GROUPS}::test_rows_that_a_reader_would_refuse_are_not_encoded",),
    ),
    Mutant(
        "a place may have another SRID than its column",
        "ValueRules.require",
        Drop("_require_spark_values"),
        (f"{VALUES}::test_a_place_has_the_srid_of_its_column[geometry-top level]",),
    ),
    # --- groups ----------------------------------------------------------------------------------
    Mutant(
        "a group of bytes has no bound",
        "WriteHandle._require_values",
        Drop("require_within_bounds"),
        (f"{GROUPS}::test_more_bytes_than_are_appended_at_once_get_no_id[bytes]",),
    ),
    Mutant(
        "a table has no bound once it is cast",
        "TableIntake.rows_of",
        Drop("require_within_bounds(rows.num_rows, rows.nbytes)"),
        (f"{GROUPS}::test_a_table_that_is_too_large_only_once_it_is_cast_gets_no_id",),
    ),
    Mutant(
        "entries have bounds only together",
        "WriteHandle.append_async",
        Replace("len(value) > GROUP_BYTES_MAX", "False"),
        (f"{GROUPS}::test_an_entry_is_bounded_before_it_is_taken",),
    ),
    Mutant(
        "groups are sent before the last of them is looked at",
        "append_in_groups",
        Replace("pieces if len(pieces) > 1 else ()", "()"),
        (f"{GROUPS}::test_nothing_of_what_may_be_split_is_appended_if_some_is_refused",),
    ),
    Mutant(
        "a block has no bound",
        "EntryLogEncoder.encode",
        Replace("size > BLOCK_BYTES_MAX or batch.num_rows > BLOCK_ROWS_MAX", "False"),
        (f"{GROUPS}::test_a_block_is_bounded_before_it_is_packed",),
    ),
    Mutant(
        "a column of a schema text does not say its Spark type",
        "schema_text._column",
        Replace("pa.field(name, arrow, metadata=metadata)", "pa.field(name, arrow)"),
        (
            f"{TEXTS}::test_each_type_is_stored_as_a_dataframe_stores_it",
            f"{TEXTS}::test_names_comments_and_lengths_are_kept",
        ),
    ),
    Mutant(
        "what stands behind a schema is passed over",
        "_Ddl.schema",
        Replace("self._tokens[0][0]", "False"),
        (f"{TEXTS}::test_what_is_no_schema_is_refused_in_one_line",),
    ),
    Mutant(
        "an escape in a schema's JSON makes half a character",
        "schema_text._of_json",
        Drop("require_whole_characters"),
        (f"{TEXTS}::test_half_a_character_is_refused",),
    ),
    # --- wider columns ---------------------------------------------------------------------------
    Mutant(
        "a column is cast to a decimal with fewer digits after the point",
        "spark_types._holds_digits",
        Replace("int(found[2]) >= scale", "True"),
        (f"{GROWTH}::test_each_pair_is_cast_exactly_or_refused[decimal128(12, 2)-alone]",),
    ),
    Mutant(
        "a column takes a wider type without mergeSchema",
        "spark_types.filled",
        Replace("stored if is_held else None", "stored"),
        (f"{GROWTH}::test_each_pair_is_cast_exactly_or_refused[int32-alone]",),
    ),
    Mutant(
        "a struct gets new fields without mergeSchema",
        "spark_types._filled_fields",
        Replace("len(given) > count and (not grows)", "False"),
        (f"{GROWTH}::test_both_sides_of_a_struct_may_be_the_wider_one",),
    ),
    Mutant(
        "a column that grows loses its notes",
        "arrow_schema._common_field",
        Replace("dict(stored.get('metadata') or {})", "{}"),
        (f"{GROWTH}::test_a_column_keeps_its_notes_when_it_grows",),
    ),
    Mutant(
        "fields of a struct that grows may be without nulls",
        "_common_struct",
        Replace("field.with_nullable(True)", "field"),
        (f"{GROWTH}::test_fields_that_may_not_be_null_may_be_null_once_they_are_merged",),
    ),
    Mutant(
        "a read of a DataFrame casts what was widened since it was loaded",
        "reader._log_partitions",
        Drop("check"),
        (f"{WIDER}::test_a_dataframe_loaded_before_is_loaded_again",),
    ),
    Mutant(
        "a repeated batch is compared in the narrower type",
        "repeated_batch._difference",
        Replace("arrow_schema.fits(stored, staged)", "False"),
        (f"{WIDER}::test_a_repeated_batch_is_compared_in_the_wider_type",),
    ),
)
