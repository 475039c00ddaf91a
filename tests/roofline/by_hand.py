"""Operations counted the slow way: textbook loops over every element of tiny tensors, with a tally of what they do.

Nothing here knows a formula: each function walks through the definition of its operator in the documentation of torch and
tells the tally one multiply-add, or one arithmetic function, at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

Sizes = tuple[int, ...]


@dataclass
class Tally:
    multiply_adds: int = 0
    """Of contractions."""
    functions: int = 0

    def mac(self) -> None:
        self.multiply_adds += 1

    def do(self, n: int = 1) -> None:
        self.functions += n

    def total(self, numbers: int) -> None:
        """The sum of some numbers, one after the other: the first costs nothing."""
        for i in range(numbers):
            self.do(1 if i else 0)


Hand = Callable[[Tally], None]


def cells(*sizes: int) -> Iterator[Sizes]:
    return product(*(range(n) for n in sizes))


def mm(m: int, k: int, n: int, *, beta: float | None = None, alpha: float = 1, batch: int = 1, summed: bool = False) -> Hand:
    """Products of matrices; `beta` None: nothing is added; `summed`: over the batch, as addbmm does."""

    def hand(t: Tally) -> None:
        for _ in cells(batch, m, k, n):
            t.mac()
        for _ in cells(1 if summed else batch, m, n):
            if alpha != 1:
                t.do()
            if beta:
                t.do(2 if beta != 1 else 1)

    return hand


def einsum(equation: str, *operands: Sizes) -> Hand:
    """Two operands (letters only): labels of one alone are summed first, then all combinations of labels are walked."""

    def hand(t: Tally) -> None:
        terms, result = equation.split("->")
        left, right = terms.split(",")
        size = {x: n for term, sizes in zip((left, right), operands, strict=True) for x, n in zip(term, sizes, strict=True)}
        kept = []
        for mine, other in ((left, right), (right, left)):
            gone = [x for x in mine if x not in other + result]
            stay = [x for x in mine if x not in gone]
            for _ in cells(*(size[x] for x in stay)):
                if gone:
                    t.total(len(list(cells(*(size[x] for x in gone)))))
            kept.append(stay)
        every = sorted({*kept[0], *kept[1]})
        contracted = [x for x in every if x not in result]
        for _ in cells(*(size[x] for x in every)):
            if contracted:
                t.mac()
            else:
                t.do()

    return hand


def convolution(
    x: Sizes, w: Sizes, *, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = False
) -> Hand:
    """x is (samples, channels, positions..), w (channels out, channels in / groups, kernel..); padded zeros are numbers."""

    def hand(t: Tally) -> None:
        for position in cells(x[0], w[0], *out_sizes(x, w, stride, padding, dilation)):
            group = position[1] // (w[0] // groups)
            for tap in cells(x[1] // groups, *w[2:]):
                channel = group * (x[1] // groups) + tap[0]
                assert channel < x[1]
                t.mac()
            if bias:
                t.do()

    return hand


def out_sizes(x: Sizes, w: Sizes, stride: int, padding: int, dilation: int = 1) -> Sizes:
    """How often the kernel fits, by trying every start."""
    fits = []
    for n, k in zip(x[2:], w[2:], strict=True):
        last = [s for s in range(-padding, n + padding) if (s + padding) % stride == 0 and s + dilation * (k - 1) < n + padding]
        fits.append(len(last))
    return tuple(fits)


def convolution_backward(
    x: Sizes, w: Sizes, mask: Sequence[bool], *, stride: int = 1, padding: int = 0, groups: int = 1, transposed: bool = False
) -> Hand:
    """Every product of the forward pass gives one to the gradient of its input and one to that of its weight."""

    def hand(t: Tally) -> None:
        forward = Tally()
        positions = x[2:] if transposed else out_sizes(x, w, stride, padding)
        channels = w[0] if not transposed else x[1]
        for _ in cells(x[0], channels, *positions):
            for _tap in cells(w[1], *w[2:]):
                forward.mac()
        for wanted in mask[:2]:
            for _ in range(forward.multiply_adds if wanted else 0):
                t.mac()
        if mask[2]:
            out = out_sizes(x, w, stride, padding) if not transposed else transposed_sizes(x, w, stride, padding)
            for _ in range(w[1] * groups if transposed else w[0]):
                t.total(x[0] * len(list(cells(*out))))

    return hand


def transposed_sizes(x: Sizes, w: Sizes, stride: int, padding: int) -> Sizes:
    """The places from the first to the last that any input reaches, cropped by the padding."""
    sizes = []
    for n, k in zip(x[2:], w[2:], strict=True):
        reached = [i * stride + j for i in range(n) for j in range(k)]
        sizes.append(max(reached) - min(reached) + 1 - 2 * padding)
    return tuple(sizes)


def transposed(x: Sizes, w: Sizes, *, stride: int = 1, padding: int = 0, groups: int = 1, bias: bool = False) -> Hand:
    """Every input spreads over its kernel into the channels of its group."""

    def hand(t: Tally) -> None:
        for _ in cells(*x):
            for _tap in cells(w[1], *w[2:]):
                t.mac()
        if bias:
            for _ in cells(x[0], w[1] * groups, *transposed_sizes(x, w, stride, padding)):
                t.do()

    return hand


def attention(
    heads: int,
    queries: int,
    keys: int,
    width: int,
    value_width: int,
    *,
    visible: Callable[[int, int], bool] = lambda i, j: True,
    backward: bool = False,
    mask: bool = False,
    dropout: bool = False,
) -> Hand:
    """`visible(i, j)`: whether query i may see key j. One head after the other, one pair after the other."""

    def forward(t: Tally) -> None:
        for _ in range(heads):
            for i in range(queries):
                seen = [j for j in range(keys) if visible(i, j)]
                for _j in seen:
                    for _ in range(width):
                        t.mac()  # the score
                    t.do()  # scaled
                    t.do(mask)
                    t.do()  # less the maximum
                    t.do()  # exp
                t.total(len(seen))
                for _j in seen:
                    t.do()  # over the sum
                    t.do(2 * dropout)
                    for _ in range(value_width):
                        t.mac()

    def gradients(t: Tally) -> None:
        for _ in range(heads):
            for i in range(queries):
                seen = [j for j in range(keys) if visible(i, j)]
                if seen:
                    t.do(value_width)  # D: gradient times result ..
                    t.total(value_width)  # .. summed
                for _j in seen:
                    for _ in range(width):
                        t.mac()  # the score again
                    t.do(3)  # scale, less the logarithm of the sum, exp
                    t.do(mask)
                    for _ in range(value_width):
                        t.mac()  # gradient of the values
                    for _ in range(value_width):
                        t.mac()  # gradient of the probability
                    t.do()  # less D
                    t.do()  # times the probability
                    t.do()  # scaled
                    for _ in range(width):
                        t.mac()  # gradient of the query
                    for _ in range(width):
                        t.mac()  # gradient of the key

    return gradients if backward else forward


def lstm(
    steps: int, samples: int, inputs: int, hidden: int, *, layers: int = 1, directions: int = 1, biases: bool = True
) -> Hand:
    """The equations of torch.nn.LSTM, one gate after the other."""

    def hand(t: Tally) -> None:
        for layer in range(layers):
            width = inputs if layer == 0 else hidden * directions
            for _ in cells(directions, steps, samples, hidden):
                for _gate in "ifgo":
                    for _ in range(width + hidden):
                        t.mac()
                    t.do(2 * biases)
                    t.do()  # the two products are added
                    t.do()  # sigmoid or tanh
                t.do(3)  # c = f * c + i * g
                t.do(2)  # h = o * tanh(c)

    return hand


def gru(steps: int, samples: int, inputs: int, hidden: int) -> Hand:
    """The equations of torch.nn.GRU."""

    def hand(t: Tally) -> None:
        for _ in cells(steps, samples, hidden):
            for gate in "rzn":
                for _ in range(inputs + hidden):
                    t.mac()
                t.do(2)  # biases
                if gate == "n":
                    t.do(1)  # r * (..)
                t.do(2)  # added, sigmoid or tanh
            t.do(3)  # h = (h - n) * z + n

    return hand


def elements(*sizes: int, each: int = 1) -> Hand:
    """A function of every element."""

    def hand(t: Tally) -> None:
        for _ in cells(*sizes):
            t.do(each)

    return hand


def sums(rows: int, width: int, *, then: int = 0) -> Hand:
    """Sums of rows, and some functions of every sum."""

    def hand(t: Tally) -> None:
        for _ in range(rows):
            t.total(width)
            t.do(then)

    return hand


def softmax(rows: int, width: int, *, log: bool = False) -> Hand:
    def hand(t: Tally) -> None:
        for _ in range(rows):
            for _ in range(width):
                t.do()  # less the maximum
                t.do()  # exp
            t.total(width)
            t.do(log)
            for _ in range(width):
                t.do()  # divided, or less the logarithm

    return hand


def variance(rows: int, width: int) -> Hand:
    def hand(t: Tally) -> None:
        for _ in range(rows):
            t.total(width)
            t.do()  # the mean
            for _ in range(width):
                t.do(2)  # difference, square
            t.total(width)
            t.do()

    return hand


def layer_norm(rows: int, width: int, *, parameters: int = 2) -> Hand:
    def hand(t: Tally) -> None:
        variance(rows, width)(t)
        for _ in range(rows):
            t.do(2)  # + eps, 1 / root
            for _ in range(width):
                t.do(2)  # less the mean, times that
                t.do(parameters)

    return hand


def rms_norm(rows: int, width: int) -> Hand:
    def hand(t: Tally) -> None:
        for _ in range(rows):
            for _ in range(width):
                t.do()  # square
            t.total(width)
            t.do(3)  # mean, + eps, 1 / root
            for _ in range(width):
                t.do(2)  # times that, times the weight

    return hand


def layer_norm_backward(rows: int, width: int) -> Hand:
    def hand(t: Tally) -> None:
        for _ in range(rows):
            t.do()  # rstd / width
            for _ in range(width):
                t.do(2)  # x_hat
                t.do()  # gradient * weight
                t.do()  # .. * width
                t.do()  # .. * x_hat
            t.total(width)
            t.total(width)
            for _ in range(width):
                t.do()  # x_hat * sum
                t.do(2)  # two differences
                t.do()  # scaled
                t.do()  # gradient * x_hat, for the weight
        for _ in range(width):
            t.total(rows)  # by weight
            t.total(rows)  # by bias

    return hand


def rms_norm_backward(rows: int, width: int) -> Hand:
    def hand(t: Tally) -> None:
        for _ in range(rows):
            for _ in range(width):
                t.do()  # gradient * weight
                t.do()  # x_hat
                t.do()  # their product
            t.total(width)
            for _ in range(width):
                t.do(2)  # x_hat / width * sum
                t.do(2)  # difference, * rstd
                t.do()  # gradient * x_hat, for the weight
        for _ in range(width):
            t.total(rows)

    return hand


def group_norm_backward(samples: int, channels: int, positions: int, groups: int) -> Hand:
    def hand(t: Tally) -> None:
        for _ in cells(samples, channels):
            for _ in range(positions):
                t.do()  # gradient * x
            t.total(positions)  # ds
            t.total(positions)  # db
            t.do(2)  # both * weight
            t.do()  # rstd * weight
        for _ in cells(samples, groups):
            t.total(channels // groups)
            t.total(channels // groups)
            t.do(6)  # (db * mean - ds) * rstd * rstd * rstd * s
            t.do(4)  # -c2 * mean - db * rstd * s
        for _ in cells(samples, channels, positions):
            t.do(4)  # gradient * c1 + x * c2 + c3
        for _ in range(channels):
            for _ in range(samples):
                t.do(3)  # (ds - db * mean) * rstd
            t.total(samples)
            t.total(samples)

    return hand


def both(*hands: Hand) -> Hand:
    def hand(t: Tally) -> None:
        for one in hands:
            one(t)

    return hand


def tally(hand: Hand) -> tuple[int, int]:
    """(matrix, vector) operations."""
    t = Tally()
    hand(t)
    return 2 * t.multiply_adds, t.functions
