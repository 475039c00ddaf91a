"""The list of processes that one can attach to."""
