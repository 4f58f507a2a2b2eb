"""Mutants of how a client notices that another store, or none, is where it opened one."""

from .change import Drop, Replace
from .mutant import Mutant

ANOTHER = "tests/unit/metadata/test_another_store.py::test_it_is_refused"
CLUSTER = "tests/integration/log/test_another_cluster.py"
BEGAN = f"{CLUSTER}::test_a_write_ends_in_the_cluster_in_which_it_began"
UPKEEP = f"{CLUSTER}::test_work_of_upkeep_changes_nothing_in_another_cluster"
ENTRIES = f"{CLUSTER}::test_entries_of_another_cluster_s_journals_are_not_read"
NO_FURTHER = f"{CLUSTER}::test_a_run_whose_batches_went_into_one_cluster_does_not_go_on_in_another"
SOURCE = "tests/unit/spark/test_clusters_of_checkpoints.py"
CHECKPOINT = f"{SOURCE}::test_a_checkpoint_of_another_cluster_is_refused"
SAID = f"{SOURCE}::test_a_position_says_its_cluster_and_one_that_does_not_is_read"
AWAY = "tests/unit/spark/test_metadata_store_away.py"
OTHERS = "tests/unit/cli/test_records_of_other_clusters.py"
RECORDS = "tests/unit/cluster/test_records.py"
NOT_OURS = f"{RECORDS}::test_a_record_of_another_cluster_is_unreadable_and_never_absent"

