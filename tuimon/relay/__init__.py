"""Attaching on another host, or in a container, through a command that runs a shell there: `ssh host`, `docker exec -i c`.

tuimon runs at both ends. Here: `place` (how to get there), `line` (the command, and the talk with the shell over there),
`near` (the connection: lists, sessions), `answers` (one request of it),
`remote` (one session, as `attach` would have given it). There: `far` (the loop),
`attachment` (one session), `outgoing` (the queue to the line). Between them go frames of `hook.wire`, on the command's standard
input and output; nothing listens. `protocol` says what the frames hold. `sent` packs the far end for hosts without tuimon.
"""
