"""Mutants of how records are kept in ZooKeeper, and of what its answers are taken for."""

from .change import Drop, DropArgument, Replace
from .mutant import Mutant

FOLDER = "tests/unit/metadata/zookeeper"
SCRIPTS = f"{FOLDER}/test_scripts.py"
ONCE = f"{SCRIPTS}::TestSentOnce"
LOOKS = f"{SCRIPTS}::TestLooks"
RECORDS = f"{SCRIPTS}::TestRecords"
STORES = f"{FOLDER}/test_the_store.py"
STORE = f"{STORES}::TestTheStore"
FORMAT = f"{STORES}::TestFormat"
CONNECTION = f"{STORES}::TestConnection"
FRESH = f"{FOLDER}/test_freshness.py"
KEPT = f"{FOLDER}/test_kept_sessions.py"
HERE, RECENT, SYNCED = (f"{FRESH}::Test{name}" for name in ("FromHere", "Recent", "Synced"))
PAIRS = f"{FOLDER}/test_interleaved.py::test_another_client_between_any_two_requests"

MUTANTS = (
    # --- how new an answer is --------------------------------------------------------------------
    Mutant(
        "a transaction before the block serves the block",
        "_Confirmed.holds",
        Replace("self.tick > tick", "True"),
        (f"{HERE}::test_an_answer_is_as_new_as_the_block",),
    ),
    Mutant(
        "a transaction of an earlier session serves a block",
        "_Confirmed.holds",
        Replace("self.session == client.client_id", "True"),
        (
            f"{HERE}::test_a_new_session_begins_anew",
            f"{HERE}::test_an_answer_to_a_new_session_does_not_count",
        ),
    ),
    Mutant(
        "an answer counts though the session ended before it came",
        "ZooKeeperSession._look",
        Replace("needed.kind is not Kind.FROM_HERE or known.holds(client, needed.tick)", "True"),
        (f"{HERE}::test_an_answer_to_a_new_session_does_not_count",),
    ),
    Mutant(
        "a refused change serves the looks after it",
        "ZooKeeperSession.commit",
        Replace(
            "_raise_refusal(doing, results, len(operations))\nself._confirmed = sent",
            "self._confirmed = sent\n_raise_refusal(doing, results, len(operations))",
        ),
        (f"{HERE}::test_a_refused_change_serves_no_look",),
    ),
    Mutant(
        "a block may look as long ago as the block around it",
        "from_here",
        Replace("at(begin())", "at(needed() or begin())"),
        (f"{HERE}::test_an_inner_block_begins_anew",),
    ),
    Mutant(
        "values are kept over an end of the connection",
        "_Watched._forget_all",
        Drop("self._values.clear()"),
        (f"{RECENT}::test_a_change_of_the_connection_forgets_all",),
    ),
    Mutant(
        "a broken connection is told to nobody that waits",
        "Listeners.tell",
        Replace("name is None or name in names", "name in names"),
        (f"{RECENT}::test_a_task_that_waits_is_told",),
    ),
    Mutant(
        "the next user of a connection is told of nothing",
        "ZooKeeperSession._begin_call",
        Replace("self._connection.watched.listeners = self._listeners", "..."),
        (f"{RECENT}::test_a_task_of_the_next_user_of_the_connection_is_told",),
    ),
    Mutant(
        "a value is kept though its watch has fired",
        "_Watched.note",
        Replace("self._begun.get(path) is watch", "True"),
        (f"{RECENT}::test_a_watch_that_fires_before_the_answer_is_there",),
    ),
    Mutant(
        "watches that fired are not waited for",
        "ZooKeeperSession._watched_value",
        Drop("watched.settle(limit)"),
        (f"{SYNCED}::test_a_sync_serves_a_block",),
    ),
    Mutant(
        "an older answer counts against a newer version",
        "ZooKeeperMetadataStore.is_current",
        Replace("found.version < seen.version", "False"),
        (f"{RECENT}::test_an_older_answer_says_nothing_against_a_newer_version",),
    ),
    Mutant(
        "the metadata check accepts an older answer",
        "ZooKeeperMetadataStore.is_current",
        Replace("freshness.may_lag()", "True"),
        (f"{FRESH}::test_the_metadata_check_accepts_no_newer_version",),
    ),
    # --- sessions that are kept ------------------------------------------------------------------
    Mutant(
        "a session is kept though a request of it is on its way",
        "_Connection.may_be_kept",
        Replace("not self.calls", "True"),
        (f"{KEPT}::test_one_with_a_request_on_its_way_is_not_kept",),
    ),
    Mutant(
        "a session is kept that may have a place in a row",
        "ZooKeeperSession.first_place",
        Drop("connection.is_kept = False"),
        (f"{KEPT}::test_one_that_stood_in_a_row_is_not_kept",),
    ),
    Mutant(
        "a session without a connection is kept",
        "_Connection.may_be_kept",
        Replace("self.client.client_id is not None", "True"),
        (f"{KEPT}::test_one_without_a_connection_is_not_kept",),
    ),
    Mutant(
        "a session is kept with all watches that it ever had",
        "_Connection.may_be_kept",
        Replace("self.watched.count() <= _WATCHES_MAX", "True"),
        (f"{KEPT}::test_one_with_many_watches_is_not_kept",),
    ),
    Mutant(
        "a kept session is used without a question",
        "ZooKeeperSession._kept",
        Drop("_result(kept.client.exists_async('/'), limit)"),
        (f"{KEPT}::test_one_that_does_not_answer_is_replaced",),
    ),
    Mutant(
        "a session of other credentials is used",
        "session_access",
        Replace("credentials()", "None"),
        (f"{KEPT}::test_other_credentials_have_their_own",),
    ),
    Mutant(
        "a kept session that lost its connection connects again and again",
        "_Kept.minded_by",
        Drop("self.connection.when_broken(self.tell_end)"),
        (f"{KEPT}::test_one_that_loses_its_connection_is_ended",),
    ),
    Mutant(
        "a session is taken whose end has begun",
        "_Kept.take",
        Drop("if not self._claim.acquire(blocking=False):\n    ..."),
        (f"{KEPT}::test_none_is_taken_whose_end_has_begun",),
    ),
    Mutant(
        "a session is ended though it was taken",
        "_Kept.is_taken_within",
        Replace("not self._claim.acquire(blocking=False)", "False"),
        (f"{KEPT}::test_a_change_of_its_state_does_not_end_one_in_use",),
    ),
    Mutant(
        "a forked process ends the sessions of its parent",
        "_Shelf.end_all",
        Drop("if os.getpid() != pid:\n    ..."),
        (f"{KEPT}::test_a_forked_process_has_none",),
    ),
    Mutant(
        "a second session takes the place of a kept one",
        "_Shelf.put",
        Drop("if access in self._kept:\n    ..."),
        (f"{KEPT}::test_two_stores_at_a_time_have_two_and_one_is_kept",),
    ),
    # --- what is sent, and how often -------------------------------------------------------------
    Mutant(
        "a change is sent to ZooKeeper again when its answer is lost",
        "ZooKeeperSession.commit",
        Replace(
            "results = _result(transaction.commit_async(), limit)",
            "try:\n"
            "    results = _result(transaction.commit_async(), limit)\n"
            "except _RECONNECTING:\n"
            "    transaction.committed = False\n"
            "    results = _result(transaction.commit_async(), limit)",
        ),
        (f"{ONCE}::test_a_change_without_an_answer_is_unknown",),
    ),
    Mutant(
        "a change that waited too long may be carried out late",
        "ZooKeeperSession._connected",
        Replace(
            "not isinstance(error, _RECONNECTING) or isinstance(error, ConnectionClosedError)",
            "isinstance(error, ConnectionClosedError)",
        ),
        (f"{ONCE}::test_a_change_that_waited_too_long_is_never_carried_out",),
    ),
    Mutant(
        "a connection to ZooKeeper that was closed is used on",
        "ZooKeeperSession._connected",
        Replace(
            "not isinstance(error, _RECONNECTING) or isinstance(error, ConnectionClosedError)",
            "not isinstance(error, _RECONNECTING)",
        ),
        (f"{ONCE}::test_a_change_without_an_answer_is_unknown[create-Fate.CLOSED]",),
    ),
    Mutant(
        "an answer of ZooKeeper that names no culprit is a success",
        "_raise_refusal",
        Replace(
            "len(results) != count or any((isinstance(result, Exception) for result in results))",
            "len(results) != count",
        ),
        (f"{ONCE}::test_an_answer_that_names_no_culprit_is_no_success",),
    ),
    Mutant(
        "an answer of ZooKeeper that leaves operations out is a success",
        "_raise_refusal",
        Replace(
            "len(results) != count or any((isinstance(result, Exception) for result in results))",
            "any((isinstance(result, Exception) for result in results))",
        ),
        (f"{ONCE}::test_an_answer_that_names_no_culprit_is_no_success",),
    ),
    Mutant(
        "an operation that was rolled back is taken for the culprit",
        "_raise_refusal",
        Replace("(RolledBackError, RuntimeInconsistency)", "RuntimeInconsistency"),
        (f"{FORMAT}::test_the_first_record_makes_the_folders_of_its_kind",),
    ),
    Mutant(
        "a look at ZooKeeper is not sent again",
        "ZooKeeperSession._repeated",
        Replace("not limit.left()", "True"),
        (f"{LOOKS}::test_a_look_is_sent_again",),
    ),
    Mutant(
        "a look at ZooKeeper is sent again for ever",
        "ZooKeeperSession._repeated",
        Replace("not limit.left()", "limit.seconds > 1"),
        (f"{LOOKS}::test_a_look_ends_when_its_time_is_over",),
    ),
    Mutant(
        "a look at ZooKeeper is waited for in front of the check",
        "ZooKeeperSession._look",
        Replace(
            "checked, asked = (transaction.commit_async(), ask(client))",
            "asked, checked = (ask(client), transaction.commit_async())",
        ),
        (f"{LOOKS}::test_a_look_sees_what_another_client_was_told",),
    ),
    Mutant(
        "a look at ZooKeeper begins when the check has been answered",
        "ZooKeeperSession._look",
        Replace(
            "checked, asked = (transaction.commit_async(), ask(client))\n"
            "_raise_refusal(doing, _result(checked, limit), 1)",
            "checked = transaction.commit_async()\n"
            "_raise_refusal(doing, _result(checked, limit), 1)\n"
            "asked = ask(client)",
        ),
        (f"{LOOKS}::test_a_look_takes_two_requests_that_are_sent_together",),
    ),
    Mutant(
        "a look at ZooKeeper is preceded by a sync",
        "ZooKeeperSession._look",
        Replace(
            "exists(marker)(transaction)\n"
            "checked, asked = (transaction.commit_async(), ask(client))\n"
            "_raise_refusal(doing, _result(checked, limit), 1)",
            "checked, asked = (client.sync_async(marker), ask(client))\n_result(checked, limit)",
        ),
        (
            f"{LOOKS}::test_a_look_sees_what_another_client_was_told",
            f"{STORE}::test_another_cluster_s_store_is_not_touched[get]",
        ),
    ),
    Mutant(
        "what ZooKeeper forbids is an answer like any other",
        "ZooKeeperSession._connected",
        Replace("(NoAuthError, InvalidACLError)", "InvalidACLError"),
        (f"{CONNECTION}::test_what_the_servers_forbid_is_said",),
    ),
    Mutant(
        "a child process uses the connection of its parent to ZooKeeper",
        "ZooKeeperSession._begin_call",
        Replace("self._pid != os.getpid()", "False"),
        (f"{CONNECTION}::test_a_child_process_connects_anew",),
    ),
    Mutant(
        "a child process stops the connection of its parent to ZooKeeper",
        "ZooKeeperSession._forget_parent",
        Replace("self._finalizer.detach", "self._connection.client.stop"),
        (f"{CONNECTION}::test_a_child_process_connects_anew",),
    ),
    Mutant(
        "records in ZooKeeper belong to everybody",
        "ZooKeeperSession._connect",
        DropArgument("default_acl"),
        (f"{CONNECTION}::test_it_signs_in_and_its_records_belong_to_its_user",),
    ),
    Mutant(
        "kazoo logs values and passwords",
        "zookeeper_session",
        Replace("logging.INFO", "5"),
        (f"{CONNECTION}::test_kazoo_repeats_no_request_and_logs_no_value",),
    ),
    # --- which store it is -----------------------------------------------------------------------
    Mutant(
        "a change in ZooKeeper does not check which store it is in",
        "ZooKeeperRecords._commit",
        Replace("self._marker", "self._root"),
        (
            f"{STORE}::test_another_cluster_s_store_is_not_touched[replace]",
            f"{STORE}::test_a_store_that_is_exchanged_in_front_of_the_change_is_not_touched",
        ),
    ),
    Mutant(
        "every store in ZooKeeper is the one that was opened",
        "ZooKeeperRecords.__init__",
        Replace(
            "f'{root}/{_MARKER}' + (f'/{bound_to}' if bound_to else '')", "f'{root}/{_MARKER}'"
        ),
        (f"{STORE}::test_another_cluster_s_store_is_not_touched",),
    ),
    Mutant(
        "the store in ZooKeeper is looked up before each call",
        "ZooKeeperMetadataStore._records",
        Replace("self._bound_to is None", "True"),
        (
            f"{STORE}::test_another_cluster_s_store_is_not_touched",
            f"{STORE}::test_it_is_looked_up_once",
        ),
    ),
    Mutant(
        "a store in ZooKeeper without a name of its own is used",
        "ZooKeeperRecords.look_up",
        Replace(
            "if not found:\n    raise self._other_format()",
            "found = found or ['']\nif not found:\n    raise self._other_format()",
        ),
        (f"{STORE}::test_a_store_without_a_name_of_its_own_is_refused",),
    ),
    Mutant(
        "all stores in ZooKeeper have one name",
        "ZooKeeperRecords.format",
        Replace("f'{self._marker}/{environment.token()}'", "f'{self._marker}/name'"),
        (f"{STORE}::test_another_cluster_s_store_is_not_touched",),
    ),
    Mutant(
        "a store in ZooKeeper gets its name behind its records",
        "ZooKeeperRecords.format",
        Replace(
            "self._session.commit(doing, [*marker, *folders])",
            "self._session.commit(doing, [*marker[:1], *folders])\n"
            "self._session.commit(doing, marker[1:])",
        ),
        (f"{FORMAT}::test_it_is_made_at_once",),
    ),
    Mutant(
        "a store with records in ZooKeeper is made anew",
        "ZooKeeperRecords.format",
        Replace("_MARKER in children and (not self._has_records(doing))", "_MARKER in children"),
        (f"{FORMAT}::test_what_has_records_or_something_else_is_refused",),
    ),
    Mutant(
        "a store in ZooKeeper is made in what is something else's",
        "ZooKeeperRecords.format",
        Replace("value or children", "_MARKER in children"),
        (f"{FORMAT}::test_what_has_records_or_something_else_is_refused",),
    ),
    # --- records ---------------------------------------------------------------------------------
    Mutant(
        "a record in ZooKeeper is replaced at any version",
        "ZooKeeperRecords.put",
        Replace(
            "replace(self._path('records', key), value, version)",
            "replace(self._path('records', key), value, -1)",
        ),
        (
            f"{RECORDS}::test_a_version_that_is_not_there_is_refused",
            f"{PAIRS}[replace-replace]",
        ),
    ),
    Mutant(
        "a version that no znode can have breaks the request to ZooKeeper",
        "ZooKeeperRecords.put",
        Replace("min(expected - 1, _ZNODE_VERSION_MAX)", "(expected - 1) % _ZNODE_VERSION_MAX % 2"),
        (f"{RECORDS}::test_a_version_that_is_not_there_is_refused",),
    ),
    Mutant(
        "a record that was deleted in ZooKeeper is made again",
        "ZooKeeperRecords._create",
        Replace(
            "[create(tombstone), delete(tombstone), create(record, value)]",
            "[create(record, value)]",
        ),
        (
            f"{RECORDS}::test_a_deleted_record_never_comes_back",
            f"{PAIRS}[delete the new one-create]",
        ),
    ),
    Mutant(
        "a tombstone in ZooKeeper is looked for in front of the change",
        "ZooKeeperRecords._create",
        Replace(
            "self._commit(doing, [create(tombstone), delete(tombstone), create(record, value)])",
            "self._commit(doing, [create(tombstone), delete(tombstone)])\n"
            "self._commit(doing, [create(record, value)])",
        ),
        (
            f"{RECORDS}::test_number_of_requests",
            f"{PAIRS}[delete the new one-create]",
        ),
    ),
    Mutant(
        "a record is deleted in ZooKeeper without a tombstone",
        "ZooKeeperRecords.delete",
        Replace(
            "[create(tombstone), delete(record)]",
            "[create(tombstone), delete(record), delete(tombstone)]",
        ),
        (f"{RECORDS}::test_a_deleted_record_never_comes_back",),
    ),
    Mutant(
        "a record goes from ZooKeeper in front of its tombstone",
        "ZooKeeperRecords.delete",
        Replace(
            "return self._commit(doing, absent if attempt % 2 else present)",
            "operations = absent if attempt % 2 else present\n"
            "self._commit(doing, operations[:1])\n"
            "return self._commit(doing, operations[1:])",
        ),
        (f"{RECORDS}::test_number_of_requests",),
    ),
    Mutant(
        "a delete in ZooKeeper that was done before fails",
        "ZooKeeperRecords.delete",
        Drop("if refused.operation == 0 and refused.exists:\n    ..."),
        (f"{RECORDS}::test_a_lost_answer_of_a_delete_is_settled_by_the_next",),
    ),
    Mutant(
        "a delete in ZooKeeper of what was never there leaves no tombstone",
        "ZooKeeperRecords.delete",
        Replace("absent if attempt % 2 else present", "present"),
        (f"{RECORDS}::test_a_tombstone_is_made_for_what_was_never_there",),
    ),
    Mutant(
        "a record that is there in ZooKeeper is taken for a missing folder",
        "ZooKeeperRecords._create",
        Replace("not refused.absent", "False"),
        (f"{RECORDS}::test_a_record_is_never_made_twice",),
    ),
    Mutant(
        "folders in ZooKeeper that are half made stay so",
        "ZooKeeperRecords._make_folders",
        Replace("for kind in _KINDS:\n    ...", "for kind in _KINDS[:1]:\n    ..."),
        (f"{FORMAT}::test_the_first_record_makes_the_folders_of_its_kind",),
    ),
    Mutant(
        "versions of ZooKeeper are given out as they are",
        "ZooKeeperRecords.get",
        Replace("found.version + 1", "found.version"),
        (f"{RECORDS}::test_versions_are_one_more_than_the_znode_s",),
    ),
)
