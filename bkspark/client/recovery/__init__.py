"""Taking over from somebody else.

recover (who begins, and again) -> one_term (the steps) -> fencing and replication (what is done on
bookies), which running carries out; journal_tail and last_confirmed read ends, and explaining says
why it is stuck.
"""
