"""The framing holds however the bytes are cut, and refuses what it does not know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.hook import wire

sample = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
)
message = st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.integers()))


@given(st.lists(st.one_of(message, st.lists(sample, max_size=150))), st.lists(st.integers(1, 40)))
def test_frames_survive_any_cut(contents: list[object], cuts: list[int]) -> None:
    stream = b"".join(
        wire.json_frame(content) if isinstance(content, dict) else wire.samples_frame(content) for content in contents
    )
    decoder = wire.Decoder()
    frames = []
    at = 0
    for size in [*cuts, len(stream)]:
        frames += decoder.feed(stream[at : at + size])
        at += size
    got = [wire.read_json(body) if kind == wire.JSON_FRAME else list(wire.read_samples(body)) for kind, body in frames]
    assert got == contents
    assert decoder.pending == 0


@given(st.binary(max_size=200))
def test_noise_gives_an_error_or_nothing(noise: bytes) -> None:
    decoder = wire.Decoder()
    try:
        for kind, body in decoder.feed(noise):
            if kind == wire.JSON_FRAME:
                wire.read_json(body)
            else:
                list(wire.read_samples(body))
    except wire.WireError:
        pass


@pytest.mark.parametrize(
    "header",
    [
        wire.HEADER.pack(7, 0),
        wire.HEADER.pack(wire.JSON_FRAME, wire.MAX_BODY + 1),
        wire.HEADER.pack(wire.SAMPLES_FRAME, wire.SAMPLE.size + 1),
    ],
)
def test_impossible_headers_are_refused(header: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.Decoder().feed(header)


def test_a_surrogate_in_a_name_does_not_break_the_frame() -> None:
    (frame,) = wire.Decoder().feed(wire.json_frame({"file": "bad\udcff.py"}))
    assert "bad" in wire.read_json(frame[1])["file"]
