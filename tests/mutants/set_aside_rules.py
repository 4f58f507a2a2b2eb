"""Mutants of what sets an unreadable metadata record aside."""

from .change import Drop, Replace
from .mutant import Mutant

ASIDE = "tests/unit/cli/test_set_aside.py"
DAMAGED = "tests/unit/cli/test_damaged_records.py"
LISTS = f"{DAMAGED}::test_lists_in_python_and_views_in_spark_hide_no_other"
EACH = f"{ASIDE}::test_a_record_is_named_and_set_aside_and_its_bytes_stay"
STRAYS = f"{ASIDE}::test_ledgers_of_a_log_that_was_set_aside_are_never_garbage"
GO_ON = f"{ASIDE}::test_readers_and_writers_go_on_without_a_bookie_whose_record_is_unreadable"

LOST_GO_ON = f"{ASIDE}::test_clients_go_on_without_a_bookie_that_may_be_lost"
ONE_STOPS_NO_OTHER = f"{ASIDE}::test_one_unreadable_bookie_stops_no_verb_about_another_bookie"
CLUSTER_ANEW = f"{ASIDE}::test_the_record_of_the_cluster_is_made_anew_from_a_bookie"
UNREADABLE = "tests/integration/upkeep/test_unreadable_bookies.py"
BETWEEN = "tests/integration/upkeep/test_repairs_between.py"

