"""Mutants of the scrub: what is checked, what is damage, and what an audit takes from it."""

from .mutant import Mutant

FOLDER = "admin/scrubbing"
SCRUB = "tests/integration/upkeep/test_scrub.py"
MARKS = "tests/integration/upkeep/test_scrub_marks.py"
PARTS = "tests/unit/admin/test_scrub_parts.py"
UNTIL_GOOD = f"{MARKS}::test_what_is_damaged_is_missing_for_an_audit_until_it_is_good_again[memory]"
BESIDE = f"{MARKS}::test_copies_that_were_made_anew_beside_the_damage_count"
SEVERAL = f"{SCRUB}::test_damage_in_several_places_is_named_in_each[memory]"
NO_DAMAGE = f"{SCRUB}::test_what_is_missing_or_torn_is_no_damage[memory]"
BLOCK = f"{MARKS}::test_a_damaged_entry_log_is_missing_for_an_audit[memory]"
SAMPLE = f"{MARKS}::test_what_a_sample_has_left_out_stays_marked[memory]"
GONE = f"{MARKS}::test_marks_of_what_is_gone_are_taken_back[memory]"
CHANGED = f"{MARKS}::test_what_is_found_is_believed_only_of_records_that_did_not_change"
AWAY = f"{MARKS}::test_a_bookie_that_is_away_is_named_and_its_marks_stay[memory]"
OPEN = f"{SCRUB}::test_of_an_open_ledger_damage_in_front_of_its_end_is_found[memory]"
SECRETS = (
    f"{SCRUB}::test_without_its_password_what_needs_none_is_checked_and_the_report_says_so[memory-]"
)

