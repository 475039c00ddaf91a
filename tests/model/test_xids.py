"""The words for the driver's errors."""

from __future__ import annotations

from tuimon.model import xids


def test_what_an_error_means_is_said_in_a_few_words() -> None:
    assert "fallen off the bus" in xids.xid_words(79)
    assert xids.xid_words(999) == "see NVIDIA's list of XID errors"
    for number in xids._XIDS:
        words = xids.xid_words(number)
        assert words[0].islower() and not words.endswith(".")
        assert len(words) <= 100 and "\n" not in words
