"""Into a process that runs already: the helper that traces, the ladder of ways, and each thing that is done to a thread.

`helper` is the process, `ladder` chooses a way, `injector` with `foothold` and `borrowing` is ours, `remote_exec` is CPython's.
"""
