"""The queue is bounded and counts; the sender never waits for a reader that does not read."""

from __future__ import annotations

import socket
import threading
import types

import pytest

from tuimon.hook import outbox, timers, wire


def drained(end: socket.socket) -> list[tuple[int, bytes]]:
    end.setblocking(False)
    data = b""
    try:
        while chunk := end.recv(1 << 20):
            data += chunk
    except BlockingIOError:
        pass
    return wire.Decoder().feed(data)


def test_samples_and_messages_keep_their_order() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    box = outbox.Outbox(ours)
    box.put({"k": "first"})
    box.queue.append((1, 77, 0, 10, 20))
    box.queue.append((1, 77, 0, 30, 40))
    box.put({"k": "last"})
    box.flush()
    frames = drained(theirs)
    kinds = [wire.read_json(body)["k"] if kind == wire.JSON_FRAME else "samples" for kind, body in frames]
    assert [kind for kind in kinds if kind != "thread"] == ["first", "samples", "last"]
    assert box.samples == 2
    ours.close()
    theirs.close()


def test_what_a_message_names_goes_out_before_it_and_in_its_place() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    box = outbox.Outbox(ours)

    def named() -> dict[str, str]:
        box.put({"k": "its name"})
        return {"k": "made"}

    box.put({"k": "first"})
    box.put(named)

    def alone() -> None:
        box.put({"k": "put alone"})
        box.put(lambda: None)

    def raises() -> None:
        raise RuntimeError

    box.put(alone, soon=True)
    box.queue.append((1, 77, 0, 10, 20))
    assert box.hurry
    box.flush()
    assert not box.hurry
    box.put(raises)
    with pytest.raises(RuntimeError):
        box.flush()
    box.put({"k": "behind it"})
    assert len(box.queue) == 1, "it is queued, not sent at once"
    box.queue.clear()
    frames = drained(theirs)
    kinds = [wire.read_json(body)["k"] if kind == wire.JSON_FRAME else "samples" for kind, body in frames]
    assert [kind for kind in kinds if kind != "thread"] == ["first", "its name", "made", "put alone", "samples"]
    ours.close()
    theirs.close()


@pytest.mark.parametrize("apart", [1, 2, 63, 64, 65, 200])
def test_messages_among_many_samples_keep_their_place(apart: int) -> None:
    sent = bytearray()
    box = outbox.Outbox(types.SimpleNamespace(send=lambda data, flags: (sent.extend(data), len(data))[1]))
    box.name_threads()
    box.queue.clear()
    for at in range(1000):
        if at % apart == 0:
            box.put({"k": "message", "at": at})
        box.queue.append((1, 77, 0, at, at))
    packed = box.packed
    box.flush()
    assert box.packed - packed == 1000 + -(-1000 // apart) and box.samples == 1000
    came: list[tuple[str, int]] = []
    for kind, body in wire.Decoder().feed(bytes(sent)):
        if kind == wire.JSON_FRAME:
            came.append(("message", wire.read_json(body)["at"]))
        else:
            came += [("sample", row[3]) for row in wire.read_samples(body)]
    wanted = [(what, at) for at in range(1000) for what in ("message", "sample") if what == "sample" or at % apart == 0]
    assert came == wanted


def test_a_reader_that_never_reads_costs_bounded_memory_and_every_loss_is_counted(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(outbox, "UNSENT_LIMIT", 1 << 16)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    box = outbox.Outbox(ours)
    box.room[0] = 1000
    timed = timers.call_timer(lambda: None, 1, box)
    for _ in range(60):
        for _ in range(400):
            timed()
        box.flush()
    assert len(box.queue) <= 1000
    taken = 60 * 400 - box.dropped[0]
    assert box.dropped[0] > 0 and taken == box.samples + len(box.queue)
    assert len(box._unsent) < (1 << 16) + outbox.SAMPLES_A_FRAME * wire.SAMPLE.size + 100
    ours.close()
    theirs.close()


def test_a_reader_that_is_gone_raises_oserror_and_no_signal() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    box = outbox.Outbox(ours)
    box.put({"k": "x"})
    try:
        box.flush()
    except OSError:
        pass
    else:
        raise AssertionError("the loss of the connection went unnoticed")
    box.finish(0.1, 0.1)
    ours.close()


def test_the_jobs_own_texts_are_cut_but_not_payloads() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        box = outbox.Outbox(ours)
        box.put({"k": "trace", "record": {"stack": [["f" * 9999, 1, None]]}, "payload": "p" * 9999, "name": "n" * 9999})
        box.finish(10, 10)
        ours.close()
        sent = b"".join(iter(lambda: theirs.recv(1 << 16), b""))
    ((_, body),) = wire.Decoder().feed(sent)
    message = wire.read_json(body)
    assert message["record"] == {"stack": [["f" * 4096, 1, None]]}
    assert (len(message["payload"]), len(message["name"])) == (9999, 4096)


def test_the_end_is_sent_to_a_slow_reader_and_not_to_one_that_takes_nothing() -> None:
    for reads in (True, False):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            box = outbox.Outbox(ours)
            for _ in range(64):
                box.put({"k": "trace", "payload": "p" * 9999})
            box.put({"k": "last"})
            came = bytearray()

            def read(theirs: socket.socket = theirs, came: bytearray = came) -> None:
                while chunk := theirs.recv(4096):
                    came.extend(chunk)

            reader = threading.Thread(target=read)
            if reads:
                reader.start()
            box.finish(60.0 if reads else 0.01, 60.0)
            ours.close()
            if reads:
                reader.join()
            frames = wire.Decoder().feed(bytes(came))
        assert (b"last" in bytes(came)) is reads and len(frames) == (65 if reads else 0)
        assert (box.taken == len(came)) is reads
