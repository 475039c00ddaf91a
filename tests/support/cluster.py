"""Many ranks of a job on many nodes, simulated: what their hooks would say, said over as many lines of the relay.

    python -m tests.support.cluster far SOCKET RANKS PER_NODE RATE LATE    all nodes, one process
    python -m tests.support.cluster near SOCKET RANKS PER_NODE FOLD        the monitor on them, in this terminal

One recorded rank (`tests/bench/ranks_stream.json`: what a hook said, and its steps row by row) is played
for each of them: with clocks that differ by node, with durations that vary, all leaving each collective at the same moment, and
with one rank that comes late to the first collective of 40 steps in 41.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import random
import select
import socket
import sys
import time
from pathlib import Path
from typing import Any

from tuimon import events as ev
from tuimon.hook import wire
from tuimon.model.ranks.digest import Met, StepDigest, pack
from tuimon.relay.protocol import PASSED_ON
from tuimon.sources import carried

STREAM = Path(__file__).resolve().parents[1] / "bench" / "ranks_stream.json"
LATE_IN, OF = 40, 41
COMPUTE, LATE_BY = 0.55, 0.3
"""Of the time from step to step: what a rank computes before the first collective, and what the late one takes longer."""
JITTER = 0.04
FLUSH_S = 0.1
FOLD_S = 0.5


class Stream:
    """The recording."""

    def __init__(self) -> None:
        held = json.loads(STREAM.read_text())
        self.main: int = held["main"]
        self.prelude: list[dict[str, Any]] = held["prelude"]
        self.status: dict[str, Any] = held["status"]
        self.steps: list[list[list[int]]] = held["steps"]
        self.roles = {one["instrument"]: one["role"] for one in self.prelude if one["k"] == "added"}
        self.began = self.prelude[0]["t"]

    def communication(self, number: int) -> bool:
        """Whether an instrument times a collective."""
        return self.roles.get(number) == "communication"


class Job:
    """What all ranks do, on one true clock in ns: each step's rows, for each rank."""

    def __init__(self, ranks: int, rate: float, late: int, seed: int = 1) -> None:
        self.stream = Stream()
        self.ranks, self.late, self.period = ranks, late, 1e9 / rate
        self.random = random.Random(seed)
        self.step = 0
        self.sequence = 1000
        self.end = 0

    def next(self) -> tuple[int, list[list[tuple[int, int, int, int]]]]:
        """(its end, per rank the rows (instrument, flags, begin, end)) of the next step."""
        recorded = self.stream.steps[self.step % len(self.stream.steps)]
        first = next(at for at, row in enumerate(recorded) if self.stream.communication(row[0]))
        before, after = recorded[:first], recorded[first:]
        compute = self.period * COMPUTE
        scale = compute / max(1, recorded[first][2])
        late = self.step % OF != OF - 1
        gauss = self.random.gauss
        arrivals = []
        for rank in range(self.ranks):
            took = compute * max(0.7, 1 + JITTER * gauss(0, 1))
            if rank == self.late and late:
                took += self.period * LATE_BY
            arrivals.append(self.end + int(took))
        joined = max(arrivals) + 300_000
        shift = joined - recorded[first][3]
        tail = [
            (number, flags & 0xFF | (self.sequence + (flags >> 8) % 4) << 8 if self.stream.communication(number) else flags,
             begin + shift, end + shift)
            for number, flags, begin, end in after
        ]  # fmt: skip
        found = []
        for arrival in arrivals:
            squeeze = scale * (arrival - self.end) / compute
            rows = [(n, f, self.end + int(b * squeeze), self.end + int(e * squeeze)) for n, f, b, e in before]
            number, flags, _, end = tail[0]
            rows.append((number, flags, arrival, end))
            rows += tail[1:]
            found.append(rows)
        self.step += 1
        self.sequence += 4
        self.end = tail[-1][3]
        return self.end, found


