"""Operations of recurrent layers: every weight meets every sample and step once, 2 * steps * samples * weights.

The functions of a cell are those of its written-out form in the documentation of torch.nn.LSTM, GRU and RNN: for each hidden
unit of an LSTM four sums of the two products, four activations, f * c + i * g, tanh and o * tanh(c): 13. Each bias is one more
per gate. A backward layer has the multiply-adds of its forward one twice: for the gradients by inputs and by weights.
"""

from __future__ import annotations

from tuimon.roofline.counts.formulas import Call, Operations, Sizes, Unknown, contraction, elementwise, formula, numel, require

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
CELL = {"lstm": 13, "gru": 10, "rnn_tanh": 2, "rnn_relu": 1}
"""Functions of one hidden unit of a cell, biases apart: gru 2 sums, 2 sigmoids, n = tanh(.. + r * ..) 3, (h - n) * z + n 3."""
MODES = ("rnn_relu", "rnn_tanh", "lstm", "gru")
"""cuDNN's numbers of the kinds (aten/native/cudnn/RNN.cpp)."""


def _layers(call: Call, kind: str, first: int) -> Operations:
    """A stack of layers whose parameters are among the tensors from that place on: all matrices have two sizes, all biases one
    and the type of the matrices, states have three."""
    gates = GATES[kind]
    matrices = [(dtype, s) for dtype, s in call.inputs[first:] if len(s) == 2]
    require(bool(matrices) and len(matrices) % 2 == 0)
    dtype, (rows_of_first, _) = matrices[0]
    if any(s[0] != rows_of_first for _, s in matrices):
        raise Unknown("projections")
    require(rows_of_first % gates == 0)
    biased = sum(len(s) == 1 and d == dtype for d, s in call.inputs[first:]) >= len(matrices)
    rows = _rows(call.sizes(0))
    units = len(matrices) // 2 * rows_of_first // gates
    added = len(matrices) * rows_of_first if biased else 0
    multiply_adds = rows * sum(numel(s) for _, s in matrices)
    return Operations(contraction(multiply_adds), elementwise(rows * (units * CELL[kind] + added), call.dtype()))


def _rows(sizes: Sizes) -> int:
    """Samples times steps of an input, padded (3 sizes) or packed (2)."""
    require(len(sizes) in (2, 3))
    return numel(sizes[:-1])


@formula(
    "lstm gru rnn_tanh rnn_relu",
    "2 steps samples weights, and the cells' functions (documentation of torch.nn.LSTM, GRU, RNN)",
)
def _layer(call: Call) -> Operations:
    # a packed input has the sizes of its batches behind it, one number a step
    packed = len(call.sizes(0)) == 2
    require(not packed or len(call.sizes(1)) == 1)
    return _layers(call, call.operator, 2 if packed else 1)


@formula("_cudnn_rnn miopen_rnn", "as lstm, gru or rnn by its mode (aten/native/cudnn/RNN.cpp)")
def _cudnn_rnn(call: Call) -> Operations:
    mode = call.get("mode")
    if mode not in (0, 1, 2, 3) or call.get("proj_size", 0):
        raise Unknown("the kind of cell is not known")
    return _layers(call, MODES[mode], 1)


@formula(
    "mkldnn_rnn_layer",
    "2 steps samples (weights of the input and of the state), and 13 functions of an LSTM's unit (aten/native/mkldnn/RNN.cpp)",
)
def _mkldnn_layer(call: Call) -> Operations:
    x, of_input, of_state = call.sizes(0), call.sizes(1), call.sizes(2)
    _lstm_weights(call, x, of_input, of_state)
    biases = call.flag("has_biases", None)
    units = of_state[1] * CELL["lstm"] + (2 * of_input[0] if biases else 0)
    products = contraction(_rows(x) * (numel(of_input) + numel(of_state)))
    return Operations(products, elementwise(_rows(x) * units, call.dtype()))


def _lstm_weights(call: Call, x: Sizes, of_input: Sizes, of_state: Sizes) -> None:
    if call.get("mode", 2) != 2:
        raise Unknown("no LSTM")
    require(len(x) == 3 and len(of_input) == len(of_state) == 2 and of_input[0] == of_state[0] == 4 * of_state[1])
    require(x[2] == of_input[1])


@formula(
    "mkldnn_rnn_layer_backward",
    "twice the products of the forward layer; 22 functions of an LSTM's unit, and the sums of the gradient by the biases",
)
def _mkldnn_layer_backward(call: Call) -> Operations:
    x, of_input, of_state = call.sizes(0), call.sizes(1), call.sizes(2)
    _lstm_weights(call, x, of_input, of_state)
    rows = _rows(x)
    sums = of_input[0] * max(rows - 1, 0) if call.flag("has_biases", None) else 0
    return Operations(
        contraction(2 * rows * (numel(of_input) + numel(of_state))), elementwise(22 * rows * of_state[1] + sums, call.dtype())
    )


@formula(
    "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
    "2 samples weights, and the cell's functions (torch.nn.LSTMCell)",
)
def _cell(call: Call) -> Operations:
    kind = call.operator.removesuffix("_cell")
    first = 3 if kind == "lstm" else 2
    of_input, of_state = call.sizes(first), call.sizes(first + 1)
    x = call.sizes(0)
    require(len(of_input) == len(of_state) == 2 and x[-1] == of_input[1])
    require(of_input[0] == of_state[0] == GATES[kind] * of_state[1])
    rows = numel(x[:-1])
    biases = 2 if call.has(first + 3) else 0
    units = of_state[1] * CELL[kind] + biases * of_input[0]
    return Operations(contraction(rows * (numel(of_input) + numel(of_state))), elementwise(rows * units, call.dtype()))


@formula(
    "_thnn_fused_lstm_cell _thnn_fused_gru_cell",
    "the cell's functions; the products are made before (aten/native/cuda/RNN.cu)",
)
def _fused_cell(call: Call) -> Operations:
    kind = "lstm" if "lstm" in call.operator else "gru"
    state = call.sizes(2)
    require(len(state) == 2 and call.sizes(0) == call.sizes(1) == (state[0], GATES[kind] * state[1]))
    biases = 2 * GATES[kind] if call.has(4) else 0
    return Operations(0, elementwise(numel(state) * (CELL[kind] + biases), call.dtype()))
