"""Guard texts in a person's words."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.guard_texts import TORCH_2_9, TORCH_2_13, Case
from tests.model.script import compiled, model_of
from tuimon import events as ev
from tuimon.model.hosts import reads_host
from tuimon.model.reading import Reading, reading, reading_of, readings


@pytest.mark.parametrize("case", TORCH_2_13 + TORCH_2_9, ids=lambda case: case[0][:60])
def test_what_torch_writes(case: Case) -> None:
    text, kind, subject, before, now = case
    found = reading(text)
    assert (found.kind, found.subject, found.before, found.now) == (kind, subject, before, now)
    assert found.sentence and "\n" not in found.sentence
    assert "L[" not in found.sentence and "___" not in found.sentence and "_modules" not in found.sentence
    if kind not in ("unknown",) and not found.expected:
        assert found.advice or found.why


def said(text: str, **more: object) -> str:
    return reading(text, **more).sentence  # type: ignore[arg-type]


def test_a_sentence_says_what_changed() -> None:
    assert said("tensor 'x' size mismatch at index 0. expected 8, actual 6") == "x.size(0) is 6, was 8"
    assert said("tensor 'x' rank mismatch. expected 2, actual 1") == "x has 1 dimension, had 2"
    assert said("m == 1  # return", now={"m": "2"}) == "m is 2, was 1"
    assert said("m == 1  # return") == "m is no longer 1"
    assert said("L['m'] == 1", now={"m": "2"}) == "m is 2, was 1"
    assert said("m == 1", now={"L['m']": "2"}) == "m is 2, was 1"
    assert said("mask is None", now={"mask": "Tensor"}) == "mask is Tensor, was None"
    assert said("len(G['seen']) == 6", now={"len(G['seen'])": "7"}) == "len(seen) is 7, was 6"
    assert said("s._modules['d'].training == True") == "s.d was switched to eval()"
    assert said("GLOBAL_STATE changed: autocast(cpu)_enabled ") == "autocast on cpu was switched between two calls"
    assert said("2 <= x.size()[0]") == "x.size(0) is 0 or 1, the graph is for 2 and more"


def test_a_librarys_wrapper_is_named_after_what_it_wraps() -> None:
    text = "___check_type_id(fn._modules['0'], 94086908232064), type=<class 'torch.nn.modules.linear.Linear'>"
    assert reading(text, owner="Sequential(Linear, Tanh)").subject == "Sequential[0]"
    assert reading("fn.training == True", owner="Block").sentence == "Block was switched to eval()"
    assert reading("fnord == 1", owner="Block").subject == "fnord"


def test_the_first_size_is_no_fault_and_the_next_is() -> None:
    text = "tensor 'x' size mismatch at index 0. expected {}, actual {}"
    first = reading(text.format(8, 6))
    assert first.expected and "mark_dynamic(x, 0)" in first.advice
    again = reading(text.format(6, 4), history=[text.format(8, 6)])
    assert not again.expected and "it falls by 2 from one recompile to the next" in again.why
    other = reading("tensor 'x' size mismatch at index 1. expected 8, actual 6", history=[text.format(8, 6)])
    assert other.expected


def test_a_count_that_grows_is_seen_to() -> None:
    history = [f"0/{at}: len(G['seen']) == {at}  # seen.append(x)" for at in range(1, 4)]
    found = reading(
        "0/4: len(G['seen']) == 4  # seen.append(x)", {"len(G['seen'])": "5"}, history=["0/0: not G['seen']", *history]
    )
    assert "it grows by 1 from one recompile to the next" in found.why and "out of the compiled function" in found.advice
    integers = [
        f"s.n == {at}  # x (HINT: torch.compile considers integer attributes of the nn.Module to be static)" for at in (0, 1)
    ]
    counter = reading(integers[1].replace("== 1", "== 2"), history=integers)
    assert "grows by 1" in counter.why and "register_buffer" in counter.advice


def test_what_happens_once_is_expected() -> None:
    for text in ("x is None", "m == True", "m == 'train'", "GLOBAL_STATE changed: grad_mode ", "d.training == True"):
        assert reading(text).expected, text
    history = ["GLOBAL_STATE changed: grad_mode "] * 3
    assert not reading("GLOBAL_STATE changed: grad_mode ", history=history).expected
    assert not reading("mode == 'd'", history=["mode == 'a'", "mode == 'b'", "mode == 'c'"]).expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "0/0: ",
        "(" * 5000,
        "0/0: " + "(" * 400 + ")" * 400 + " == 1",
        "not " * 3000 + "x",
        "a" * 50_000_000,
        "m == '" + "b" * 100_000 + "'",
        "0/0: \x1b[31m[bold]x[/bold]\x07 == \u202e1",
        "tensor '\x00' size mismatch at index 0. expected \x1b, actual \x9b",
        "len(" * 200 + ")" * 200,
        "x.size()[0" + "]" * 300,
        "GLOBAL_STATE changed: ",
        "expected type of '' to be a tensor type, ' but found <class ''>",
        "___check_type_id(, 1)",
        "L['" * 2000,
        "lambda: 1 == 2",
        "\ud800 == 1",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_texts_that_mean_no_good(text: str) -> None:
    began = time.monotonic()
    found = reading(text, {text[:50]: text[:200]}, owner=text[:100], history=[text[:10_000]] * 20)
    assert time.monotonic() - began < 60  # a bound against a reader that goes wild, no measurement
    sound(found)


def sound(found: Reading) -> None:
    for value in (found.kind, found.subject, found.before or "", found.now or "", found.sentence, found.advice, found.why):
        assert value.isprintable() and len(value) < 2000
    assert found.kind and found.sentence


PIECES = st.sampled_from(
    (
        *(
            "tensor '",
            "x",
            "' size mismatch at index ",
            "0",
            ". expected ",
            "actual ",
            " == ",
            "len(",
            ")",
            "L['",
            "']",
            "not ",
        ),
        *("___stack", "___check_obj_id(", "dict.keys(", " is ", "None", "<=", "GLOBAL_STATE changed: ", "HINT: ", "(", "# "),
        *("  # ", "\n", ".size()[", "'", "[", "]"),
    )
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=25).map("".join), st.text(max_size=10))
def test_any_text(text: str, owner: str) -> None:
    sound(reading(text, {"x": text}, owner=owner, history=[text, text]))


def test_an_unknown_text_keeps_dynamos_words_and_hint() -> None:
    found = reading("0/0: ___check_metadata_7() != 3  # x  # f.py:1 in f (HINT: use another)\nUser stack trace:\n  File ..")
    assert (found.kind, found.sentence, found.advice) == ("unknown", "Dynamo says: ___check_metadata_7() != 3", "use another")
    assert reading("").sentence == "Dynamo told no reason"


def test_the_models_recompiles_are_read_in_the_light_of_earlier_ones() -> None:
    def recompile(entry: int) -> list[ev.Event]:
        text = f"tensor 'x' size mismatch at index 0. expected {entry}, actual {entry + 1}"
        at = 100 * entry
        start, end = compiled(f"0/{entry}", at, at + 10)
        return [start, ev.GuardsFailed(at * 1000, f"0/{entry}", ((f"0/{entry - 1}", text),)), end]

    model = model_of(compiled("0/0", 0, 10), recompile(1), recompile(2), recompile(3))
    told = readings(model)
    assert [one.expected for one in told] == [True, False, False]
    assert [reading_of(model, one) for one in model.recompiles] == told


@pytest.mark.parametrize(
    ("kind", "reads"),
    [
        ("Unsupported Tensor.item() call with capture_scalar_outputs=False", True),
        ("Dynamic shape operator", True),
        ("Data-dependent branching with non-constant __bool__", True),
        ("Tensor.tolist() with non-integer tensor", True),
        ("Failed to trace builtin operator", False),
        ("logging.Logger method not supported for non-export cases", False),
        ("Attempted to call function marked as skipped", False),
        ("Skip calling `torch.compiler.disable()`d function", False),
        ("Call to `torch._dynamo.graph_break()`", False),
        ("Unsupported context manager", False),
        ("Observed exception", False),
        ("Unsupported Tensor.backward() call", False),
        ("Something that no version writes", None),
        ("", None),
    ],
)
def test_which_breaks_read_a_value(kind: str, reads: bool | None) -> None:
    assert reads_host(kind) is reads


def test_writing_a_tensor_out_reads_it() -> None:
    told = "Dynamo does not know how to trace builtin operator `print` with argument types [{}] (has_kwargs False)"
    assert reads_host("Failed to trace builtin operator", told.format("'Tensor'")) is True
    assert reads_host("Failed to trace builtin operator", told.format("'str'")) is False


def test_advice_is_right_for_what_it_is_given_for() -> None:
    # a lambda made anew by the same code fits: Dynamo compares the code, not the object
    code = reading("0/0: ___check_obj_id(f.__code__, 139873166142688), type=<class 'code'>")
    assert "made in each call" not in code.why and "defined anew by the same code fits" in code.why
    partial = reading("0/0: ___check_obj_id(f, 139873166142688), type=<class 'functools.partial'>")
    assert "new object each time" in partial.why
    # the members of an enum exist once: nobody can "create it once"
    member = "0/0: ___check_obj_id(m, 139872577533840), type=<class '__main__.E'>"
    one = reading(member, {"m": "E.B"})
    assert one.sentence == "m is E.B, was another E" and one.expected and not one.advice
    many = reading(member, {"m": "E.D"}, history=[member, member, member])
    assert not many.expected and "many values" in many.advice
    # a loop over range(k) is unrolled: dynamic=True does not help there
    loop = reading("k == 4", history=["k == 3"])
    assert "the code needs the number itself" in loop.why and "few values" in loop.advice
    # only an argument can be passed as something else
    assert reading("o.k == 1").advice.endswith("make o.k a tensor: torch.tensor(..)")
    assert reading("G['G1'] == 1.5").advice.endswith("make G1 a tensor: torch.tensor(..)")
    assert reading("m == 1.5").advice.endswith("pass m as a tensor: torch.tensor(..)")
    assert "tensor" not in reading("r.stop == 3").advice
    # a gradient that is wanted is not to be detached
    assert reading("tensor 'x' requires_grad mismatch. expected requires_grad=0").advice.startswith("where no gradient")
    assert reading("___check_type_id(s._modules['d'], 1), type=<class 'a.B'>").advice == "keep s.d of one class"


def test_values_that_a_branch_of_the_code_leaves_out() -> None:
    left_out = reading("0/0: n != 0  # if n == 0: return x")
    assert left_out.sentence == "n is 0, the graph is for other values" and left_out.expected and left_out.kind == "value"
    between = reading("0/0: 2 <= k <= 5  # if k > 5", {"k": "9"})
    assert between.sentence == "k is 9, the graph is for 2 <= k <= 5" and between.expected
    assert reading("L['k'] < 7").sentence == "k < 7 no longer holds"
    assert not reading("k < 7", history=["k < 7"]).expected
    wrapper = reading("CodeGuardAccessor: Not a function on fn.__code__", owner="Linear")
    assert wrapper.kind == "type" and wrapper.sentence == "Linear is no plain function, was one"
