"""What others do in the midst of a change: inside the closure that decides, not before it."""
