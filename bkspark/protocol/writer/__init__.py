"""The writer's state machine: the bookies of each add, acknowledgements, replacement of bookies.

Read in this order: ``adding`` (when an add is complete), ``steps`` (events and instructions),
``writing`` (the machine), then its parts: ``ensemble_change``, ``gaps``, ``fragment_roll`` and
``last_copies``.
"""
