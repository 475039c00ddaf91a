"""TORCH_TRACE logs: the records that torch's compiler writes about what it does, as the events of jobs that are over.

The records are those that the hook passes on from a running job, so what they say is read in one place
(`tuimon.sources.trace_records`). What is read here is what only a file has: lines that are cut, broken or not torch's at all,
times without a year, names of files told once, and the ways in which other versions of torch wrote the same.
"""

from tuimon.sources.torch_trace.opening import open_log as open_log
