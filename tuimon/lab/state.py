"""The lab's state machine: set a question, predict its ceiling, trace the roof up to it.

Everything in here is hypothetical: no number of a running job is changed or claimed by it. Functions take a state and give the
next one; none raises for what a person typed, `message` says what is wrong and nothing is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tuimon.lab.numbers import BANDWIDTH, CEILING, INTENSITY, PEAK, NumberError, Quantity, parse, write
from tuimon.roofline.ceilings import Ceiling

DEFAULT_PEAK = 1000e9
"""FLOP/s. With 80 GB/s the ridge is at 12.5 FLOP/byte: no machine, round numbers to reckon with."""

RIGHT_WITHIN = 0.01
"""A prediction is right if it is off by no more than this part of the ceiling."""

MOST_STATIONS = 24

SETTINGS = ((8.0, 80e9), (16.0, 80e9))
"""The two questions that a key each sets, (FLOP/byte, bytes/s): left of the ridge of the default peak, and right of it."""

ONLY_TRACES = "playback only traces the selected roof"
"""And nothing runs or is measured: this stands beside every station."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a hypothesis started from: the intensity of something in the running job, and the selected ceiling."""

    key: str
    """Of the point it was taken from: "region 0:0/0:forward"."""
    name: str
    intensity: float
    bandwidth: float
    peak: float
    sign: str = "="
    """What the intensity is: "=" exact, "<=" an upper bound, ">=" a lower one, "~" either way."""
    words: str = ""
    """How intensity and ceiling were had: "compulsory bytes, DRAM, calibrated"."""

    @property
    def ceiling(self) -> float:
        """The ceiling at what was taken, in FLOP/s."""
        return min(self.peak, self.intensity * self.bandwidth)


@dataclass(frozen=True, slots=True)
class Lab:
    """A question (I, B and the peak), what was predicted, and how far the trace has come."""

    intensity: float | None = None
    """FLOP/byte; None: not set."""
    bandwidth: float | None = None
    """Bytes/s; None: not set."""
    peak: float = DEFAULT_PEAK
    """FLOP/s."""
    prediction: float | None = None
    """FLOP/s."""
    revealed: bool = False
    score: tuple[int, int] = (0, 0)
    """Right predictions, and how many were scored."""
    at: int | None = None
    """How far the trace has come: a place in `track`; None: it has not begun."""
    playing: bool = False
    taken: Taken | None = None
    message: str = ""

    @property
    def set(self) -> bool:
        """Whether there is a question."""
        return self.intensity is not None and self.bandwidth is not None


def start(taken: Taken | None = None) -> Lab:
    """An empty lab, or one with the numbers of something live as its hypothesis."""
    return take(Lab(), taken) if taken is not None else Lab()


def take(lab: Lab, taken: Taken) -> Lab:
    """The numbers of something live as the question. The score stays."""
    for value, quantity in ((taken.intensity, INTENSITY), (taken.bandwidth, BANDWIDTH), (taken.peak, PEAK)):
        if not (math.isfinite(value) and quantity.least <= value <= quantity.most):
            return replace(lab, message=f"its {quantity.name}, {value:g}, lies outside {quantity.range_words}", playing=False)
    message = f"taken as a hypothesis from {taken.name}; what you change from here on is not measured"
    return Lab(taken.intensity, taken.bandwidth, taken.peak, score=lab.score, taken=taken, message=message)


def reset(lab: Lab) -> Lab:
    """No I, no B, the default peak, no prediction, no trace. The score stays; what was taken is let go."""
    return Lab(score=lab.score, message="reset: set I (i) and B (b)")


def setting(lab: Lab, number: int) -> Lab:
    """The first or the second of the two questions, with the default peak. The score stays."""
    intensity, bandwidth = SETTINGS[number - 1]
    said = f"I {write(intensity, INTENSITY)}, B {write(bandwidth, BANDWIDTH)}, peak {write(DEFAULT_PEAK, PEAK)}"
    return Lab(intensity, bandwidth, score=lab.score, message=f"{said}; what is the ceiling?")


def told(lab: Lab, message: str) -> Lab:
    """The same, with a word to the person."""
    return replace(lab, message=message)


# ---------------------------------------------------------------------------------------------------------- the question


def set_intensity(lab: Lab, text: str) -> Lab:
    """Another I, in FLOP/byte."""
    return _set(lab, text, INTENSITY, lab.intensity, lambda value: replace(_asked_anew(lab), intensity=value))