MUTANTS = (
    Mutant(
        "a record of another cluster is read",
        "Records._own",
        Drop("strict_json.require_own"),
        (
            NOT_OURS,
            f"{OTHERS}::test_a_page_that_was_seen_in_one_cluster_is_none_of_another_at_its_place",
        ),
    ),
    Mutant(
        "a record of another cluster is none to be set aside",
        "damaged_records._malformation",
        Drop("strict_json.require_own"),
        (f"{OTHERS}::test_records_of_another_cluster_stop_no_verb_about_others_and_are_set_aside",),
    ),
    Mutant(
        "a record of another cluster says whose bookie makes a cluster anew",
        "restored_records._bookie_of",
        Drop("strict_json.require_own"),
        (f"{OTHERS}::test_a_cluster_is_made_anew_by_none_but_a_bookie_that_its_own_record_names",),
    ),
    Mutant(
        "a page that was seen in one cluster is read in another",
        "LogPages.__init__",
        Replace("(store.uri, cluster_id, log_name)", "(store.uri, '', log_name)"),
        (f"{OTHERS}::test_a_page_that_was_seen_in_one_cluster_is_none_of_another_at_its_place",),
    ),
    Mutant(
        "another store of files is taken for the one that was opened",
        "VersionedStore._require_marker",
        Replace("marker != self._bound_to", "not marker"),
        (f"{ANOTHER}[file-create]", f"{ANOTHER}[file-get]"),
    ),
    Mutant(
        "all stores of files have one marker",
        "VersionedStore._mark",
        Replace("MARKER_TEXT + environment.token().encode() + b'\\n'", "MARKER_TEXT"),
        (f"{ANOTHER}[file-create]",),
    ),
    Mutant(
        "another store in memory is taken for the one that was opened",
        "MemoryMetadataStore._records",
        Replace("found is not self._bound_to", "found is None"),
        (f"{ANOTHER}[memory-create]",),
    ),
    Mutant(
        "work that was begun in one cluster ends in another",
        "Cluster._read_identity",
        Replace("wanted not in ('', found.cluster_id)", "False"),
        (f"{BEGAN}[batch]", f"{BEGAN}[append]", f"{BEGAN}[stream]", UPKEEP, ENTRIES),
    ),
    Mutant(
        "a commit does not say in which cluster its ledger is",
        "batch.commit.commit",
        Replace(
            "Cluster(target.request.metadata_uri, cluster_id=target.cluster_id)",
            "Cluster(target.request.metadata_uri)",
        ),
        (f"{BEGAN}[batch]",),
    ),
    Mutant(
        "an abort does not say in which cluster its ledger is",
        "streams.appending.abort",
        Replace(
            "Cluster(target.request.metadata_uri, cluster_id=staging.cluster_id)",
            "Cluster(target.request.metadata_uri)",
        ),
        (f"{BEGAN}[append]",),
    ),
    Mutant(
        "a tail is opened in any cluster",
        "TailWriter.__init__",
        Replace(
            "Cluster(request.metadata_uri, cluster_id=batch.staging.cluster_id)",
            "Cluster(request.metadata_uri)",
        ),
        (f"{BEGAN}[append]", f"{BEGAN}[stream]"),
    ),
    Mutant(
        "entries are read in any cluster",
        "SliceReader._opened",
        Replace(
            "Cluster(item.metadata_uri, cluster_id=item.cluster_id)", "Cluster(item.metadata_uri)"
        ),
        (ENTRIES,),
    ),
    Mutant(
        "a recovery is done in any cluster",
        "RecoverLedger.run",
        Replace(
            "Cluster(self.metadata_uri, cluster_id=self.cluster_id)", "Cluster(self.metadata_uri)"
        ),
        (UPKEEP,),
    ),
    Mutant(
        "a compaction is done in any cluster",
        "CompactRun.carry_out",
        Replace(
            "Cluster(self.metadata_uri, cluster_id=self.cluster_id)", "Cluster(self.metadata_uri)"
        ),
        (UPKEEP,),
    ),
    # --- checkpoints of streaming queries --------------------------------------------------------
    Mutant(
        "an offset of one cluster is read in another",
        "require_cluster",
        Replace("found not in ('', cluster_id)", "False"),
        (f"{CHECKPOINT}[true]", f"{CHECKPOINT}[false]"),
    ),
    Mutant(
        "a checkpoint that does not say its cluster is of another",
        "require_cluster",
        Replace("found not in ('', cluster_id)", "found != cluster_id"),
        (SAID,),
    ),
    Mutant(
        "a checkpoint does not say its cluster",
        "BookKeeperStreamReader._to_json",
        Replace("self._opened().cluster.cluster_id", "''"),
        (SAID,),
    ),
    Mutant(
        "a run of a query goes on in another cluster",
        "require_same_cluster",
        Replace("before not in ('', now)", "False"),
        (f"{NO_FURTHER}[False]", f"{NO_FURTHER}[True]"),
    ),
    Mutant(
        "what a query wrote in one cluster keeps its later runs from another",
        "TailWriterCache._require_same_cluster",
        Replace("earlier if before == run else ''", "earlier"),
        (f"{CLUSTER}::test_a_process_that_holds_a_tail_of_the_first_cluster_writes_in_the_second",),
    ),
    Mutant(
        "the clusters of queries are remembered for ever",
        "TailWriterCache._require_same_cluster",
        Replace("len(self._clusters) > QUERIES_MAX", "False"),
        (f"{CLUSTER}::test_of_many_queries_those_that_wrote_last_are_remembered",),
    ),
    Mutant(
        "the cluster of a run is forgotten with its tail",
        "TailWriterCache.rest",
        Replace(
            "for key in list(self._tails):\n    ...",
            "self._clusters.clear()\nfor key in list(self._tails):\n    self._let_go(key)",
        ),
        (f"{NO_FURTHER}[True]",),
    ),
    # --- or no store at all ----------------------------------------------------------------------
    Mutant(
        "rows are left out while the metadata store is away",
        "SliceReader._others",
        Replace("if self.fails_on_loss:\n    return ()\nraise", "return ()"),
        (f"{AWAY}::test_no_row_is_left_out[tasks-entry logs-one look]",),
    ),
    Mutant(
        "rows are left out where another cluster has come",
        "_Planner.slices",
        Replace(
            "Slice(*wanted, self._cluster.uri, self._cluster.cluster_id)",
            "Slice(*wanted, self._cluster.uri)",
        ),
        (f"{AWAY}::test_a_place_without_a_store_or_with_another_is_an_error[tasks-entry logs]",),
    ),
    Mutant(
        "rows in entry logs that are in another ledger by now are left out",
        "SliceReader._others",
        Replace(
            "self._let_go(cluster, begin, end, item.ledger_id, error)\nreturn None", "return ()"
        ),
        (
            f"{AWAY}::test_rows_that_were_compacted_meanwhile_are_not_left_out",
            f"{AWAY}::test_a_ledger_that_the_log_should_have_is_never_left_out",
        ),
    ),
)
