"""Names are shortened by what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuimon.draw.names import command, frame_name, function_name, marked_id, place
from tuimon.draw.text import cells


@pytest.mark.parametrize(
    ("width", "name"),
    [
        (40, "forward modeling_llama.py:312"),
        (28, "forward modeling…lama.py:312"),
        (20, "forward mode….py:312"),
        (15, "forward:312"),
        (7, "forward"),
        (5, "fo…rd"),
    ],
)
def test_the_place_goes_before_the_function(width: int, name: str) -> None:
    assert frame_name("forward", "/src/modeling_llama.py", 312, width, "…") == name


@pytest.mark.parametrize(
    ("width", "name"),
    [(26, "SmallGPT.forward resumed:9"), (24, "forward resumed:9"), (17, "forward resumed:9"), (16, "SmallGPT…resumed")],
)
def test_a_line_tells_more_than_a_class(width: int, name: str) -> None:
    assert frame_name("SmallGPT.forward resumed", "/src/modeling_llama.py", 9, width, "…") == name


@pytest.mark.parametrize(("width", "name"), [(30, "modeling_llama.py:41"), (14, "model…ma.py:41"), (6, "m…y:41"), (3, "m…1")])
def test_the_line_of_a_place_is_kept(width: int, name: str) -> None:
    assert place("/src/modeling_llama.py", 41, width, "…") == name


def test_an_id_says_after_which_reset_it_was_given() -> None:
    assert [marked_id("0/0", generation) for generation in (0, 1, 2)] == ["0/0", "0/0 r1", "0/0 r2"]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("torch_dynamo_resume_in_forward_at_41", "forward resumed"),
        ("torch_dynamo_resume_in_torch_dynamo_resume_in_f_at_3_at_9", "f resumed"),
        ("torch_dynamo_resume_in_", "torch_dynamo_resume_in_"),
        ("", "?"),
        ("loss", "loss"),
    ],
)
def test_what_dynamo_calls_the_rest_of_a_function(function: str, name: str) -> None:
    assert function_name(function) == name


@pytest.mark.parametrize(
    ("width", "name"),
    [
        (80, "/opt/venv/bin/python3.11 -u demos/train.py --steps 600"),
        (45, "python3.11 -u demos/train.py --steps 600"),
        (22, "train.py --steps 600"),
        (12, "train.py --…"),
    ],
)
def test_commands_lose_folders_then_the_interpreter(width: int, name: str) -> None:
    assert command("/opt/venv/bin/python3.11 -u demos/train.py --steps 600", width, "…") == name


@pytest.mark.parametrize(
    ("width", "name"),
    [(30, "train_small_gpt.py --steps 600"), (22, "train_small_gpt.py --…"), (18, "train_small_gpt.py"), (13, "train_…gpt.py")],
)
def test_the_name_of_the_script_is_shortened_last(width: int, name: str) -> None:
    assert command("python train_small_gpt.py --steps 600", width, "…") == name


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 10**6), st.integers(0, 60))
def test_names_fit(function: str, file: str, line: int, width: int) -> None:
    assert cells(frame_name(function, file, line, width, "…")) <= width
    assert cells(place(file, line, width, "…")) <= width
    assert cells(command(function, width, "…")) <= width


def test_the_rest_of_a_method_is_short() -> None:
    assert function_name("Block.forward from line 82 on") == "Block.forward resumed"
    assert frame_name("Block.forward from line 82 on", "model.py", 82, 26, "~") == "Block.forward resumed:82"