def set_bandwidth(lab: Lab, text: str) -> Lab:
    """Another B, in GB/s unless the text says otherwise."""
    return _set(lab, text, BANDWIDTH, lab.bandwidth, lambda value: replace(_asked_anew(lab), bandwidth=value))


def set_peak(lab: Lab, text: str) -> Lab:
    """Another peak, in GFLOP/s unless the text says otherwise."""
    return _set(lab, text, PEAK, lab.peak, lambda value: replace(_asked_anew(lab), peak=value))


def _set(lab: Lab, text: str, quantity: Quantity, old: float | None, put: Callable[[float], Lab]) -> Lab:
    try:
        value = parse(text, quantity)
    except NumberError as error:
        stays = f"it stays {write(old, quantity, 6)}" if old is not None else "it is still not set"
        return replace(lab, message=f"{error}; {stays}", playing=False)
    lab = put(value)
    said = f"{quantity.name} {write(value, quantity, 6)}"
    if lab.intensity is None:
        return replace(lab, message=f"{said}; now set I (i)")
    if lab.bandwidth is None:
        return replace(lab, message=f"{said}; now set B (b)")
    return replace(lab, message=f"{said}; what is the ceiling? p predicts it, then space plays or s steps")


def _asked_anew(lab: Lab) -> Lab:
    """Another question: what was predicted and traced was for the one before."""
    return replace(lab, prediction=None, revealed=False, at=None, playing=False)


def ceiling(lab: Lab) -> float | None:
    """The roof at I, min(peak, I x B), in FLOP/s; None while I or B is not set."""
    return roof(lab, lab.intensity) if lab.intensity is not None else None


def roof(lab: Lab, intensity: float) -> float | None:
    """The roof at any intensity."""
    return min(lab.peak, intensity * lab.bandwidth) if lab.bandwidth is not None else None


def ridge(lab: Lab) -> float | None:
    """The intensity at which I x B is the peak, in FLOP/byte; None while B is not set."""
    return lab.peak / lab.bandwidth if lab.bandwidth is not None else None


def limit(lab: Lab, intensity: float) -> str:
    """Which of the two terms is the roof at an intensity, in words; "" while B is not set."""
    if lab.bandwidth is None:
        return ""
    slope = intensity * lab.bandwidth
    if math.isclose(slope, lab.peak, rel_tol=1e-12):
        return "the ridge: both limit"
    return "bandwidth is the limit" if slope < lab.peak else "the peak is the limit"


def as_ceiling(lab: Lab) -> Ceiling | None:
    """The selected roof, as charts take it; None while B is not set."""
    if lab.bandwidth is None:
        return None
    return Ceiling("lab", lab.peak, lab.bandwidth, "hypothetical", "declared", "typed in the lab")


# ---------------------------------------------------------------------------------------------------------- predictions


def predict(lab: Lab, text: str) -> Lab:
    """A prediction of the ceiling, in GFLOP/s unless the text says otherwise. It can be changed until it is revealed."""
    if not lab.set:
        return replace(lab, message="there is nothing to predict yet: set I (i) and B (b)")
    if lab.revealed:
        return replace(lab, message="this ceiling is revealed already: set another I, B or peak, or reset (r)")
    try:
        value = parse(text, CEILING)
    except NumberError as error:
        stays = f"; it stays {write(lab.prediction, CEILING)}" if lab.prediction is not None else ""
        return replace(lab, message=f"{error}{stays}", playing=False)
    return replace(lab, prediction=value, message=f"predicted {write(value, CEILING)}; space plays, s steps, v reveals")


def reveal(lab: Lab) -> Lab:
    """Show the ceiling, and score the prediction if there is one: once for each question."""
    value = ceiling(lab)
    if value is None:
        return replace(lab, message="there is no ceiling yet: set I (i) and B (b)", playing=False)
    if lab.revealed:
        return replace(lab, message=f"the ceiling is {write(value, PEAK)}")
    shown = replace(lab, revealed=True, playing=False, at=len(track(lab)) - 1)
    if lab.prediction is None:
        return replace(shown, message=f"the ceiling is {write(value, PEAK)}; nothing was predicted, nothing is scored")
    right = is_right(lab.prediction, value)
    scored = replace(shown, score=(lab.score[0] + right, lab.score[1] + 1))
    return replace(scored, message=_judged(scored, lab.prediction, value, right))