class Rank:
    """One rank's hook, as its node's relay passes it on."""

    def __init__(self, number: int, offset_ns: int, wall_s: float, job: Job, world: int) -> None:
        self.number, self.offset, self.wall_s = number, offset_ns, wall_s
        self.job, self.world = job, world
        self.session = 0
        self.started = False
        self.rows: list[tuple[int, int, int, int, int]] = []
        self.samples = 0
        self.told_ns = 0
        self.fold = False
        self.whole = False

    def prelude(self, now: int) -> list[bytes]:
        """What the hook says first, as if it had just come in."""
        shift = now - self.job.stream.began
        found = []
        for message in self.job.stream.prelude:
            told = {**message, "t": message["t"] + shift + self.offset}
            if told["k"] == "facts":
                told.update(wall=self.wall_s + now / 1e9, rank=self.number, world_size=self.world, pid=100_000 + self.number)
            elif told["k"] == "past_compile":
                wall = self.wall_s + now / 1e9
                told.update(wall=wall, metrics={**told["metrics"], "start_time": wall - 10})
            found.append(wire.json_frame(told))
        return found

    def status(self, now: int) -> bytes:
        """The hook's word on itself."""
        return wire.json_frame({**self.job.stream.status, "t": now + self.offset, "samples": self.samples})


def passed_on(frame: bytes) -> bytes:
    """A hook's frame as the relay passes it on."""
    kind, body = frame[0], frame[wire.HEADER.size :]
    if kind == wire.JSON_FRAME:
        body = PASSED_ON + body
    return wire.HEADER.pack(kind, len(body)) + body


class Node:
    """The far end of one line."""

    def __init__(self, connection: socket.socket, ranks: list[Rank], name: str) -> None:
        self.socket, self.ranks, self.name = connection, ranks, name
        self.decoder = wire.Decoder()
        self.current = 0
        self.out: list[bytes] = []
        self.sent = 0

    def control(self, word: str, **more: Any) -> None:
        """A word of the relay's own."""
        self.out.append(wire.json_frame({"relay": word, **more}))

    def give(self, rank: Rank, frame: bytes) -> None:
        """A frame of a session."""
        if rank.session != self.current:
            self.current = rank.session
            self.control("of", s=rank.session)
        self.out.append(passed_on(frame))

    def flush(self) -> None:
        """Write; blocks where the monitor does not take it."""
        data = b"".join(self.out)
        self.out.clear()
        if data:
            self.sent += len(data)
            self.socket.sendall(data)

    def requests(self, now: int) -> bool:
        """Answer what the near end asks; False where it has gone."""
        try:
            data = self.socket.recv(1 << 16)
        except OSError:
            return False
        for _, body in self.decoder.feed(data):
            self.request(wire.read_json(body), now)
        return bool(data)

    def request(self, message: dict[str, Any], now: int) -> None:
        """One request."""
        clock = now + self.ranks[0].offset
        if "beat" in message:
            self.control("beat", echo=message["beat"], t=clock)
        elif "attach" in message:
            rank = next(one for one in self.ranks if 100_000 + one.number == message["pid"])
            rank.session = message["attach"]
            rank.fold = bool(message.get("fold"))
            hello = {"argv": ["python", "/job/train.py"], "pid": message["pid"]}
            self.control("attached", s=rank.session, pid=message["pid"], hello=hello, how="injected", report={})
            self.control("settled", s=rank.session, report={})
        elif "start" in message:
            rank = next(one for one in self.ranks if one.session == message["start"])
            rank.started = True
            for frame in rank.prelude(now):
                self.give(rank, frame)
        elif "whole" in message:
            rank = next(one for one in self.ranks if one.session == message["whole"])
            rank.whole = bool(message.get("on"))
        elif "detach" in message:
            for rank in self.ranks:
                if rank.session == message["detach"] and rank.started:
                    rank.started = False
                    self.control("over", s=rank.session, reason="detached", goodbye={"left": []}, gone=False, report={})


