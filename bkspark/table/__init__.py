"""Reads Delta tables: replays a table's log, and gives the rows of a range of offsets."""
