"""The period of an order of calls: as counting one call after the other tells it, and at a cost that does not grow."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tuimon.model.steps.repeating import ALIKE, BETTER, LONGEST_PERIOD, LOOKED_AT, agreement, period_of


def plainly(entries: list[str]) -> int:
    """The rule, word for word."""
    entries = entries[-LOOKED_AT:]
    fits = {}
    for period in range(1, min(LONGEST_PERIOD, (len(entries) - 1) // 2) + 1):
        same = sum(one == other for one, other in zip(entries[period:], entries, strict=False))
        fits[period] = same / (len(entries) - period)
        assert agreement(entries, period) == fits[period]
    best = max(fits.values(), default=0)
    return next((p for p, fit in fits.items() if fit >= ALIKE and fit >= best - BETTER), 0)


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=90), st.sampled_from((0, 1, 2, 3, 16, 40, 129, 512, 700)),
    st.sampled_from((0, 0, 0.05, 0.2, 0.3)), st.randoms(use_true_random=False),
)  # fmt: skip
def test_the_period_is_that_of_the_rule(pattern: list[int], size: int, jitter: float, random: object) -> None:
    chance = random.random  # type: ignore[attr-defined]
    entries = [f"{pattern[at % len(pattern)] if chance() >= jitter else int(chance() * 300)}/0" for at in range(size)]
    assert period_of(entries) == plainly(entries)


def test_calls_that_are_all_others_have_none() -> None:
    assert period_of([f"{at}/0" for at in range(2000)]) == 0
    assert period_of([f"{at % 65}/0" for at in range(2000)]) == 0
    assert period_of([f"{at % LONGEST_PERIOD}/0" for at in range(2000)]) == LONGEST_PERIOD
