"""A deterministic simulation of the real client code, one storage operation at a time.

Rule: everything that happens in a schedule follows from its seed, and nothing of the product is
replaced, but by mutants: what clients get from their environment is all that differs. Clients run
as cooperative tasks; before every storage or metadata operation a task hands over to the scheduler,
which decides who goes next and what fails. An oracle that knows nothing of the client's reasons
looks at the storage after every step.

    python -m tests.simulation --seconds 60 --jobs 2
    python -m tests.simulation --schedules 1 --seed 4711 --tell
    python -m tests.simulation --logs --seconds 60 --jobs 2
    python -m tests.simulation --exhaust 3/3/2 --recoverers 1 --change
    python -m tests.simulation --exhaust 3/3/2 --recoverers 2 --states

Who is who: ``schedule`` (one, by chance), ``many`` and ``exhaustive`` (all of a small scope) drive
a ``scheduler``. Its ``environment`` is where ``clients`` have time, chance, tasks and ``storage``,
with ``disks`` and ``faults``; ``oracle``, ``known`` and ``log_watch`` look on; ``story`` tells
what happened. ``states`` needs none of them: it looks at every state of the protocol's machines in
a small world. Logs of ledgers have schedules of their own, in the same ``frame``: ``log_schedule``
starts ``log_clients``, ``log_holders`` and ``log_batches``, and ``log_oracle`` looks on, with what
``log_witness`` tells it and ``log_told`` and ``entry_logs`` remember.
"""
