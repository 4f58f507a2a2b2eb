"""Taking over from somebody else: recover -> fencing -> journal_tail."""
