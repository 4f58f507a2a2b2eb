"""Mutants of what may become a cluster or a bookie, and of what was begun and not finished."""

from .mutant import Mutant

WRITABILITY = "tests/unit/cli/test_writability.py"
SHOWN = "tests/unit/storage/test_shown.py"
DAMAGED = "tests/unit/cli/test_damaged_records.py"
ADMISSION = "tests/unit/cluster/test_admission.py"

MUTANTS = (
    Mutant(
        "an init that was killed cannot go on",
        "_left_to_make",
        "    if not left or not urls.items() <= wanted.items():",
        "    if urls or not urls.items() <= wanted.items():",
        (f"{ADMISSION}::test_init_that_was_killed_anywhere_is_finished_by_the_same_command",),
    ),
    Mutant(
        "an init goes on with the cluster of another one",
        "_left_to_make",
        "    if not left or not urls.items() <= wanted.items():",
        "    if not left:",
        (f"{ADMISSION}::test_init_over_another_init_is_refused_before_anything_is_made",),
    ),
    Mutant(
        "an init makes the metadata store before it has looked at all bookies",
        "init_cluster",
        "        site = Site(record.cluster_id, store_uri, {})\n        new = [",
        "        site = Site(record.cluster_id, store_uri, {})\n"
        "        _make_cluster(metadata_uri, record)\n        new = [",
        (f"{ADMISSION}::test_nothing_is_made_where_one_bookie_cannot_be_finished",),
    ),
    Mutant(
        "a store that a killed client left without a record is one already",
        "VersionedStore._require_no_record",
        "        if is_store:\n            others = [",
        "        if not others:\n            others = [",
        (f"{ADMISSION}::test_init_that_was_killed_anywhere_is_finished_by_the_same_command",),
    ),
    Mutant(
        "folders that a killed client left in ZooKeeper make a store one already",
        "ZooKeeperRecords._has_records",
        "        return any(self._names_in(doing, folder) for folder in folders)",
        "        return bool(folders)",
        (
            "tests/unit/metadata/test_zookeeper.py"
            "::TestMarker::test_format_takes_an_empty_path_and_no_other",
        ),
    ),
    Mutant(
        "a marker that a killed client left counts before it is durable",
        "VersionedStore._mark",
        "        if not directory.put_if_absent(MARKER, marker):",
        "        if directory.exists(MARKER) or not directory.put_if_absent(MARKER, marker):",
        (f"{ADMISSION}::test_a_name_that_a_killed_format_left_is_made_durable",),
    ),
    Mutant(
        "a cookie that a killed client left is nobody's to finish",
        "_check_is_usable",
        "        if read_cookie(root) != cookie:\n            raise",
        "        if True:\n            raise",
        (f"{ADMISSION}::test_adding_that_was_killed_anywhere_is_finished_by_the_same_command",),
    ),
    Mutant(
        "a cookie that a killed client left counts before it is durable",
        "PosixStorage.format",
        "                is_new = posix_calls.put_new(root, COOKIE, cookie)\n",
        "                is_new = not read_cookie(root) and posix_calls.put_new("
        "root, COOKIE, cookie)\n",
        (f"{ADMISSION}::test_a_cookie_that_a_killed_client_left_is_made_durable",),
    ),
    Mutant(
        "a bookie that holds something is one that was begun",
        "_check_is_usable",
        "        names.remove(COOKIE)\n",
        "        names.clear()\n",
        (f"{ADMISSION}::test_a_bookie_that_holds_something_is_not_one_that_was_begun",),
    ),
    Mutant(
        "a bookie of another cluster is one that was begun",
        "admission._begun",
        "    if found.cluster_id != site.cluster_id:",
        "    if not site.cluster_id:",
        (f"{ADMISSION}::test_somebody_elses_bookie_is_refused",),
    ),
    Mutant(
        "what was begun takes an id that is another bookie's by now",
        "admission._begun",
        "    if registered is not None:\n        raise",
        "    if registered is found:\n        raise",
        (f"{ADMISSION}::test_an_id_that_was_taken_since_is_refused",),
    ),
    Mutant(
        "what was begun is finished under another id",
        "admission._begun",
        '    if bookie_id not in ("", found.bookie_id):',
        "    if bookie_id == found:",
        (f"{ADMISSION}::test_another_id_than_was_begun_is_refused_and_the_right_one_named",),
    ),
    Mutant(
        "a place may lie inside one that was given later",
        "require_outside",
        "(url, other) if len(place) > len(there) else (other, url)",
        "(url, other)",
        (f"{ADMISSION}::test_no_place_may_lie_inside_another_and_nothing_is_made",),
    ),
    Mutant(
        "links lead out of a place",
        "admission._parts",
        "Path(os.path.realpath(path_of(url)))",
        "Path(path_of(url))",
        (f"{ADMISSION}::test_no_place_may_lie_inside_another_and_nothing_is_made",),
    ),
    Mutant(
        "what is inside a place is told by how its name begins",
        "admission._parts",
        '            return ("file", *Path(os.path.realpath(path_of(url))).parts)',
        '            return ("file", *os.path.realpath(path_of(url)))',
        (f"{ADMISSION}::test_places_beside_one_another_may_begin_alike",),
    ),
    Mutant(
        "places that lie in one another are not told",
        "risk_findings",
        "        require_apart([cluster.store.uri, *(status.record.url for status in statuses)])",
        "        require_apart([cluster.store.uri])",
        (f"{ADMISSION}::test_places_that_an_older_version_put_into_one_another_are_told",),
    ),
    Mutant(
        "a bookie is added inside another place of its cluster",
        "admission.admit",
        "    require_outside(url, [site.metadata_uri, *",
        "    require_outside(url, [*",
        (f"{ADMISSION}::test_no_bookie_is_added_inside_another_place",),
    ),
    Mutant(
        "a disk that is mounted read-only is writable",
        "PosixRoot.write_problem",
        "            if found.f_flag & os.ST_RDONLY:",
        "            if found.f_flag is os:",
        (f"{WRITABILITY}::test_bookies_shows_it", f"{WRITABILITY}::test_checks_say_so_and_fail"),
    ),
    Mutant(
        "a directory that only others may write to is writable",
        "PosixRoot.write_problem",
        "            if not os.access(",
        "            if not found and os.access(",
        (f"{WRITABILITY}::test_bookies_shows_it", f"{WRITABILITY}::test_checks_say_so_and_fail"),
    ),
    Mutant(
        "a full disk is writable",
        "PosixRoot.write_problem",
        "        if found.f_bavail * found.f_frsize < FREE_BYTES_MIN:",
        "        if found.f_bavail < 0:",
        (f"{WRITABILITY}::test_bookies_shows_it", f"{WRITABILITY}::test_checks_say_so_and_fail"),
    ),
    Mutant(
        "a disk without inodes is writable",
        "PosixRoot.write_problem",
        "        if found.f_files and not found.f_favail:",
        "        if not found.f_files and found.f_favail:",
        (f"{WRITABILITY}::test_bookies_shows_it", f"{WRITABILITY}::test_checks_say_so_and_fail"),
    ),
    Mutant(
        "who is short of bookies is not told which ones failed",
        "ensembles._naming",
        "        if not refused:\n            raise\n        names",
        "        if refused:\n            raise\n        names",
        (f"{WRITABILITY}::test_one_that_only_a_write_shows_is_named_by_the_error",),
    ),
    Mutant(
        "a bookie that cannot be written to gets into an ensemble",
        "BookieStatus.may_join",
        "        return not (self.problem or self.write_problem or is_closed)",
        "        return not (self.problem or is_closed)",
        (f"{WRITABILITY}::test_it_is_not_chosen_and_the_error_points_to_where_it_is_shown",),
    ),
    Mutant(
        "a password that is no UTF-8 is used",
        "Password.resolve",
        "        if not _is_utf8(secret):",
        "        if not secret:",
        (
            "tests/unit/cluster/test_password.py"
            "::test_a_password_that_is_no_utf8_is_refused_without_being_shown",
        ),
    ),
    Mutant(
        "what a password file holds is a password, however long",
        "Password._read",
        "        if len(data) > _FILE_BYTES_MAX:",
        "        if False:",
        (
            "tests/unit/cluster/test_password.py"
            "::test_a_password_file_without_an_end_is_refused_and_a_pipe_is_not",
        ),
    ),
    Mutant(
        "requests to S3 are logged with their headers",
        "_may_be_logged",
        "    return record.levelno >= logging.INFO or not _is_ours.get()",
        "    return record.levelno >= logging.DEBUG or not _is_ours.get()",
        (
            "tests/conformance/test_s3_messages.py"
            "::test_no_secret_of_a_request_is_logged_and_requests_of_others_are",
        ),
    ),
    Mutant(
        "what others log of their requests to S3 is dropped",
        "_may_be_logged",
        "    return record.levelno >= logging.INFO or not _is_ours.get()",
        "    return record.levelno >= logging.INFO",
        (
            "tests/conformance/test_s3_messages.py"
            "::test_no_secret_of_a_request_is_logged_and_requests_of_others_are",
        ),
    ),
    Mutant(
        "a user is told by a proper @ alone",
        "storage.shown",
        "(?:@|%40)",
        "@",
        (f"{SHOWN}::test_what_may_be_secret_is_hidden",),
    ),
    Mutant(
        "a password that was cut in two is shown by half",
        "_may_be_user",
        '    if "@" in rest and (_COLON.search(place) or not is_path):',
        '    if "@" in rest and is_path == has_host:',
        (f"{SHOWN}::test_what_may_be_secret_is_hidden",),
    ),
    Mutant(
        "a user without a host is shown as a host",
        "_may_be_user",
        "    return has_host and not is_path and _USER.match(place) is not None",
        "    return has_host and is_path and _USER.match(place) is not None",
        (f"{SHOWN}::test_what_may_be_secret_is_hidden",),
    ),
    Mutant(
        "what turns a line around is fit for an address",
        "_is_unfit",
        "    return unicodedata.category(char) in _UNFIT or char in _TURNS",
        "    return unicodedata.category(char) in _UNFIT",
        (f"{SHOWN}::test_what_does_not_just_stand_there_is_refused",),
    ),
    Mutant(
        "a line break in a metadata store's address is dropped without a word",
        "canonical",
        'require_fit(given.strip(" \\t\\r\\n"))',
        'given.strip(" \\t\\r\\n")',
        (f"{ADMISSION}::test_a_path_that_cannot_be_shown_is_refused_before_anything_is_made",),
    ),
    Mutant(
        "a bookie is added whose path cannot be shown",
        "admission.admit",
        "    require_fit(unquote(url))\n    place",
        "    place",
        (f"{ADMISSION}::test_a_path_that_cannot_be_shown_is_refused_before_anything_is_made",),
    ),
    Mutant(
        "a cluster is made in a path that cannot be shown",
        "require_apart",
        "        require_fit(unquote(url))\n        require_outside",
        "        require_outside",
        (f"{ADMISSION}::test_a_path_that_cannot_be_shown_is_refused_before_anything_is_made",),
    ),
    Mutant(
        "bytes of a folder that are no text lead to another folder",
        "files._decoded",
        '        return unquote(path, errors="strict")',
        "        return unquote(path)",
        (f"{ADMISSION}::test_a_path_that_cannot_be_shown_is_refused_before_anything_is_made",),
    ),
    Mutant(
        "a damaged record hides all others from who shows",
        "Survey.__init__",
        "            records.step_over = self._note",
        "            records.step_over = None",
        (
            f"{DAMAGED}::test_a_damaged_record_is_named_by_the_checks_and_the_rest_is_shown",
            f"{DAMAGED}::test_a_damaged_ledger_is_a_row_and_hides_no_other",
        ),
    ),
    Mutant(
        "all is well though no ledger can be given an id",
        "Survey.read_all",
        "        self._counters.get(layout.LEDGER_COUNTER_KEY)\n",
        "",
        (f"{DAMAGED}::test_a_damaged_record_is_named_by_the_checks_and_the_rest_is_shown",),
    ),
    Mutant(
        "who decides steps over damaged records",
        "Records._read",
        "            if step_over is None:\n                raise\n",
        "            if step_over is None:\n                return None\n",
        (f"{DAMAGED}::test_nothing_is_decided_by_what_could_not_be_read",),
    ),
    Mutant(
        "a name that is no record's hides all records",
        "Survey._ids",
        "            except InvalidRequestError as error:",
        "            except ZeroDivisionError as error:",
        (f"{DAMAGED}::test_a_name_that_is_no_records_is_named",),
    ),
    Mutant(
        "a record that gives no answer hides those beside it",
        "VersionedRecords._may_be_live",
        "        except OSError:\n            return True",
        "        except ZeroDivisionError:\n            return True",
        (f"{DAMAGED}::test_a_folder_that_cannot_be_looked_into_hides_no_other",),
    ),
    Mutant(
        "a listing that left something out succeeds",
        "note_unreadable",
        "    return 1 if cluster.unreadable else 0",
        "    return 0",
        (f"{DAMAGED}::test_other_listings_show_the_rest_and_name_it",),
    ),
    Mutant(
        "status names no damaged record",
        "health.examine",
        "    found += unreadable_findings(cluster)",
        "    list(unreadable_findings(cluster))",
        (f"{DAMAGED}::test_a_damaged_record_is_named_by_the_checks_and_the_rest_is_shown",),
    ),
    Mutant(
        "a damaged ledger has no row",
        "ledger_views.ledgers",
        "    if log_name is None and cluster.unreadable:\n        rows +=",
        "    if log_name is places_of_ledgers:\n        rows +=",
        (f"{DAMAGED}::test_a_damaged_ledger_is_a_row_and_hides_no_other",),
    ),
)
