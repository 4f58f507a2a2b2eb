"""A client's view of a cluster: records and bookies. This package knows no journal format.

cluster  records  timed_store     typed records under compare-and-set: ledgers, logs, bookies
admission                         checks before a place becomes a bookie or a metadata store
bookie_client  fan_out            questions to one bookie or several, each with a time limit
hang_memory                       this process's memory of storage that hung
bookie_status                     the state of a bookie, and the part noted in its record
ensembles                         choosing bookies
post_check                        the check that makes a record on a bookie countable
password  arguments               secrets by reference; checks of users' arguments
"""
