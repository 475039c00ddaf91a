"""From outside: find processes, get the hook into one, talk to it, take it out again.

`session.attach` for a process that runs already, `launch.launch` for one that tuimon starts, `process.find_targets` for the
list. Everything that touches another process is behind them: `preflight` (may we?), `channel` (the socket), `tracer` and
`helper` (the process that traces), `injector` with `foothold`, `borrowing`, `ptrace`, `room` and `machine` (how).
"""