MUTANTS = (
    Mutant(
        "what was found is lost when Spark ends",
        f"{FOLDER}/run.py",
        '            if not self.findings.counts["files"]:\n                raise\n',
        "            raise\n",
        (f"{MARKS}::test_what_was_found_is_told_though_the_rest_cannot_be_read",),
    ),
    Mutant(
        "a record that cannot be read has changed",
        f"{FOLDER}/run.py",
        "            if now is None and self._is_unreadable(ledger.ledger_id):\n",
        "            if False:\n",
        (
            f"{MARKS}::test_damage_of_a_ledger_whose_record_cannot_be_looked_up_again_is_told_and"
            "_not_marked",
        ),
    ),
    Mutant(
        "marks are taken back of a ledger whose record cannot be read",
        f"{FOLDER}/run.py",
        "            if ledger is None and self._is_unreadable(ledger_id):\n",
        "            if False:\n",
        (f"{MARKS}::test_marks_of_a_ledger_whose_record_cannot_be_read_stay",),
    ),
    Mutant(
        "a scrub goes by the heads of records",
        f"{FOLDER}/journals.py",
        "            return reader.checked(begin, end)\n",
        "            return reader.head(begin)\n",
        (UNTIL_GOOD,),
    ),
    Mutant(
        "a scrub ends at the first damage that leads no further",
        f"{FOLDER}/journals.py",
        "        if reader.is_blocked:\n            yield from self._behind(reader)\n",
        "",
        (SEVERAL,),
    ),
    Mutant(
        "what is good behind damage does not count",
        f"{FOLDER}/journals.py",
        "                yield good\n            reached = begin\n",
        "                pass\n            reached = begin\n",
        (f"{SCRUB}::test_good_records_behind_damage_are_not_marked",),
    ),
    Mutant(
        "the torn end of a killed writer is damage",
        f"{FOLDER}/journals.py",
        "if reached < blocked.size or blocked.tail(CHUNK_BYTES_MAX) is Tail.CORRUPT:",
        "if True:",
        (NO_DAMAGE,),
    ),
    Mutant(
        "the last record of who still writes is damage",
        f"{FOLDER}/journals.py",
        "        if self.is_closed or end < reader.size:\n",
        "        if True:\n",
        (OPEN,),
    ),
    Mutant(
        "without a password trailers are not checked either",
        f"{FOLDER}/journals.py",
        "if head is not None and reader.is_framed(begin, end) else None",
        "if head is not None else None",
        (SECRETS,),
    ),
    Mutant(
        "that digests were not checked is not said",
        f"{FOLDER}/look.py",
        "            self.is_digested = False\n",
        "",
        (SECRETS,),
    ),
    Mutant(
        "blocks of entry logs are not read",
        f"{FOLDER}/look.py",
        "for block in file.blocks if self.is_digested else ():",
        "for block in ():",
        (BLOCK,),
    ),
    Mutant(
        "damage beside which there is a good copy is left for ever",
        f"{FOLDER}/look.py",
        "is_left=bool(lacks or self.entry_logs or not is_closed)",
        "is_left=True",
        (BESIDE,),
    ),
    Mutant(
        "a mark outlives what made it good",
        "admin/noted_damage.py",
        "    for ledger_id in news.good:\n        marks.pop(ledger_id, None)\n",
        "",
        (UNTIL_GOOD, GONE, f"{PARTS}::test_marks_come_and_go"),
    ),
    Mutant(
        "a sample takes marks back of what it did not read",
        f"{FOLDER}/run.py",
        "if one.unknown} | answer.partial |",
        "if one.unknown} |",
        (SAMPLE,),
    ),
    Mutant(
        "what was found of a record that changed is believed",
        f"{FOLDER}/run.py",
        "                changed.add(ledger.ledger_id)\n",
        "                pass\n",
        (CHANGED,),
    ),
    Mutant(
        "a bookie that could not be read has nothing that is damaged",
        f"{FOLDER}/run.py",
        "                self.findings.silent[read.address.bookie_id] = reason\n",
        "",
        (AWAY,),
    ),
    Mutant(
        "an audit counts marked records",
        "admin/auditing/journals_shown.py",
        "shown.add(one.without(mark.entries) if mark and is_marked else one, ledger)",
        "shown.add(one, ledger)",
        (UNTIL_GOOD,),
    ),
    Mutant(
        "what was copied anew is marked like what is damaged",
        "admin/auditing/journals_shown.py",
        "is_marked = mark is not None and name in mark.journals",
        "is_marked = mark is not None",
        (BESIDE,),
    ),
    Mutant(
        "an audit counts marked entry logs",
        "admin/auditing/files.py",
        "is_marked = mark is not None and name in mark.entry_logs",
        "is_marked = False",
        (BLOCK,),
    ),
    Mutant(
        "marks of what a bookie was before hold for what it is now",
        "admin/noted_damage.py",
        "                if mark.incarnation == member.incarnation:\n",
        "                if mark is not None:\n",
        (f"{PARTS}::test_what_was_initialised_anew_has_no_marks_of_before",),
    ),
    Mutant(
        "a rate is that of each read alone",
        "admin/pace.py",
        "due = self._began + self.byte_count / self._bytes_per_second",
        "due = environment.monotonic() + byte_count / self._bytes_per_second",
        (f"{PARTS}::test_no_more_is_read_than_may_be_and_whoever_waits_shows_signs_of_life",),
    ),
    Mutant(
        "entries of its own are passed over where a record is damaged",
        f"{FOLDER}/look.py",
        "own_part(between, place, self.ledger.quorum) is None",
        "True",
        (f"{SCRUB}::test_one_entry_of_a_striped_ledger_is_marked_alone",),
    ),
    Mutant(
        "marks that cannot be read stop a repair",
        "admin/noted_damage.py",
        "        self._shown.step_over = cluster.upkeep.reports.step_over or _pass_over\n",
        "",
        (f"{PARTS}::test_a_record_that_cannot_be_read_stops_only_who_would_change_it",),
    ),
    Mutant(
        "a repair takes what is marked for good",
        "admin/repairing/repair.py",
        "sources, self._password, mark=mark)",
        "sources, self._password)",
        (f"{MARKS}::test_a_repair_makes_what_is_damaged_again[memory]",),
    ),
    Mutant(
        "damaged journals are not counted as files",
        "admin/scrubbing/look.py",
        "            len(self.journals) + len(self.entry_logs),\n",
        "            len(self.entry_logs),\n",
        (
            "tests/integration/upkeep/test_scrub.py::test_each_damaged_file_is_counted_whatever_it_costs",
        ),
    ),
    Mutant(
        "a scrub that found damage is well",
        "cli/health.py",
        """        Level.WARN if report.left else Level.OK,
        "scrub",
""",
        """        Level.OK,
        "scrub",
""",
        (
            "tests/unit/cli/test_scrub.py::test_status_and_metrics_say_when_the_last_one_was_and_what_it_found",
        ),
    ),
)
