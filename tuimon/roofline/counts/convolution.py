"""Operations of convolutions, forward and backward.

A weight meets every position of the result once (of the input, where the convolution is transposed) in every sample:
2 * samples * positions * weights. Grouping is in the weight's own sizes. Zeros of the padding count as numbers, as they do in
torch.utils.flop_counter.conv_flop_count and in the makers' figures.

The gradient by the input and that by the weight are convolutions with the same multiply-adds as the forward one: each pairs
every weight and position once more.
"""

from __future__ import annotations

from tuimon.roofline.counts.formulas import Call, Operations, Sizes, Unknown, contraction, elementwise, formula, numel, require
from tuimon.roofline.counts.matrix import post_op


def _split(x: Sizes, weight: Sizes) -> tuple[int, Sizes]:
    """(samples, positions) of an input; one dimension less than the weight has is a single sample."""
    dims = len(weight) - 2
    require(1 <= dims <= 3 and len(x) in (dims + 1, dims + 2))
    return (x[0] if len(x) == dims + 2 else 1), x[-dims:]


def _result(call: Call, x: Sizes, weight: Sizes, transposed: bool) -> tuple[int, Sizes]:
    """(channels, positions) of the result: as told, else by the formula in the documentation of torch.nn.ConvNd."""
    dims = len(weight) - 2
    told = call.out()
    if told is not None:
        require(len(told) == len(x))
        return told[-dims - 1], told[-dims:]
    if call.arguments.get("known") is False:
        raise Unknown("strides are not known")
    channels = weight[1] * int(call.number("groups", 1)) if transposed else weight[0]
    stride, dilation = call.integers("stride", dims, 1), call.integers("dilation", dims, 1)
    kernel = tuple(d * (k - 1) + 1 for d, k in zip(dilation, weight[2:], strict=True))
    padding = call.get("padding", 0)
    if padding == "same":
        return channels, x[-dims:]
    around = (0,) * dims if padding == "valid" else call.integers("padding", dims, 0)
    require(all(s > 0 for s in stride))
    if transposed:
        more = call.integers("output_padding", dims, 0)
        sizes = tuple(
            (n - 1) * s - 2 * p + k + m for n, s, p, k, m in zip(x[-dims:], stride, around, kernel, more, strict=True)
        )
    else:
        sizes = tuple((n + 2 * p - k) // s + 1 for n, s, p, k in zip(x[-dims:], stride, around, kernel, strict=True))
    require(all(n >= 0 for n in sizes))
    return channels, sizes


def _forward(call: Call, x: Sizes, weight: Sizes, *, transposed: bool, after: int) -> Operations:
    """`after`: functions of every result (a bias, an activation)."""
    samples, positions = _split(x, weight)
    if transposed and not after:
        return Operations(contraction(samples * numel(positions) * numel(weight), call.dtype()))
    channels, result = _result(call, x, weight, transposed)
    multiply_adds = samples * numel(positions if transposed else result) * numel(weight)
    functions = after * samples * channels * numel(result)
    return Operations(contraction(multiply_adds, call.dtype()), elementwise(functions, call.dtype()))


@formula("convolution _convolution convolution_overrideable", "2 N positions weights, and one for a bias (torch.nn.ConvNd)")
def _convolution(call: Call) -> Operations:
    return _forward(call, call.sizes(0), call.sizes(1), transposed=call.flag("transposed", None), after=int(call.has(2)))


@formula(
    "conv1d conv2d conv3d cudnn_convolution miopen_convolution miopen_depthwise_convolution mkldnn_convolution "
    "_slow_conv2d_forward "
    "slow_conv3d slow_conv3d_forward thnn_conv2d _conv_depthwise2d conv_depthwise3d slow_conv_dilated2d "
    "slow_conv_dilated3d",
    "as convolution (torch.nn.functional.convNd, aten/native/native_functions.yaml)",
)
def _conv(call: Call) -> Operations:
    return _forward(call, call.sizes(0), call.sizes(1), transposed=False, after=int(call.has(2)))


@formula(
    "conv_transpose1d conv_transpose2d conv_transpose3d cudnn_convolution_transpose miopen_convolution_transpose "
    "slow_conv_transpose2d slow_conv_transpose3d",
    "2 N positions of the input weights, and one for a bias (torch.nn.ConvTransposeNd)",
)
def _conv_transpose(call: Call) -> Operations:
    return _forward(call, call.sizes(0), call.sizes(1), transposed=True, after=int(call.has(2)))


@formula("cudnn_convolution_relu miopen_convolution_relu", "as convolution; relu counts none")
def _conv_relu(call: Call) -> Operations:
    return _conv(call)


@formula("cudnn_convolution_add_relu miopen_convolution_add_relu", "as convolution, and alpha * z + .. for every result")
def _conv_add_relu(call: Call) -> Operations:
    alpha = call.get("alpha", 1)
    after = 1 + int(call.has(3)) + int(alpha not in (None, 1))
    return _forward(call, call.sizes(0), call.sizes(1), transposed=False, after=after)


@formula(
    "mkldnn._convolution_pointwise",
    "as convolution, and the fused function's own cost (torch/_inductor/mkldnn_ir.py)",
)
def _convolution_pointwise(call: Call) -> Operations:
    x = call.sizes(0)
    # with another tensor that is added, its place is before the weight
    binary = call.has(2) and len(call.sizes(2)) > 1
    after = (1 if binary else post_op(call)) + call.has(2 + binary)
    return _forward(call, x, call.sizes(1 + binary), transposed=False, after=after)


@formula("mkldnn._convolution_transpose_pointwise", "as a transposed convolution, and the fused function's own cost")
def _convolution_transpose_pointwise(call: Call) -> Operations:
    return _forward(call, call.sizes(0), call.sizes(1), transposed=True, after=int(call.has(2)) + post_op(call))


@formula("conv_tbc", "2 positions samples weights, and one for the bias (torch.nn.functional.conv_tbc)")
def _conv_tbc(call: Call) -> Operations:
    x, weight = call.sizes(0), call.sizes(1)
    require(len(x) == len(weight) == 3 and x[2] == weight[1])
    positions = x[0] + 2 * int(call.number("pad", 0)) - weight[0] + 1
    require(positions >= 0)
    bias = positions * x[1] * weight[2]
    return Operations(contraction(x[1] * positions * numel(weight), call.dtype()), elementwise(bias, call.dtype()))


def _mask(call: Call) -> tuple[bool, bool, bool]:
    value = call.get("output_mask")
    if not isinstance(value, (list, tuple)) or not 2 <= len(value) <= 3:
        raise Unknown("output_mask is not known")
    return bool(value[0]), bool(value[1]), len(value) == 3 and bool(value[2])


def _backward(
    call: Call, grad: Sizes, x: Sizes, weight: Sizes, *, transposed: bool, mask: tuple[bool, bool, bool]
) -> Operations:
    samples, positions = _split(x if transposed else grad, weight)
    each = samples * numel(positions) * numel(weight)
    dims = len(weight) - 2
    sums = numel(grad) - grad[-dims - 1] if mask[2] else 0
    return Operations(contraction(each * (mask[0] + mask[1]), call.dtype()), elementwise(max(sums, 0), call.dtype()))


@formula(
    "convolution_backward convolution_backward_overrideable",
    "2 N positions weights for each of the gradients by input and by weight, and a sum for that by the bias, as "
    "output_mask says "
    "(derivation in torch/utils/flop_counter.py)",
)
def _convolution_backward(call: Call) -> Operations:
    transposed = call.flag("transposed", None)
    return _backward(call, call.sizes(0), call.sizes(1), call.sizes(2), transposed=transposed, mask=_mask(call))


@formula(
    "cudnn_convolution_backward miopen_convolution_backward",
    "as convolution_backward; the input comes first (torch 1.x)",
)
def _cudnn_backward(call: Call) -> Operations:
    return _backward(call, call.sizes(1), call.sizes(0), call.sizes(2), transposed=False, mask=_mask(call))


@formula("cudnn_convolution_backward_input miopen_convolution_backward_input", "2 N positions weights (torch 1.x)")
def _cudnn_backward_input(call: Call) -> Operations:
    return _backward(call, call.sizes(0), (), call.sizes(1), transposed=False, mask=(True, False, False))


@formula(
    "cudnn_convolution_backward_weight miopen_convolution_backward_weight",
    "2 N positions weights; the weight's sizes are an argument (torch 1.x)",
)
def _cudnn_backward_weight(call: Call) -> Operations:
    weight = call.integers("weight_size", len(call.sizes(0)))
    return _backward(call, call.sizes(0), (), weight, transposed=False, mask=(False, True, False))
