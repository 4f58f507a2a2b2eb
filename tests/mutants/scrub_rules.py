"""Mutants of the scrub: what is checked, what is damage, and what an audit takes from it."""

from .mutant import Mutant

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
        "Scrub.carry_out",
        '            if not self.findings.counts["files"]:\n                raise\n',
        "            raise\n",
        (f"{MARKS}::test_what_was_found_is_told_though_the_rest_cannot_be_read",),
    ),
    Mutant(
        "a record that cannot be read has changed",
        "Scrub._changed",
        "            if now is None and self._is_unreadable(ledger.ledger_id):\n",
        "            if False:\n",
        (
            f"{MARKS}::test_damage_of_a_ledger_whose_record_cannot_be_looked_up_again_is_told_and"
            "_not_marked",
        ),
    ),
    Mutant(
        "marks are taken back of a ledger whose record cannot be read",
        "Scrub._forget_what_is_gone",
        "            if ledger is None and self._is_unreadable(ledger_id):\n",
        "            if False:\n",
        (f"{MARKS}::test_marks_of_a_ledger_whose_record_cannot_be_read_stay",),
    ),
    Mutant(
        "a scrub goes by the heads of records",
        "JournalScrub._found",
        "            return reader.checked(begin, end)\n",
        "            return reader.head(begin)\n",
        (UNTIL_GOOD,),
    ),
    Mutant(
        "a scrub ends at the first damage that leads no further",
        "JournalScrub.good_records",
        "        if reader.is_blocked:\n            yield from self._behind(reader)\n",
        "",
        (SEVERAL,),
    ),
    Mutant(
        "what is good behind damage does not count",
        "JournalScrub._behind",
        "                yield good\n            reached = begin\n",
        "                pass\n            reached = begin\n",
        (f"{SCRUB}::test_good_records_behind_damage_are_not_marked",),
    ),
    Mutant(
        "the torn end of a killed writer is damage",
        "JournalScrub._behind",
        "if reached < blocked.size or blocked.tail(CHUNK_BYTES_MAX) is Tail.CORRUPT:",
        "if True:",
        (NO_DAMAGE,),
    ),
    Mutant(
        "the last record of who still writes is damage",
        "JournalScrub._checked",
        "        if self.is_closed or end < reader.size:\n",
        "        if True:\n",
        (OPEN,),
    ),
    Mutant(
        "without a password trailers are not checked either",
        "JournalScrub._found",
        "if head is not None and reader.is_framed(begin, end) else None",
        "if head is not None else None",
        (SECRETS,),
    ),
    Mutant(
        "that digests were not checked is not said",
        "_Work._digester",
        "            self.is_digested = False\n",
        "",
        (SECRETS,),
    ),
    Mutant(
        "blocks of entry logs are not read",
        "_Work._damages",
        "for block in file.blocks if self.is_digested else ():",
        "for block in ():",
        (BLOCK,),
    ),
    Mutant(
        "damage beside which there is a good copy is left for ever",
        "look._Work._judged",
        "is_left=bool(lacks or self.entry_logs or not is_closed)",
        "is_left=True",
        (BESIDE,),
    ),
    Mutant(
        "a mark outlives what made it good",
        "_after",
        "    for ledger_id in news.good:\n        marks.pop(ledger_id, None)\n",
        "",
        (UNTIL_GOOD, GONE, f"{PARTS}::test_marks_come_and_go"),
    ),
    Mutant(
        "a sample takes marks back of what it did not read",
        "Scrub._note",
        "if one.unknown} | answer.partial |",
        "if one.unknown} |",
        (SAMPLE,),
    ),
    Mutant(
        "what was found of a record that changed is believed",
        "Scrub._changed",
        "                changed.add(ledger.ledger_id)\n",
        "                pass\n",
        (CHANGED,),
    ),
    Mutant(
        "a bookie that could not be read has nothing that is damaged",
        "Scrub._look",
        "                self.findings.silent[read.address.bookie_id] = reason\n",
        "",
        (AWAY,),
    ),
    Mutant(
        "an audit counts marked records",
        "journals_shown.show",
        "shown.add(one.without(mark.entries) if mark and is_marked else one, ledger)",
        "shown.add(one, ledger)",
        (UNTIL_GOOD,),
    ),
    Mutant(
        "what was copied anew is marked like what is damaged",
        "journals_shown.show",
        "is_marked = mark is not None and name in mark.journals",
        "is_marked = mark is not None",
        (BESIDE,),
    ),
    Mutant(
        "an audit counts marked entry logs",
        "missing_file",
        "is_marked = mark is not None and name in mark.entry_logs",
        "is_marked = False",
        (BLOCK,),
    ),
    Mutant(
        "marks of what a bookie was before hold for what it is now",
        "NotedDamage.marks",
        "                if mark.incarnation == member.incarnation:\n",
        "                if mark is not None:\n",
        (f"{PARTS}::test_what_was_initialised_anew_has_no_marks_of_before",),
    ),
    Mutant(
        "a rate is that of each read alone",
        "Pace.passed",
        "due = self._began + self.byte_count / self._bytes_per_second",
        "due = environment.monotonic() + byte_count / self._bytes_per_second",
        (f"{PARTS}::test_no_more_is_read_than_may_be_and_whoever_waits_shows_signs_of_life",),
    ),
    Mutant(
        "entries of its own are passed over where a record is damaged",
        "_Work._keep",
        "own_part(between, place, self.ledger.quorum) is None",
        "True",
        (f"{SCRUB}::test_one_entry_of_a_striped_ledger_is_marked_alone",),
    ),
    Mutant(
        "marks that cannot be read stop a repair",
        "NotedDamage.__init__",
        "        self._shown.step_over = cluster.upkeep.reports.step_over or _pass_over\n",
        "",
        (f"{PARTS}::test_a_record_that_cannot_be_read_stops_only_who_would_change_it",),
    ),
    Mutant(
        "a repair takes what is marked for good",
        "Repair._begin",
        "sources, self._password, mark=mark)",
        "sources, self._password)",
        (f"{MARKS}::test_a_repair_makes_what_is_damaged_again[memory]",),
    ),
    Mutant(
        "damaged journals are not counted as files",
        "look._Work._judged",
        "            len(self.journals) + len(self.entry_logs),\n",
        "            len(self.entry_logs),\n",
        (
            "tests/integration/upkeep/test_scrub.py::test_each_damaged_file_is_counted_whatever_it_costs",
        ),
    ),
    Mutant(
        "a scrub that found damage is well",
        "_last_scrub",
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
