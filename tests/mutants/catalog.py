"""The catalogue: single-rule mutations of the source, and for each the tests that must notice.

A mutant is killed if every test listed for it fails. To add one: pick a rule, break it in one
place, name the test that says the rule, and put it in the table of its layer.
"""

from . import (
    client_rules,
    deletion_rules,
    follow_rules,
    format_rules,
    front_rules,
    handle_rules,
    hanging_rules,
    let_go_rules,
    log_rules,
    posix_rules,
    protocol_decisions,
    protocol_values,
    reader_rules,
    recovery_decisions,
    recovery_rules,
    search_rules,
    simulation_rules,
    storage_rules,
    stream_rules,
    told_rules,
)
from .mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *protocol_values.MUTANTS,
    *protocol_decisions.MUTANTS,
    *format_rules.MUTANTS,
    *front_rules.MUTANTS,
    *client_rules.MUTANTS,
    *handle_rules.MUTANTS,
    *hanging_rules.MUTANTS,
    *stream_rules.MUTANTS,
    *log_rules.MUTANTS,
    *let_go_rules.MUTANTS,
    *reader_rules.MUTANTS,
    *follow_rules.MUTANTS,
    *deletion_rules.MUTANTS,
    *storage_rules.MUTANTS,
    *recovery_decisions.MUTANTS,
    *recovery_rules.MUTANTS,
    *posix_rules.MUTANTS,
    *search_rules.MUTANTS,
    *simulation_rules.MUTANTS,
    *told_rules.MUTANTS,
)
