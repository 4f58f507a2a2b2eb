"""Report progress: a line for each finished step, and on a terminal the running step."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from bkspark import environment


class Narrator:
    """Prints the steps of the demo; used in a ``with`` block.

    Args:
        console: the output.
        step_count: for the progress bar, which is shown on terminals only.
    """

    def __init__(self, console: Console, step_count: int) -> None:
        self.console = console
        # On a terminal both use one console, to avoid overwriting each other's lines.
        shown_on = console if console.is_terminal else Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            console=shown_on,
            transient=True,
            disable=not shown_on.is_terminal,
        )
        self._task: TaskID = self._progress.add_task("", total=step_count)
        self._mark = "ok" if console.options.ascii_only else "\N{CHECK MARK}"

    def __enter__(self) -> "Narrator":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, doing: str) -> Iterator[list[str]]:
        """Run one step; the caller appends the lines to be printed to the list."""
        done: list[str] = []
        begin = environment.monotonic()
        self._progress.update(self._task, description=doing)
        yield done
        seconds = environment.monotonic() - begin
        self._progress.advance(self._task)
        head, *more = done
        line = Text.assemble((f"{self._mark} ", "bold green"), head, (f"  {seconds:.1f} s", "dim"))
        self.console.print(line, soft_wrap=True)
        for text in more:
            self.console.print(Text(f"  {text}"), soft_wrap=True)

    def show(self, *things: RenderableType) -> None:
        """Print ``things`` with an empty line around them."""
        self.console.print()
        for thing in things:
            self.console.print(thing)
        self.console.print()
