"""Mutants of escapes in what is printed: no text steers a terminal."""

from .change import Replace
from .mutant import Mutant

STEERING = "tests/unit/cli/test_terminal_escapes.py"
SHOWN = f"{STEERING}::test_text_is_shown_by_escapes"
JSON = f"{STEERING}::test_json_escapes_and_means_the_same"
EACH = f"{STEERING}::test_each_character_that_steers_has_an_escape"
COMMAND = f"{STEERING}::test_no_command_lets_anything_steer"

MUTANTS = (
    Mutant(
        "text is shown as it is",
        "ForPeople.write",
        Replace("visible(text, keep='\\n\\t')", "text"),
        (
            f"{SHOWN}[pipe-value]",
            f"{SHOWN}[pipe-title]",
            f"{SHOWN}[pipe-message]",
            f"{SHOWN}[terminal-stdout]",
            f"{SHOWN}[terminal-stderr]",
            f"{SHOWN}[terminal-logged]",
            f"{STEERING}::test_a_question_steers_nothing[terminal]",
            f"{STEERING}::test_an_error_that_nobody_foresaw_steers_nothing[terminal-debug]",
        ),
    ),
    Mutant(
        "a command does not look after its outputs",
        "program.main",
        Replace(
            "with outputs_for_people():\n    ...",
            "if True:\n    return _main(sys.argv[1:] if arguments is None else list(arguments))",
        ),
        (
            f"{COMMAND}[pipe-log read as a table-text]",
            f"{STEERING}::test_an_error_that_nobody_foresaw_steers_nothing[terminal-debug]",
        ),
    ),
    Mutant(
        "stderr is shown as it is",
        "outputs_for_people",
        Replace(
            "with redirect_stdout(out), redirect_stderr(err):\n    ...",
            "with redirect_stdout(out):\n    ...",
        ),
        (f"{SHOWN}[terminal-stderr]",),
    ),
    Mutant(
        "stdout is shown as it is",
        "outputs_for_people",
        Replace(
            "with redirect_stdout(out), redirect_stderr(err):\n    ...",
            "with redirect_stderr(err):\n    ...",
        ),
        (f"{SHOWN}[terminal-stdout]",),
    ),
    Mutant(
        "a cell is shown as it is",
        "output._shown",
        Replace("visible(_text(value))", "_text(value)"),
        (f"{SHOWN}[terminal-value]", f"{SHOWN}[terminal-list]", f"{SHOWN}[terminal-pair]"),
    ),
    Mutant(
        "a title is markup",
        "print_table",
        Replace("Text(visible(column.title))", "visible(column.title)"),
        (f"{STEERING}::test_a_title_is_no_markup[terminal]",),
    ),
    Mutant(
        "a note is shown as it is",
        "output.note",
        Replace("visible(' '.join(text.split()))", "' '.join(text.split())"),
        (f"{STEERING}::test_a_note_steers_nothing_whoever_has_the_stream",),
    ),
    Mutant(
        "JSON escapes only what it must",
        "_dumps",
        Replace("_escaped(text, lambda char: json.dumps(char)[1:-1], keep='\\n')", "text"),
        (f"{JSON}[terminal-utf-8]", f"{JSON}[pipe-utf-8]"),
    ),
    Mutant(
        "what changes the direction of writing is no control",
        "_steers",
        Replace("not char.isprintable() and category(char) != 'Zs'", "category(char) == 'Cc'"),
        (EACH, f"{SHOWN}[terminal-value]", f"{JSON}[terminal-utf-8]"),
    ),
)