def far(path: str, ranks: int, per_node: int, rate: float, late: int) -> None:
    """Play the nodes until the monitor has gone; says on stderr how far behind its own clock it was at most."""
    job = Job(ranks, rate, late)
    rnd = random.Random(2)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1024)
    nodes: list[Node] = []
    of_node: dict[int, Node] = {}
    count = (ranks + per_node - 1) // per_node
    for at in range(count):
        connection, _ = listener.accept()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        # clocks that count from each node's own start, and wall clocks that NTP holds to within some milliseconds
        offset = rnd.randrange(1, 10**15)
        wall = time.time() - time.monotonic() + rnd.gauss(0, 0.002)
        held = [Rank(r, offset, wall, job, ranks) for r in range(at * per_node, min(ranks, (at + 1) * per_node))]
        node = Node(connection, held, f"node{at:03}")
        node.control("hello", tuimon="0", protocol="", python="3.11", host=node.name, user="u", os="linux", machine="x86_64",
                     t=time.monotonic_ns() + offset, wall=time.time())  # fmt: skip
        node.control("beat", t=time.monotonic_ns() + offset)
        node.flush()
        nodes.append(node)
        of_node[connection.fileno()] = node
    poll = select.poll()
    for node in nodes:
        poll.register(node.socket, select.POLLIN)
    everybody = [(node, rank) for node in nodes for rank in node.ranks]
    folded = {rank.number: Folded(rank, job.stream) for _, rank in everybody}
    began = time.monotonic_ns()
    job.end = began
    coming = [job.next()]
    events: list[tuple[int, int, str]] = [(began, 0, "flush"), (began, 1, "fold"), (began, 2, "status")]
    heapq.heapify(events)
    behind = 0.0
    while True:
        now = time.monotonic_ns()
        wait = max(0, min(events[0][0], coming[0][0]) - now) // 1_000_000
        for fd, _ in poll.poll(wait):
            if not of_node[fd].requests(time.monotonic_ns()):
                took_s, sent = (time.monotonic_ns() - began) / 1e9, sum(node.sent for node in nodes)
                sys.stderr.write(f"at most {behind:.2f} s behind; {sent} bytes in {took_s:.1f} s, {job.step} steps\n")
                return
        now = time.monotonic_ns()
        while coming[0][0] <= now:
            end, by_rank = coming.pop()
            behind = max(behind, (now - end) / 1e9)
            for (_, rank), rows in zip(everybody, by_rank, strict=True):
                if rank.started:
                    rank.samples += len(rows)
                    if rank.fold:
                        folded[rank.number].take(rows)
                    if rank.whole or not rank.fold:
                        shift, main = rank.offset, job.stream.main
                        rank.rows += [(n, main, f, b + shift, e + shift) for n, f, b, e in rows]
            coming.append(job.next())
        while events[0][0] <= now:
            at, kind, what = heapq.heappop(events)
            for node, rank in everybody:
                if not rank.started:
                    continue
                if what == "flush" and rank.rows:
                    node.give(rank, wire.samples_frame(rank.rows))
                    rank.rows.clear()
                elif what == "fold" and (frame := folded[rank.number].told(now)) is not None:
                    node.give(rank, frame)
                elif what == "status":
                    node.give(rank, rank.status(now))
            every = {"flush": FLUSH_S, "fold": FOLD_S, "status": 2.0 if everybody[0][1].fold else 1.0}[what]
            heapq.heappush(events, (max(at + int(every * 1e9), now), kind, what))
        for node in nodes:
            node.flush()


PARTS = {"forward": 1, "optimizer": 4, "data": 5, "communication": 6}
"""Role of an instrument -> its place in CATEGORIES; what is not here is other python."""