def is_right(prediction: float, value: float) -> bool:
    """Whether a prediction is within one percent of the ceiling."""
    return abs(prediction - value) <= RIGHT_WITHIN * value * (1 + 1e-12)


def _judged(lab: Lab, prediction: float, value: float, right: bool) -> str:
    if right:
        return f"RIGHT: the ceiling is {write(value, PEAK)}; predicted {write(prediction, CEILING)}"
    said = f"WRONG: the ceiling is {write(value, PEAK)}, not {write(prediction, CEILING)}"
    assert lab.intensity is not None and lab.bandwidth is not None
    slope = lab.intensity * lab.bandwidth
    if slope > lab.peak and is_right(prediction, slope):
        return f"{said}: that is I x B, and the peak cuts it off"
    if slope < lab.peak and is_right(prediction, lab.peak):
        return f"{said}: that is the peak, and at this I the bandwidth allows less"
    return f"{said}; {limit(lab, lab.intensity)}"


# ---------------------------------------------------------------------------------------------------------- the trace


def track(lab: Lab) -> tuple[tuple[float, float], ...]:
    """The stations of the trace, (I, roof at I), left to right; () while I or B is not set.

    I is halved down to a sixteenth of the ridge or of itself, whichever is less, so that each step doubles it; the ridge is
    among them where the trace passes it. The last one is at I itself, to the bit.
    """
    middle = ridge(lab)
    if lab.intensity is None or middle is None:
        return ()
    least = min(middle, lab.intensity) / 16
    halvings = max(1, math.ceil(math.log2(lab.intensity / least) - 1e-9))
    stride = math.ceil(halvings / MOST_STATIONS)
    intensities = [math.ldexp(lab.intensity, -stride * at) for at in range(math.ceil(halvings / stride) + 1)]
    if middle < lab.intensity:
        # one that all but falls on the ridge would look like the same station twice
        intensities = [one for one in intensities if one == lab.intensity or not math.isclose(one, middle, rel_tol=0.01)]
        intensities.append(middle)
    stations = []
    for one in sorted(set(intensities)):
        # at the ridge the division's last bit must not make the roof less than the peak that it reaches there
        value = lab.peak if one == middle else roof(lab, one)
        assert value is not None
        stations.append((one, value))
    return tuple(stations)


def step(lab: Lab) -> Lab:
    """One station further along the roof; the last is at I, where the ceiling is revealed. After it, from the beginning."""
    stations = track(lab)
    if not stations:
        return replace(lab, message="there is no roof to trace yet: set I (i) and B (b)", playing=False)
    at = 0 if lab.at is None or lab.at >= len(stations) - 1 else lab.at + 1
    if at == len(stations) - 1:
        return reveal(replace(lab, at=at)) if not lab.revealed else _at_the_end(replace(lab, at=at))
    return replace(lab, at=at, message="")


def _at_the_end(lab: Lab) -> Lab:
    value = ceiling(lab)
    assert value is not None
    return replace(lab, playing=False, message=f"at I: the ceiling is {write(value, PEAK)}")


def play(lab: Lab) -> Lab:
    """Begin to trace, go on, or stop in between. Time passes by `tick`."""
    if lab.playing:
        return replace(lab, playing=False, message="stopped; space goes on, s steps")
    stepped = step(lab)
    return replace(stepped, playing=bool(track(lab)) and stepped.at != len(track(lab)) - 1)


def tick(lab: Lab) -> Lab:
    """The next station, if it is playing."""
    return step(lab) if lab.playing else lab


def station(lab: Lab) -> tuple[float, float] | None:
    """Where the trace is: (I, roof)."""
    stations = track(lab)
    return stations[min(lab.at, len(stations) - 1)] if stations and lab.at is not None else None


def formula(lab: Lab, intensity: float | None = None, known: bool = True) -> str:
    """The roof at an intensity (None: at I) with its numbers: `min(1,000 GFLOP/s, 8 FLOP/byte x 80 GB/s) = 640 GFLOP/s`.

    What is not set is left as a letter; `known` False leaves the result open.
    """
    at = lab.intensity if intensity is None else intensity
    first = write(at, INTENSITY, 6) if at is not None else "I"
    second = write(lab.bandwidth, BANDWIDTH, 6) if lab.bandwidth is not None else "B"
    value = roof(lab, at) if at is not None else None
    if value is not None and at == ridge(lab):
        value = lab.peak
    result = write(value, PEAK) if known and value is not None else "?"
    return f"min({write(lab.peak, PEAK, 6)}, {first} x {second}) = {result}"
