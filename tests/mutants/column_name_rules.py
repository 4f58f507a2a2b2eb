"""Mutants of how columns are matched by name."""

from .change import Drop, Replace
from .mutant import Mutant

VALUES = "tests/unit/format/test_arrow_values.py"
NAMES = "tests/unit/format/test_column_names.py"
BY_NAME = "tests/integration/log/test_columns_by_name.py"
COLUMNS = "tests/unit/spark/test_columns.py"

MUTANTS = (
    Mutant(
        "letters in another case make another column",
        "column_names.places",
        Replace("folded[low] if is_only else None", "None"),
        (f"{NAMES}::test_names_find_their_places[a b-B A-found2-new2]",),
    ),
    Mutant(
        "a name in another case goes before the one that is written so",
        "column_names.places",
        Replace(
            "exact[name] if name in exact else folded[low] if is_only else None",
            "folded[low] if low in folded else exact.get(name)",
        ),
        (f"{NAMES}::test_names_find_their_places[a-a A-found4-new4]",),
    ),
    Mutant(
        "of two names that differ in case only, the last is taken",
        "column_names.places",
        Replace("stored_as[low] == given_as[low] == 1", "low in folded"),
        (
            f"{NAMES}::test_names_find_their_places[Ab-aB AB-found9-new9]",
            f"{NAMES}::test_names_find_their_places[Ab aB-AB-found10-new10]",
        ),
    ),
    Mutant(
        "fields of structs are taken by their places",
        "column_names.arranged_array",
        Replace("_arranged_struct(array, kind, leaf)", "array"),
        (f"{NAMES}::test_fields_of_structs_are_put_in_order_at_any_depth[0]",),
    ),
    Mutant(
        "in lists of another kind a field in another case is null",
        "column_names.arranged_array",
        Replace("_list_arrays(kind) is not None", "_list_arrays(kind) is lists"),
        (f"{NAMES}::test_names_are_matched_in_lists_of_any_kind[<lambda>-list_-0]",),
    ),
    Mutant(
        "a list of one size begins where its buffer does",
        "column_names._arranged_list",
        Replace("array.offset * size", "0"),
        (f"{NAMES}::test_names_are_matched_in_lists_of_any_kind[<lambda>-<lambda>-1]",),
    ),
    Mutant(
        "fields of structs in tables are taken by their places",
        "arrow_values._converts",
        Replace(
            "zip(stored, column_names.places(*names), strict=True)",
            "zip(stored, range(given.num_fields))",
        ),
        (f"{VALUES}::test_a_table_may_be_cast_where_each_value_stays_or_fails",),
    ),
    Mutant(
        "structs that are null have fields that are null",
        "column_names._arranged_struct",
        Replace("_nulls(array)", "None"),
        (f"{NAMES}::test_fields_of_structs_are_put_in_order_at_any_depth[0]",),
    ),
    Mutant(
        "a column that may not be null may be missing",
        "arrow_schema.by_name",
        Replace("any((place is None and (not field.nullable) for field, place in pairs))", "False"),
        (f"{NAMES}::test_a_missing_column_that_may_not_be_null_is_refused",),
    ),
    Mutant(
        "a tail takes rows without a value for a column that may not be null",
        "arrow_schema.fits",
        Replace("stored_field.nullable", "True"),
        (f"{NAMES}::test_a_missing_column_that_may_not_be_null_is_refused",),
    ),
    Mutant(
        "rows keep the names that they came with",
        "arrow_schema.by_name",
        Replace("spark_types.renamed(given.field(place), field.name)", "given.field(place)"),
        (f"{NAMES}::test_new_columns_come_last",),
    ),
    Mutant(
        "a ledger stores the columns of its first rows only",
        "LogTail._provide_made",
        Replace("self._log_schema(log)", "self._rows.schema"),
        (f"{BY_NAME}::test_a_tail_has_all_columns_of_the_log",),
    ),
    Mutant(
        "cases of fields inside of columns are not told apart",
        "schema._paths",
        Drop("yield from _paths_inside(field.type, path)"),
        (
            f"{COLUMNS}::"
            "test_names_in_another_case_are_refused_where_the_session_tells_cases_apart[true]",
        ),
    ),
    Mutant(
        "cases are never told apart",
        "schema.require_same_case",
        Replace(
            "task is None or (task.getLocalProperty(CASE_SENSITIVE) or '').lower() != 'true'",
            "True",
        ),
        (
            f"{COLUMNS}::"
            "test_names_in_another_case_are_refused_where_the_session_tells_cases_apart[true]",
        ),
    ),
)
