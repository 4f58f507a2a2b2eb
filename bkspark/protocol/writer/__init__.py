"""The writer's machine: which bookies get an add, when it is acknowledged, who replaces whom.

Read in this order: ``adding`` (what makes an add complete), ``steps`` (what comes in and goes out),
``writing`` (the machine), then what it asks: ``ensemble_change``, ``gaps``, ``fragment_roll`` and
``last_copies``.
"""