class Folded:
    """A rank's steps as its node folds them (`tuimon.relay.folding`), at a tenth of what that takes."""

    def __init__(self, rank: Rank, stream: Stream) -> None:
        self.rank, self.part = rank, {number: PARTS.get(role) for number, role in stream.roles.items()}
        self.rows: list[str] = []
        self.index, self.end = 0, 0

    def take(self, rows: list[tuple[int, int, int, int]]) -> None:
        """A step."""
        begin, self.end = self.end, rows[-1][3]
        if not begin:
            return  # the one in which tuimon came
        parts = [0] * 10
        met: dict[int, list[int]] = {}
        for number, flags, since, until in rows:
            part = self.part[number]
            if part is not None:
                parts[part] += until - since
            if part == PARTS["communication"]:
                met.setdefault(flags >> 8, [since, until])[1] = until
        parts[9] = self.end - begin - sum(parts)
        shift = self.rank.offset
        collectives = tuple(Met("", one, "all_reduce", b + shift, e + shift) for one, (b, e) in met.items())
        digest = StepDigest(0, self.index, begin + shift, self.end + shift, tuple(parts), collectives=collectives)
        self.rows.append(json.dumps(pack(digest), separators=(",", ":")))
        self.index += 1

    def told(self, now: int) -> bytes | None:
        """What has come together since the last time."""
        if not self.rows:
            return None
        event = ev.StepsFolded(now + self.rank.offset, "optimizer", "from the optimizer AdamW", tuple(self.rows))
        self.rows.clear()
        return wire.json_frame(carried.encode(event))


class Line:
    """What a link needs of a line, on a socket."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        from tuimon.relay.place import Place

        self.place = Place(name, ("true",), ssh=True)
        self._socket = connection

    def read(self, seconds: float) -> bytes | None:
        """As of `relay.line.Line`."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return self._socket.recv(1 << 18) if poll.poll(seconds * 1000) else None

    def write(self, data: bytes, _seconds: float = 0) -> bool:
        """As of `relay.line.Line`."""
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        return True

    def hurry(self) -> None:
        """Nothing: it is here."""

    def shut(self) -> None:
        """Say that nothing more comes."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def end(self, _seconds: float = 0) -> None:
        """The same."""
        self.shut()

    def close(self, _seconds: float = 0) -> None:
        """Close it."""
        self._socket.close()

    def says(self) -> str:
        """Nothing."""
        return ""


def near(path: str, ranks: int, per_node: int, fold: bool) -> int:
    """Watch them on this terminal."""
    from tuimon.app import run_monitor
    from tuimon.feed import LiveFeed
    from tuimon.fleet import Fleet
    from tuimon.relay.near import Link

    feeds = []
    for at in range((ranks + per_node - 1) // per_node):
        connection = socket.socket(socket.AF_UNIX)
        for _ in range(200):
            try:
                connection.connect(path)
                break
            except OSError:
                time.sleep(0.05)
        line = Line(connection, f"node{at:03}")
        link = Link(line, b"")  # type: ignore[arg-type]
        for rank in range(at * per_node, min(ranks, (at + 1) * per_node)):
            feeds.append(LiveFeed(_way(link, line.place.name, rank, fold)))
    fleet = Fleet(feeds)
    fleet.start()
    return run_monitor(fleet, theme=None, ascii=False, no_color=False, interval=None, mouse=False)


def _way(link: Any, name: str, rank: int, fold: bool) -> Any:
    from tuimon.ways import Way

    more = {"fold": True} if fold else {}
    pid = 100_000 + rank

    def begin(contact: Any) -> Any:
        return link.open_session(pid, {}, contact, **more)

    return Way(f"rank {rank}", "python /job/train.py", rank, name, begin, pid, "9")


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "far":
        far(where, int(rest[0]), int(rest[1]), float(rest[2]), int(rest[3]))
    else:
        raise SystemExit(near(where, int(rest[0]), int(rest[1]), rest[2] == "1"))
