"""From outside: find processes, get the hook into one, talk to it, take it out again.

`session.attach` for a process that runs already, `launch.launch` for one that tuimon starts, `find.process.find_targets` for
the list, `find.choice.choose` for what is meant by a pid. Everything that touches another process is behind them: `preflight`
(may we?), `channel` (the socket), `tracer` (the helper as seen from here), `inject` (the helper and all that it does),
`machine` (what differs between processors).
"""
