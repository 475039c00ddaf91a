"""Operations of layer, RMS, group and batch norms, forward and backward, written out as torch/_decomp/decompositions.py does.

n elements in r rows (or c channels). Forward: variance and mean 4 n, + eps and rsqrt 2 r, (x - mean) * rstd 2 n, and n each for
weight and bias. The source of each is its decomposition there, by the operator's name.
"""

from __future__ import annotations

from tuimon.roofline.counts.formulas import Call, Operations, Sizes, Unknown, elementwise, formula, numel, require


def _normalised(call: Call, width: int, parameters: int) -> Operations:
    n = numel(call.sizes(0))
    require(width > 0 and n % width == 0)
    return Operations(0, elementwise((6 + parameters) * n + 2 * (n // width), call.dtype()))


def _width(call: Call, weight: int) -> int:
    """Elements of one row: of the weight, of the argument, or the rows that a result tells."""
    if call.has(weight):
        return numel(call.sizes(weight))
    shape = call.get("normalized_shape")
    if isinstance(shape, (list, tuple)) and all(isinstance(n, int) and n > 0 for n in shape):
        return numel(tuple(shape))
    told = call.out(1)
    if told is not None and numel(told):
        return numel(call.sizes(0)) // numel(told)
    raise Unknown("normalized_shape is not known")


@formula("native_layer_norm layer_norm", "6 n + 2 rows, and n each for weight and bias (torch.nn.LayerNorm)")
def _layer_norm(call: Call) -> Operations:
    return _normalised(call, _width(call, 1), min(len(call.inputs) - 1, 2))


def _mask(call: Call, n: int) -> tuple[bool, ...]:
    value = call.get("output_mask", [True] * n)
    if not isinstance(value, (list, tuple)) or len(value) != n:
        raise Unknown("output_mask is not known")
    return tuple(bool(x) for x in value)


@formula(
    "native_layer_norm_backward",
    "x_hat 2 n; by input 8 n - rows, and n for the weight; by weight 2 n - width; by bias n - width (torch/_decomp)",
)
def _layer_norm_backward(call: Call) -> Operations:
    n, rows = numel(call.sizes(1)), numel(call.sizes(2))
    require(call.sizes(0) == call.sizes(1) and rows > 0 and n % rows == 0)
    weighted = call.has(4)
    mask = _mask(call, 3)
    by_input = (8 + weighted) * n - rows if mask[0] else 0
    by_weight = 2 * n - n // rows if mask[1] and weighted else 0
    by_bias = n - n // rows if mask[2] and call.has(5) else 0
    x_hat = 2 * n if by_input or by_weight else 0
    return Operations(0, elementwise(x_hat + by_input + by_weight + by_bias, call.dtype()))


def _rms(call: Call, weight: int, more: int = 0) -> Operations:
    n = numel(call.sizes(0))
    width = _width(call, weight)
    require(width > 0 and n % width == 0)
    return Operations(0, elementwise((3 + call.has(weight) + more) * n + 2 * (n // width), call.dtype()))


@formula(
    "rms_norm _fused_rms_norm fb.rms_norm aiter.rms_norm vllm.rocm_aiter_rms_norm",
    "3 n + 2 rows, and n for the weight: squares, mean, eps, rsqrt, product (torch.nn.RMSNorm)",
)
def _rms_norm(call: Call) -> Operations:
    return _rms(call, 1)


@formula("vllm.rocm_aiter_rmsnorm2d_fwd_with_add", "as rms_norm, and n for the residual that is added first")
def _rms_norm_add(call: Call) -> Operations:
    return _rms(call, 2, 1)


@formula("aiter.rmsnorm aiter.rmsnorm2d_fwd", "as rms_norm; the result stands first")
def _aiter_rms(call: Call) -> Operations:
    return _rms(call, 2)


@formula(
    "aiter.add_rmsnorm aiter.rmsnorm2d_fwd_with_add aiter.rmsnorm2d_fwd_with_add_ck",
    "as rms_norm, and n for the residual that is added first",
)
def _aiter_rms_add(call: Call) -> Operations:
    return _rms(call, 4, 1)


@formula(
    "_fused_rms_norm_backward",
    "x_hat n; by input 6 n - rows, and n for the weight: product with x_hat, its sum, x_hat / width times that, "
    "difference, rstd; by weight 2 n - width (torch/_decomp/decompositions.py)",
)
def _rms_norm_backward(call: Call) -> Operations:
    n, rows = numel(call.sizes(1)), numel(call.sizes(2))
    require(call.sizes(0) == call.sizes(1) and rows > 0 and n % rows == 0)
    weighted, mask = call.has(3), _mask(call, 2)
    # grad_x_hat = grad * weight; sum(x_hat * grad_x_hat); (grad_x_hat - x_hat / width * sum) * rstd
    by_input = (6 + weighted) * n - rows if mask[0] else 0
    by_weight = 2 * n - n // rows if mask[1] and weighted else 0
    return Operations(0, elementwise(n * bool(by_input or by_weight) + by_input + by_weight, call.dtype()))


@formula("native_group_norm group_norm", "6 n + 2 samples groups, and n each for weight and bias (torch.nn.GroupNorm)")
def _group_norm(call: Call) -> Operations:
    x = call.sizes(0)
    require(len(x) >= 2)
    groups = int(call.number("num_groups" if call.operator == "group_norm" else "group"))
    require(groups > 0 and x[0] > 0)
    return _normalised(call, numel(x) // (x[0] * groups), min(len(call.inputs) - 1, 2))


@formula(
    "native_group_norm_backward",
    "products and sums by channel 3 n - 2 N C; by input 4 n, and 10 N G + N C for the factors, 2 N C - 2 N G "
    "more sums and 2 N C for the "
    "weight; by weight 4 N C - C; by bias N C - C (torch/_decomp/decompositions.py)",
)
def _group_norm_backward(call: Call) -> Operations:
    x = call.sizes(1)
    require(call.sizes(0) == x and len(x) >= 2)
    n, each, weighted, mask = numel(x), x[0] * x[1], call.has(4), _mask(call, 3)
    groups = numel(call.sizes(2))
    require(groups > 0 and each % groups == 0)
    by_input = 4 * n + 10 * groups + each + 2 * (each - groups) + 2 * each * weighted if mask[0] else 0
    by_weight = 4 * each - x[1] if mask[1] else 0
    by_bias = each - x[1] if mask[2] else 0
    return Operations(0, elementwise(3 * n - 2 * each + by_input + by_weight + by_bias, call.dtype()))


def _channels(x: Sizes) -> int:
    require(len(x) >= 2)
    return x[1]


@formula(
    "native_batch_norm batch_norm cudnn_batch_norm miopen_batch_norm _native_batch_norm_legit "
    "_native_batch_norm_legit_functional "
    "_batch_norm_impl_index",
    "in training 6 n + 2 channels, and 7 channels for the running mean and variance; else 2 n + 2 channels; n each "
    "for weight and bias "
    "(torch.nn.BatchNormNd)",
)
def _batch_norm(call: Call) -> Operations:
    return _batch(call, call.flag("training", None))


@formula("_native_batch_norm_legit_no_training _batch_norm_no_update", "2 n + 2 channels, and n each for weight and bias")
def _batch_norm_evaluated(call: Call) -> Operations:
    return _batch(call, False)


@formula("_batch_norm_with_update _batch_norm_with_update_functional", "6 n + 9 channels, and n each for weight and bias")
def _batch_norm_updated(call: Call) -> Operations:
    return _batch(call, True)


def _batch(call: Call, training: bool) -> Operations:
    n, channels = numel(call.sizes(0)), _channels(call.sizes(0))
    # weight, bias, running mean, running variance: two of them are either both parameters or both statistics
    rest = len(call.inputs) - 1
    require(rest in (0, 2, 4) and all(s == (channels,) for _, s in call.inputs[1:]))
    if rest == 2:
        affine = call.get("affine", training and None)
        if affine is None:
            raise Unknown("weights or statistics: the sizes do not tell")
        parameters = 2 if affine else 0
    else:
        parameters = 2 if rest == 4 else 0
    statistics = rest - parameters
    if not training:
        return Operations(0, elementwise((2 + parameters) * n + 2 * channels, call.dtype()))
    running = 7 * channels if statistics else 0
    return Operations(0, elementwise((6 + parameters) * n + 2 * channels + running, call.dtype()))


@formula(
    "native_batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward batch_norm_backward",
    "in training 8 n + 4 channels: two sums, x - mean, its product, the projection, two differences, the scale "
    "(torch/_decomp); "
    "other masks and running statistics are not known",
)
def _batch_norm_backward(call: Call) -> Operations:
    # cuDNN's and MIOpen's are for training only, and give all three gradients
    if call.operator in ("native_batch_norm_backward", "batch_norm_backward"):
        trained = call.flag("update" if call.operator == "batch_norm_backward" else "train", None)
        if not trained or _mask(call, 3) != (True, True, True):
            raise Unknown("not all gradients of a training step")
    return Operations(0, elementwise(8 * numel(call.sizes(0)) + 4 * _channels(call.sizes(0)), call.dtype()))