MUTANTS = (
    Mutant(
        "the bytes of a record that is set aside are not kept",
        "damaged_records._exchanged",
        Drop("store.put(kept, stored.value, None)"),
        (f"{EACH}[logs/one]", f"{ASIDE}::test_nothing_changes_where_the_bytes_cannot_be_kept"),
    ),
    Mutant(
        "what another client has stored meanwhile is set aside",
        "damaged_records._exchanged",
        Replace("stored.version", "stored.version + 1"),
        (f"{ASIDE}::test_a_record_that_was_changed_meanwhile_stays",),
    ),
    Mutant(
        "a record that can be read is set aside",
        "damaged_records._moved_aside",
        Replace("not reason", "False"),
        (f"{ASIDE}::test_what_can_be_read_is_not_set_aside",),
    ),
    Mutant(
        "a store that stumbles makes a record unreadable",
        "damaged_records._moved_aside",
        Replace("_malformation(cluster.cluster_id, key, stored.value)", "_reason(cluster, key)"),
        (f"{ASIDE}::test_a_store_that_stumbles_makes_no_record_unreadable",),
    ),
    Mutant(
        "what was set aside is set aside",
        "damaged_records._is_key",
        Replace(
            "_kind(key) in {*_RESTS, *_NOTES}",
            "True",
        ),
        (f"{ASIDE}::test_the_bytes_of_a_record_that_was_set_aside_stay",),
    ),
    Mutant(
        "a note is set aside",
        "damaged_records._moved_aside",
        Replace("not found.can_be_set_aside", "False"),
        (f"{ASIDE}::test_notes_are_written_over_and_not_set_aside",),
    ),
    Mutant(
        "the record of a ledger stays unreadable",
        "damaged_records._moved_aside",
        Drop("cluster.store.delete"),
        (f"{EACH}[ledgers/0000000000000001]",),
    ),
    Mutant(
        "ledgers of a log that was set aside are garbage",
        "Metadata._judged",
        Replace("ledger_id < log.committed.strays_below", "False"),
        (STRAYS,),
    ),
    Mutant(
        "a log that is deleted again forgets that its record was set aside",
        "LogRecord.vacated",
        Replace(
            "Committed(forgotten_queries(known), {}, orphaned, before.strays_below)",
            "Committed(forgotten_queries(known), {}, orphaned)",
        ),
        (STRAYS,),
    ),
    Mutant(
        "ids of ledgers are given again after the counter was set aside",
        "restored_counter",
        Replace("max(ids, default=0) + UNSEEN_IDS", "max(ids, default=0)"),
        (f"{ASIDE}::test_no_number_of_a_ledger_is_given_again_after_the_counter_was_set_aside",),
    ),
    Mutant(
        "any bookie's cookie gives a record",
        "restored_bookie",
        Replace(
            "(cookie.cluster_id, cookie.bookie_id) != (cluster.cluster_id, bookie_id)", "False"
        ),
        (f"{ASIDE}::test_the_record_of_a_bookie_is_made_anew_from_its_cookie",),
    ),
    Mutant(
        "where a bookie is has another spelling in its restored record",
        "restored_bookie",
        Drop("url = canonical(url)"),
        (f"{ASIDE}::test_the_record_of_a_bookie_is_made_anew_from_its_cookie",),
    ),
    Mutant(
        "a record is set aside without a question",
        "cli.records._set_aside",
        Replace("found is not None", "False"),
        (f"{EACH}[logs/one]",),
    ),
    Mutant(
        "a dry run sets a record aside",
        "cli.records.set_aside",
        Replace("dry_run", "False"),
        (f"{ASIDE}::test_the_way_out_works_as_it_is_printed[counters/ledger]",),
    ),
    Mutant(
        "a page that the log names is set aside",
        "require_unnamed",
        Replace("not _is_unnamed(seen.value, name)", "False"),
        (f"{ASIDE}::test_an_unreadable_page_below_another_is_named_with_its_offsets",),
    ),
    Mutant(
        "a page is set aside though a page above it may not be read",
        "damaged_records._found",
        Replace("is_sure and is_below_sure", "is_sure"),
        (f"{ASIDE}::test_a_page_stays_while_it_is_not_known_whether_the_log_names_it",),
    ),
    Mutant(
        "a client names a page after the page was set aside",
        "require_unnamed",
        Drop("cluster.logs.replace"),
        (f"{ASIDE}::test_a_client_that_made_a_page_before_loses_its_change",),
    ),
    Mutant(
        "a reader fails where the record of a bookie is unreadable",
        "OpenBookies.ask",
        Replace(
            "self._cluster.addresses_of(asked, leave_out)", "self._cluster.addresses_of(asked)"
        ),
        (
            "tests/unit/cluster/test_addresses.py::test_a_bookie_whose_record_is_unreadable_is_silent",
        ),
    ),
    Mutant(
        "nothing is placed anywhere while the record of a bookie is unreadable",
        "Cluster._drawn",
        Replace(
            "self.registrations.of_all(answers, leave_out)", "self.registrations.of_all(answers)"
        ),
        (GO_ON,),
    ),
    Mutant(
        "nothing is placed anywhere while the record of a lost bookie is unreadable",
        "Cluster.refresh_candidates",
        Replace("leave_out_into(unknown)", "None"),
        (LOST_GO_ON,),
    ),
    Mutant(
        "entries are placed on a bookie that may be lost",
        "Cluster.refresh_candidates",
        Replace("record.bookie_id not in unknown", "True"),
        (LOST_GO_ON,),
    ),
    Mutant(
        "a recovery stops where the record of a lost bookie is unreadable",
        "Recoverer._answer",
        Replace(
            "self._cluster.lost_members(leave_out, self._names)", "self._cluster.lost_members()"
        ),
        (LOST_GO_ON,),
    ),
    Mutant(
        "a recovery writes to a bookie that may be lost",
        "stand_ins",
        Replace("r.bookie_id not in unknown", "True"),
        (f"{UNREADABLE}::test_a_recovery_writes_to_no_bookie_that_may_be_lost",),
    ),
    Mutant(
        "a bookie is removed that an unreadable record may name",
        "removing._in_the_way",
        Replace("(Left('metadata', f'it may name {bookie_id}: {error.args[0]}', hint),)", "()"),
        (f"{ASIDE}::test_a_bookie_that_an_unreadable_record_may_name_stays",),
    ),
    Mutant(
        "a repair takes a bookie whose record cannot be read for one that is gone",
        "why_left",
        Replace(
            "{member.bookie_id for member in Locations(ledger).members}.intersection(unreadable)",
            "set()",
        ),
        (
            f"{BETWEEN}::test_an_unreadable_record_of_a_bookie_stops_repairs_of_its_own_ledgers_only",
        ),
    ),
    Mutant(
        "the record of a deleted ledger does not wait for an unreadable bookie",
        "owing",
        Replace("m in registered or m.bookie_id in unknown", "m in registered"),
        (f"{UNREADABLE}::test_deletions_wait_for_an_unreadable_bookie_and_others_go_on",),
    ),
    Mutant(
        "a rebalance moves places of ledgers that name an unreadable bookie",
        "admin.balancing.plan_of",
        Replace("not why_left(x, unreadable)", "True"),
        (
            f"{UNREADABLE}"
            "::test_a_rebalance_moves_nothing_of_ledgers_that_name_an_unreadable_bookie",
        ),
    ),
    Mutant(
        "a decommission moves places of ledgers that name an unreadable bookie",
        "admin.draining.plan_of",
        Replace("left is None and reason", "False"),
        (f"{UNREADABLE}::test_a_decommission_moves_what_does_not_concern_an_unreadable_bookie",),
    ),
    Mutant(
        "an unreadable bookie is surely not going",
        "Cluster.is_going",
        Replace("seen is None or seen.value.is_going", "seen is not None and seen.value.is_going"),
        (f"{UNREADABLE}::test_only_what_was_unreadable_at_the_start_is_left_out",),
    ),
    Mutant(
        "what becomes unreadable meanwhile is left out too",
        "leave_out_bookies",
        Replace("key not in unreadable", "False"),
        (f"{UNREADABLE}::test_only_what_was_unreadable_at_the_start_is_left_out",),
    ),
    Mutant(
        "an audit takes a bookie whose record cannot be read for one that is gone",
        "Audit._absent",
        Replace(
            'f"{layout.BOOKIES_PREFIX}/{member.bookie_id}" in self._cluster.unreadable', "False"
        ),
        (
            f"{BETWEEN}::test_an_unreadable_record_of_a_bookie_stops_repairs_of_its_own_ledgers_only",
        ),
    ),
    Mutant(
        "a recovery takes a bookie whose record cannot be read for one that is gone",
        "Recoverer._addresses",
        Replace("leave_out_unless(self._names)", "leave_out_unless(())"),
        (
            f"{BETWEEN}"
            "::test_an_unreadable_record_of_a_bookie_stops_recoveries_of_its_own_ledgers_only",
        ),
    ),
    Mutant(
        "a cluster gets the id of a bookie that is not its own",
        "restored_cluster",
        Replace("known is None or known.incarnation != cookie.incarnation", "False"),
        (CLUSTER_ANEW,),
    ),
    Mutant(
        "a cluster's readable record is made anew",
        "set_cluster_aside",
        Replace("not _malformation('', layout.CLUSTER_KEY, stored.value)", "False"),
        (CLUSTER_ANEW,),
    ),
    Mutant(
        "a cluster that is made anew forgets its group",
        "restored_cluster",
        Replace("cookie.group", "1"),
        (CLUSTER_ANEW,),
    ),
    Mutant(
        "a named record that cannot be read is said to be missing",
        "Survey._unknown_or",
        Replace("reason is not None", "False"),
        (f"{DAMAGED}::test_what_is_named_and_cannot_be_read_is_not_said_to_be_missing[recover 1]",),
    ),
    Mutant(
        "a log with an unreadable record is not listed",
        "bookkeeper._may_be",
        Replace("True", "False"),
        (f"{LISTS}[ledgers/0000000000000001]",),
    ),
    Mutant(
        "an unreadable record hides all rows of a view",
        "BookKeeperReader.partitions",
        Replace("Survey(self._options.metadata_uri)", "Cluster(self._options.metadata_uri)"),
        (f"{LISTS}[ledgers/0000000000000001]",),
    ),
    Mutant(
        "the id of a bookie whose record cannot be read is given again",
        "Cluster.site",
        Replace("frozenset(unreadable)", "frozenset()"),
        (f"{DAMAGED}::test_a_bookie_is_added_although_the_record_of_another_cannot_be_read",),
    ),
    Mutant(
        "a truncation that leaves a ledger ends with 0",
        "logs.truncate",
        Replace("row['left']", "False"),
        (f"{DAMAGED}::test_a_truncation_that_leaves_a_ledger_ends_with_1_as_a_retention_does",),
    ),
    Mutant(
        "a bookie is removed by force only while all others are readable",
        "removing._require_lost",
        Replace("cluster.probe(step_over=leave_out)", "cluster.probe()"),
        (f"{ONE_STOPS_NO_OTHER}[bookies]",),
    ),
    Mutant(
        "a bookie is moved only while all others are readable",
        "moving._moved",
        Replace("cluster.bookies(leave_out)", "cluster.bookies()"),
        (f"{ONE_STOPS_NO_OTHER}[bookies]",),
    ),
    Mutant(
        "a bookie is lost if any incarnation of it is",
        "Cluster.is_lost",
        Replace("member.incarnation in seen.value.incarnations", "True"),
        ("tests/unit/cli/test_lost.py::test_an_earlier_incarnation_is_lost_alone",),
    ),
)
