"""Mutants of escapes in what is printed: no text steers a terminal."""

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
        'self.rich_proxied_file.write(visible(text, keep="\\n\\t"))',
        "self.rich_proxied_file.write(text)",
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
        "    with outputs_for_people():\n        return _main(",
        "    if True:\n        return _main(",
        (
            f"{COMMAND}[pipe-log read as a table-text]",
            f"{STEERING}::test_an_error_that_nobody_foresaw_steers_nothing[terminal-debug]",
        ),
    ),
    Mutant(
        "stderr is shown as it is",
        "outputs_for_people",
        "with redirect_stdout(out), redirect_stderr(err):",
        "with redirect_stdout(out):",
        (f"{SHOWN}[terminal-stderr]",),
    ),
    Mutant(
        "stdout is shown as it is",
        "outputs_for_people",
        "with redirect_stdout(out), redirect_stderr(err):",
        "with redirect_stderr(err):",
        (f"{SHOWN}[terminal-stdout]",),
    ),
    Mutant(
        "a cell is shown as it is",
        "output._shown",
        "    return visible(_text(value))\n",
        "    return _text(value)\n",
        (f"{SHOWN}[terminal-value]", f"{SHOWN}[terminal-list]", f"{SHOWN}[terminal-pair]"),
    ),
    Mutant(
        "a title is shown as it is",
        "print_table",
        "title = Text(visible(column.title))",
        "title = Text(column.title)",
        (f"{SHOWN}[terminal-title]",),
    ),
    Mutant(
        "a title is markup",
        "print_table",
        "title = Text(visible(column.title))",
        "title = visible(column.title)",
        (f"{STEERING}::test_a_title_is_no_markup[terminal]",),
    ),
    Mutant(
        "the name of a fact is shown as it is",
        "print_pairs",
        'Text(visible(name), style="bold")',
        'Text(name, style="bold")',
        (f"{SHOWN}[terminal-name]",),
    ),
    Mutant(
        "a finding is shown as it is",
        "print_styled",
        "((visible(text), style) for text, style in pieces)",
        "((text, style) for text, style in pieces)",
        (
            f"{SHOWN}[terminal-subject]",
            f"{SHOWN}[terminal-message]",
            f"{SHOWN}[terminal-fix]",
        ),
    ),
    Mutant(
        "a note is shown as it is",
        "output.note",
        'print(visible(" ".join(text.split())), file=sys.stderr)',
        'print(" ".join(text.split()), file=sys.stderr)',
        (f"{STEERING}::test_a_note_steers_nothing_whoever_has_the_stream",),
    ),
    Mutant(
        "JSON escapes only what it must",
        "_dumps",
        'return _escaped(text, lambda char: json.dumps(char)[1:-1], keep="\\n")',
        "return text",
        (f"{JSON}[terminal-utf-8]", f"{JSON}[pipe-utf-8]"),
    ),
    Mutant(
        "what changes the direction of writing is no control",
        "_steers",
        'return not char.isprintable() and category(char) != "Zs"',
        'return category(char) == "Cc"',
        (EACH, f"{SHOWN}[terminal-value]", f"{JSON}[terminal-utf-8]"),
    ),
    Mutant(
        "a wide blank is taken for a control",
        "_steers",
        'return not char.isprintable() and category(char) != "Zs"',
        "return not char.isprintable()",
        (EACH,),
    ),
    Mutant(
        "the demo draws the name of any folder",
        "cluster.demo",
        "    if visible(folder) != folder:\n",
        "    if False:\n",
        (f"{STEERING}::test_the_demo_draws_no_name_that_steers",),
    ),
)
