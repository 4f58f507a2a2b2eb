"""Mutants of what may become a cluster or a bookie, and of what was begun and not finished."""

from .change import Replace
from .mutant import Mutant

WRITABILITY = "tests/unit/cli/test_writability.py"
SHOWN = "tests/unit/storage/test_shown.py"
DAMAGED = "tests/unit/cli/test_damaged_records.py"
ADMISSION = "tests/unit/cluster/test_admission.py"

MUTANTS = (
    Mutant(
        "an init that was killed cannot go on",
        "_left_to_make",
        Replace("not left", "urls"),
        (f"{ADMISSION}::test_init_that_was_killed_anywhere_is_finished_by_the_same_command",),
    ),
    Mutant(
        "an init makes the metadata store before it has looked at all bookies",
        "init_cluster",
        Replace(
            "site = admission.Site(record.cluster_id, store_uri, {}, group=group_id)",
            "site = admission.Site(record.cluster_id, store_uri, {}, group=group_id)\n"
            "make_cluster(metadata_uri, record)",
        ),
        (f"{ADMISSION}::test_nothing_is_made_where_one_bookie_cannot_be_finished",),
    ),
    Mutant(
        "a store that a killed client left without a record is one already",
        "VersionedStore._require_no_record",
        Replace("if is_store:\n    ...", "if not others:\n    ..."),
        (f"{ADMISSION}::test_init_that_was_killed_anywhere_is_finished_by_the_same_command",),
    ),
    Mutant(
        "folders that a killed client left in ZooKeeper make a store one already",
        "ZooKeeperRecords._has_records",
        Replace("any((self._names_in(doing, folder) for folder in folders))", "bool(folders)"),
        (
            "tests/unit/metadata/test_zookeeper.py"
            "::TestMarker::test_format_takes_an_empty_path_and_no_other",
        ),
    ),
    Mutant(
        "a marker that a killed client left counts before it is durable",
        "VersionedStore._mark",
        Replace(
            "not directory.put_if_absent(MARKER, marker)",
            "directory.exists(MARKER) or not directory.put_if_absent(MARKER, marker)",
        ),
        (f"{ADMISSION}::test_a_name_that_a_killed_format_left_is_made_durable",),
    ),
    Mutant(
        "a cookie that a killed client left counts before it is durable",
        "PosixStorage.format",
        Replace(
            "posix_calls.put_new(root, COOKIE, cookie, Access(group))",
            "not read_cookie(root) and posix_calls.put_new(root, COOKIE, cookie, Access(group))",
        ),
        (f"{ADMISSION}::test_a_cookie_that_a_killed_client_left_is_made_durable",),
    ),
    Mutant(
        "a bookie that holds something is one that was begun",
        "_check_is_usable",
        Replace("names.remove(COOKIE)", "names.clear()"),
        (f"{ADMISSION}::test_a_bookie_that_holds_something_is_not_one_that_was_begun",),
    ),
    Mutant(
        "a bookie of another cluster is one that was begun",
        "admission._begun",
        Replace("found.cluster_id != site.cluster_id", "not site.cluster_id"),
        (f"{ADMISSION}::test_somebody_elses_bookie_is_refused",),
    ),
    Mutant(
        "what was begun takes an id that is another bookie's by now",
        "admission._begun",
        Replace("if registered is not None:\n    ...", "if registered is found:\n    ..."),
        (f"{ADMISSION}::test_an_id_that_was_taken_since_is_refused",),
    ),
    Mutant(
        "what was begun is finished under another id",
        "admission._begun",
        Replace("bookie_id not in ('', found.bookie_id)", "bookie_id == found"),
        (f"{ADMISSION}::test_another_id_than_was_begun_is_refused_and_the_right_one_named",),
    ),
    Mutant(
        "links lead out of a place",
        "admission._parts",
        Replace("os.path.realpath(path_of(url))", "path_of(url)"),
        (f"{ADMISSION}::test_no_place_may_lie_inside_another_and_nothing_is_made",),
    ),
    Mutant(
        "what is inside a place is told by how its name begins",
        "admission._parts",
        Replace("Path(os.path.realpath(path_of(url))).parts", "os.path.realpath(path_of(url))"),
        (f"{ADMISSION}::test_places_beside_one_another_may_begin_alike",),
    ),
    Mutant(
        "a disk that is mounted read-only is writable",
        "PosixRoot.write_problem",
        Replace("found.f_flag & os.ST_RDONLY", "found.f_flag is os"),
        (f"{WRITABILITY}::test_bookies_shows_it", f"{WRITABILITY}::test_checks_say_so_and_fail"),
    ),
    Mutant(
        "a directory that only others may write to is writable",
        "PosixRoot.write_problem",
        Replace(
            "not os.access('.', os.W_OK | os.X_OK, dir_fd=self._fd, effective_ids=True)",
            "not found and os.access('.', os.W_OK | os.X_OK, dir_fd=self._fd, effective_ids=True)",
        ),
        (f"{WRITABILITY}::test_bookies_shows_it", f"{WRITABILITY}::test_checks_say_so_and_fail"),
    ),
    Mutant(
        "a full disk is writable",
        "PosixRoot.write_problem",
        Replace("found.f_bavail * found.f_frsize < FREE_BYTES_MIN", "found.f_bavail < 0"),
        (f"{WRITABILITY}::test_bookies_shows_it", f"{WRITABILITY}::test_checks_say_so_and_fail"),
    ),
    Mutant(
        "a disk without inodes is writable",
        "PosixRoot.write_problem",
        Replace("found.f_files and (not found.f_favail)", "not found.f_files and found.f_favail"),
        (f"{WRITABILITY}::test_bookies_shows_it", f"{WRITABILITY}::test_checks_say_so_and_fail"),
    ),
    Mutant(
        "requests to S3 are logged with their headers",
        "_may_be_logged",
        Replace("logging.INFO", "logging.DEBUG"),
        (
            "tests/conformance/test_s3_messages.py"
            "::test_no_secret_of_a_request_is_logged_and_requests_of_others_are",
        ),
    ),
    Mutant(
        "a user is told by a proper @ alone",
        "storage.address",
        Replace(
            "_PARTS = re.compile('(?P<head>(?:[a-z][a-z0-9+.-]*:)?//|)(?:(?P<user>[^?#]*)"
            "(?:@|%40))?(?P<place>[^?#]*)(?P<rest>.*)', re.DOTALL | re.IGNORECASE)",
            "_PARTS = re.compile('(?P<head>(?:[a-z][a-z0-9+.-]*:)?//|)(?:(?P<user>[^?#]*)"
            "@)?(?P<place>[^?#]*)(?P<rest>.*)', re.DOTALL | re.IGNORECASE)",
        ),
        (f"{SHOWN}::test_what_may_be_secret_is_hidden",),
    ),
    Mutant(
        "a password that was cut in two is shown by half",
        "_may_be_user",
        Replace("_COLON.search(place) or not is_path", "is_path == has_host"),
        (f"{SHOWN}::test_what_may_be_secret_is_hidden",),
    ),
    Mutant(
        "a line break in a metadata store's address is dropped without a word",
        "canonical",
        Replace("require_fit(given.strip(' \\t\\r\\n'))", "given.strip(' \\t\\r\\n')"),
        (f"{ADMISSION}::test_a_path_that_cannot_be_shown_is_refused_before_anything_is_made",),
    ),
    Mutant(
        "a damaged record hides all others from who shows",
        "Survey.__init__",
        Replace("self._note", "None"),
        (
            f"{DAMAGED}::test_a_damaged_record_is_named_by_the_checks_and_the_rest_is_shown",
            f"{DAMAGED}::test_a_damaged_ledger_is_a_row_and_hides_no_other",
        ),
    ),
    Mutant(
        "who decides steps over damaged records",
        "Records._read",
        Replace("raise", "return None"),
        (f"{DAMAGED}::test_nothing_is_decided_by_what_could_not_be_read",),
    ),
    Mutant(
        "a name that is no record's hides all records",
        "Survey._ids",
        Replace("InvalidRequestError", "ZeroDivisionError"),
        (f"{DAMAGED}::test_a_name_that_is_no_records_is_named",),
    ),
    Mutant(
        "a record that gives no answer hides those beside it",
        "VersionedRecords._may_be_live",
        Replace("OSError", "ZeroDivisionError"),
        (f"{DAMAGED}::test_a_folder_that_cannot_be_looked_into_hides_no_other",),
    ),
    Mutant(
        "status names no damaged record",
        "health.examine",
        Replace("found += unreadable_findings(cluster)", "list(unreadable_findings(cluster))"),
        (f"{DAMAGED}::test_a_damaged_record_is_named_by_the_checks_and_the_rest_is_shown",),
    ),
    Mutant(
        "a damaged ledger has no row",
        "views.ledgers",
        Replace("log_name is None and cluster.unreadable", "log_name is places_of_ledgers"),
        (f"{DAMAGED}::test_a_damaged_ledger_is_a_row_and_hides_no_other",),
    ),
)
