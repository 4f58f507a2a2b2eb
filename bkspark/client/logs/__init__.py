"""A log from Python: settling -> opening -> log_writer; log_handle, cursors, retention."""
