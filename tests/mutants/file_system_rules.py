"""Mutants of which file systems are admitted, and of how one is tried."""

from .change import Replace
from .mutant import Mutant

LITMUS = "tests/unit/storage/test_litmus.py"
KINDS = "tests/unit/storage/test_file_systems.py"

MUTANTS = (
    Mutant(
        "a file system that is not known is taken untried",
        "why_unsafe",
        Replace("failure", "str"),
        (f"{KINDS}::test_all_others_are_tried",),
    ),
    Mutant(
        "what caches hide from other hosts is looked for in a trial",
        "why_unsafe",
        Replace("mount is not None and mount.hides_files", "mount is None and of_type is path"),
        (f"{KINDS}::test_caches_of_other_hosts_do_not_show_in_a_trial",),
    ),
    Mutant(
        "NFS is taken however it was mounted",
        "Mount.hides_files",
        Replace("_LOOKS_UP_ANEW not in self.options", "False"),
        (f"{KINDS}::test_caches_of_other_hosts_do_not_show_in_a_trial",),
    ),
    Mutant(
        "a loose cache is tried",
        "Mount.hides_files",
        Replace("caches <= _CACHING_NOTHING", "caches"),
        (f"{KINDS}::test_a_loose_cache_cannot_be_tried",),
    ),
    Mutant(
        "the metadata store may be on any file system",
        "init_cluster",
        Replace("admission.storage_risk(store_uri, store_uri, is_accepted=accepts_risk)", "''"),
        (f"{KINDS}::test_metadata_and_bookies_are_admitted_by_the_same_rule",),
    ),
    Mutant(
        "a bookie may be on any file system",
        "admission.admit",
        Replace("storage_risk(url, site.metadata_uri, is_accepted=accepts_risk)", "''"),
        (f"{KINDS}::test_metadata_and_bookies_are_admitted_by_the_same_rule",),
    ),
    Mutant(
        "a bookie in memory joins a cluster on disk",
        "admission.storage_risk",
        Replace("metadata_uri.startswith(_MEMORY)", "metadata_uri"),
        (f"{KINDS}::test_memory_is_no_place_for_what_others_are_led_to",),
    ),
    Mutant(
        "doctor tries no file system",
        "_storage",
        Replace("storage_risk(url, store, is_accepted=True)", "''"),
        (f"{KINDS}::test_doctor_tries_what_is_there",),
    ),
    Mutant(
        "a trial without look-ups",
        "_try",
        Replace("_look_up(writer, reader, f'look-{number}')", "_ = f'look-{number}'"),
        (f"{LITMUS}::test_each_lie_is_found_out",),
    ),
    Mutant(
        "a trial without appends",
        "_try",
        Replace("_append(writer, reader, name)", "_ = _append"),
        (f"{LITMUS}::test_each_lie_is_found_out",),
    ),
    Mutant(
        "a trial waits for ever",
        "_Process.answer",
        Replace("self._selector.select(ANSWER_SECONDS)", "self._selector.select(None)"),
        (f"{LITMUS}::test_each_lie_is_found_out",),
    ),
    Mutant(
        "a trial leaves its folder behind",
        "failure",
        Replace("one.ask('clear')", "one.ask('look', '')"),
        (f"{LITMUS}::test_a_local_disk_passes_and_keeps_nothing",),
    ),
)
