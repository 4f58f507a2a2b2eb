"""One client's view of one cluster: its records and its bookies. It knows no journal.

cluster  records  timed_store     typed records under compare-and-set: ledgers, logs, bookies
admission                         what may become a bookie or a metadata store
bookie_client  fan_out            asking one bookie, asking several; each question has its time
hang_memory                       what this process remembers of storage that hung
bookie_status                     what a look at a bookie has found; what of it is kept
ensembles                         choosing bookies
post_check                        what makes a record on a bookie countable
password  arguments               secrets by reference; what users may ask for
"""
