"""Mutants of which file systems are admitted, and of how one is tried."""

from .mutant import Mutant

LITMUS = "tests/unit/storage/test_litmus.py"
KINDS = "tests/unit/storage/test_file_systems.py"

MUTANTS = (
    Mutant(
        "a file system that is not known is taken untried",
        "why_unsafe",
        "    found = litmus.failure(",
        "    found = str(",
        (f"{KINDS}::test_all_others_are_tried",),
    ),
    Mutant(
        "what caches hide from other hosts is looked for in a trial",
        "why_unsafe",
        "    if mount is not None and mount.hides_files:",
        "    if mount is None and of_type is path:",
        (f"{KINDS}::test_caches_of_other_hosts_do_not_show_in_a_trial",),
    ),
    Mutant(
        "NFS is taken however it was mounted",
        "Mount.hides_files",
        "            return _LOOKS_UP_ANEW not in self.options",
        "            return False",
        (f"{KINDS}::test_caches_of_other_hosts_do_not_show_in_a_trial",),
    ),
    Mutant(
        "a loose cache is tried",
        "Mount.hides_files",
        "            return not caches <= _CACHING_NOTHING",
        "            return not caches",
        (f"{KINDS}::test_a_loose_cache_cannot_be_tried",),
    ),
    Mutant(
        "the metadata store may be on any file system",
        "init_cluster",
        "        risk = admission.storage_risk(store_uri, store_uri, is_accepted=accepts_risk)",
        '        risk = ""',
        (f"{KINDS}::test_metadata_and_bookies_are_admitted_by_the_same_rule",),
    ),
    Mutant(
        "a bookie may be on any file system",
        "admission.admit",
        "    risk = storage_risk(url, site.metadata_uri, is_accepted=accepts_risk)",
        '    risk = ""',
        (f"{KINDS}::test_metadata_and_bookies_are_admitted_by_the_same_rule",),
    ),
    Mutant(
        "a risk that was accepted is forgotten",
        "_risk",
        '    return {"storage_risk": record.storage_risk} if record.storage_risk else {}',
        "    return {}",
        (f"{KINDS}::test_what_was_accepted_is_shown_for_good",),
    ),
    Mutant(
        "status is silent about a risk that was accepted",
        "health.examine",
        "        *bookie_health.risk_findings(cluster, statuses),\n",
        "",
        (f"{KINDS}::test_what_was_accepted_is_shown_for_good",),
    ),
    Mutant(
        "a bookie in memory joins a cluster on disk",
        "storage_risk",
        "    elif url.startswith(_MEMORY) and not metadata_uri.startswith(_MEMORY):",
        "    elif url.startswith(_MEMORY) and not metadata_uri:",
        (f"{KINDS}::test_memory_is_no_place_for_what_others_are_led_to",),
    ),
    Mutant(
        "doctor tries no file system",
        "_storage",
        "name: storage_risk(url, store, is_accepted=True)",
        'name: ""',
        (f"{KINDS}::test_doctor_tries_what_is_there",),
    ),
    Mutant(
        "a trial without a race",
        "_try",
        "    _race(one, other)\n    for",
        "    for",
        (f"{LITMUS}::test_each_lie_is_found_out",),
    ),
    Mutant(
        "a trial without look-ups",
        "_try",
        '            _look_up(writer, reader, f"look-{number}")',
        '            _ = f"look-{number}"',
        (f"{LITMUS}::test_each_lie_is_found_out",),
    ),
    Mutant(
        "a trial does not look before a file is made",
        "litmus._look_up",
        '    _require(reader.ask("read", name) is None, "there is a file that nobody made")\n'
        '    _require(writer.ask("create", name, name)',
        '    _require(writer.ask("create", name, name)',
        (f"{LITMUS}::test_each_lie_is_found_out",),
    ),
    Mutant(
        "a trial without a rename",
        "_try",
        "        _rename(writer, reader)\n",
        "",
        (f"{LITMUS}::test_each_lie_is_found_out",),
    ),
    Mutant(
        "a trial without appends",
        "_try",
        "        _append(writer, reader, name)\n",
        "        _ = _append\n",
        (f"{LITMUS}::test_each_lie_is_found_out",),
    ),
    Mutant(
        "a trial waits for ever",
        "_Process.answer",
        "        if not self._selector.select(ANSWER_SECONDS):",
        "        if not self._selector.select(None):",
        (f"{LITMUS}::test_each_lie_is_found_out",),
    ),
    Mutant(
        "a trial leaves its folder behind",
        "failure",
        '                one.ask("clear")',
        '                one.ask("look", "")',
        (f"{LITMUS}::test_a_local_disk_passes_and_keeps_nothing",),
    ),
)
