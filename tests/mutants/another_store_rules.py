"""Mutants of how a client notices that another store, or none, is where it opened one."""

from .mutant import Mutant

ANOTHER = "tests/unit/metadata/test_another_store.py::test_it_is_refused"
CLUSTER = "tests/integration/log/test_another_cluster.py"
BEGAN = f"{CLUSTER}::test_a_write_ends_in_the_cluster_in_which_it_began"
UPKEEP = f"{CLUSTER}::test_work_of_upkeep_changes_nothing_in_another_cluster"
ENTRIES = f"{CLUSTER}::test_entries_of_another_cluster_s_journals_are_not_read"
AWAY = "tests/unit/spark/test_metadata_store_away.py"

MUTANTS = (
    Mutant(
        "another store of files is taken for the one that was opened",
        "VersionedStore._require_marker",
        "        if marker != self._bound_to:\n",
        "        if not marker:\n",
        (f"{ANOTHER}[file-create]", f"{ANOTHER}[file-get]"),
    ),
    Mutant(
        "all stores of files have one marker",
        "VersionedStore._mark",
        '        marker = _MARKER_TEXT + environment.token().encode() + b"\\n"\n',
        "        marker = _MARKER_TEXT\n",
        (f"{ANOTHER}[file-create]",),
    ),
    Mutant(
        "another store in memory is taken for the one that was opened",
        "MemoryMetadataStore._records",
        "        if found is not self._bound_to:\n",
        "        if found is None:\n",
        (f"{ANOTHER}[memory-create]",),
    ),
    Mutant(
        "work that was begun in one cluster ends in another",
        "Cluster._read_identity",
        'if wanted not in ("", found.cluster_id):',
        "if False:",
        (f"{BEGAN}[batch]", f"{BEGAN}[append]", f"{BEGAN}[stream]", UPKEEP, ENTRIES),
    ),
    Mutant(
        "a commit does not say in which cluster its ledger is",
        "batch.commit.commit",
        ", cluster_id=target.cluster_id) as cluster:",
        ") as cluster:",
        (f"{BEGAN}[batch]",),
    ),
    Mutant(
        "an abort does not say in which cluster its ledger is",
        "streams.appending.abort",
        ", cluster_id=staging.cluster_id) as cluster:",
        ") as cluster:",
        (f"{BEGAN}[append]",),
    ),
    Mutant(
        "a tail is opened in any cluster",
        "TailWriter.__init__",
        "Cluster(request.metadata_uri, cluster_id=batch.staging.cluster_id)",
        "Cluster(request.metadata_uri)",
        (f"{BEGAN}[append]", f"{BEGAN}[stream]"),
    ),
    Mutant(
        "a tail that is held in one cluster serves in another",
        "TailWriterCache._committed",
        'f"{request.metadata_uri} {batch.staging.cluster_id}"',
        'f"{request.metadata_uri}"',
        (f"{CLUSTER}::test_a_process_that_holds_a_tail_of_the_first_cluster_writes_in_the_second",),
    ),
    Mutant(
        "entries are read in any cluster",
        "SliceReader.read",
        ", cluster_id=item.cluster_id) as cluster:",
        ") as cluster:",
        (ENTRIES,),
    ),
    Mutant(
        "a recovery is done in any cluster",
        "RecoverLedger.run",
        ", cluster_id=self.cluster_id) as cluster:",
        ") as cluster:",
        (UPKEEP,),
    ),
    Mutant(
        "a compaction is done in any cluster",
        "CompactRun.carry_out",
        ", cluster_id=self.cluster_id) as cluster:",
        ") as cluster:",
        (UPKEEP,),
    ),
    # --- or no store at all ----------------------------------------------------------------------
    Mutant(
        "rows are left out while the metadata store is away",
        "SliceReader._others",
        "            if self.fails_on_loss:\n                return ()\n            raise\n",
        "            return ()\n",
        (f"{AWAY}::test_no_row_is_left_out[tasks-entry logs-one look]",),
    ),
    Mutant(
        "rows are left out where another cluster has come",
        "_Planner.slices",
        "self._cluster.uri, self._cluster.cluster_id)\n",
        "self._cluster.uri)\n",
        (f"{AWAY}::test_a_place_without_a_store_or_with_another_is_an_error[tasks-entry logs]",),
    ),
    Mutant(
        "rows in entry logs that are in another ledger by now are left out",
        "SliceReader._others",
        "                    self._let_go(cluster, begin, end, item.ledger_id, error)\n"
        "                    return None\n",
        "                    return ()\n",
        (
            f"{AWAY}::test_rows_that_were_compacted_meanwhile_are_not_left_out",
            f"{AWAY}::test_a_ledger_that_the_log_should_have_is_never_left_out",
        ),
    ),
)
