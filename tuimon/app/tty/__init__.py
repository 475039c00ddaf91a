"""The terminal: what it is, what is written to it and how fast, what comes from it."""
