"""Taking over from somebody else.

``recovering`` says what is done in which order; recover (what callers get) -> recoverer
(carries it out) -> fencing (what is done on one bookie), by threads (running) or by Spark's tasks;
journal_tail reads ends, displacement waits for others, and notes are what people are told.
"""
