"""Every schedule, or every state, of a small scope."""
