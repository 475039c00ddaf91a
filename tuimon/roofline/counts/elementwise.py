"""Operations of functions of single elements: how many arithmetic functions each stands for, written out.

A function of ATen that is one function of arithmetic counts one. One that is made of several counts those of its definition in
the documentation of torch.nn.functional, or of its decomposition in torch/_decomp/decompositions.py (backward functions), with
products of constants folded. The same work then counts the same whether a compiler has taken it apart or not.
"""

from __future__ import annotations

from tuimon.roofline.counts.formulas import Call, Operations, Sizes, Unknown, broadcast, elementwise, formula, numel, require
from tuimon.roofline.dtypes import is_complex, is_float

NONE = (
    # views and names
    "view _unsafe_view reshape _reshape_alias permute transpose swapaxes swapdims movedim t numpy_T mT T expand "
    "expand_as broadcast_to "
    "broadcast_tensors unsqueeze squeeze flatten unflatten slice narrow select split split_with_sizes unsafe_split "
    "chunk tensor_split "
    "unbind diagonal unfold view_as view_as_real view_as_complex real imag detach alias as_strided getitem "
    "__getitem__ squeeze_ "
    "resolve_conj resolve_neg conj _conj lift_fresh lift_fresh_copy view_dtype "
    # copies, memory, casts
    "copy copy_ _to_copy to type type_as float half bfloat16 double int long bool contiguous clone "
    "convert_element_type device_put "
    "empty empty_like empty_strided new_empty new_empty_strided empty_permuted full full_like new_full full_default "
    "zeros zeros_like "
    "new_zeros ones ones_like new_ones zero zero_ fill fill_ scalar_tensor tensor set_ resize_ resize_as_ pin_memory "
    "is_pinned _pin_memory "
    "record_stream arange linspace iota eye tril triu cat _cat concat stack hstack vstack repeat repeat_interleave "
    "expand_copy "
    "roll flip rot90 constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad2d tile meshgrid "
    "item _local_scalar_dense is_nonzero sym_size sym_numel sym_stride size numel dim result_type "
    "flatten_dense_tensors unflatten_dense_tensors pixel_shuffle pixel_unshuffle channel_shuffle im2col reinterpret_tensor "
    "_has_compatible_shallow_copy_type slice_backward select_backward slice_scatter select_scatter diagonal_scatter "
    "as_strided_scatter "
    "_foreach_copy _foreach_zero _foreach_neg _foreach_abs _foreach_clamp_min _foreach_clamp_max _foreach_maximum "
    # gathers and scatters without a sum
    "embedding index _unsafe_index index_select gather take take_along_dim where masked_fill masked_scatter "
    "masked_select index_copy index_fill "
    "scatter nonzero argwhere one_hot _assert_async _assert_tensor_metadata assert_tensor_metadata "
    # comparisons, minima, order
    "eq ne lt le gt ge equal isnan isinf isfinite isneginf isposinf isclose logical_and logical_or "
    "logical_not logical_xor bitwise_and "
    "bitwise_or "
    "bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__ __lshift__ __rshift__ any all "
    "max min amax amin aminmax argmax argmin maximum minimum fmax fmin clamp clip clamp_min clamp_max relu relu6 "
    "hardtanh threshold "
    "threshold_backward hardtanh_backward abs neg negative sign sgn positive copysign nan_to_num sort argsort topk "
    "kthvalue median mode "
    "unique _unique2 unique_consecutive searchsorted bucketize histc bincount cummax cummin signbit "
    "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d "
    "_low_memory_max_pool_with_offsets upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact2d "
    # moving rows of tables
    "fbgemm.permute_sparse_features fbgemm.permute_2D_sparse_data fbgemm.permute_pooled_embs_auto_grad "
    "fbgemm.recat_embedding_grad_output_mixed_D_batch fbgemm.block_bucketize_sparse_features "
    "fbgemm.asynchronous_complete_cumsum fbgemm.bounds_check_indices "
    # random numbers
    "rand randn rand_like randn_like randint randperm inductor_random inductor_seeds inductor_lookup_seed "
    "inductor_randint bernoulli uniform "
    "normal exponential multinomial"
)
"""Operators that do no arithmetic by the policy: known to be none, which is not the same as unknown."""

COLLECTIVES = (
    "all_reduce all_reduce_coalesced reduce reduce_scatter reduce_scatter_tensor reduce_scatter_tensor_coalesced "
    "_reduce_scatter_base all_gather _all_gather_base all_gather_into_tensor all_gather_into_tensor_coalesced all_to_all "
    "all_to_allv all_to_all_single broadcast send recv gather scatter barrier coalesced wait_tensor"
)
"""By NCCL's and torch's names."""
_C10D = (
    "allreduce_ reduce_ reduce_scatter_ _reduce_scatter_base_ allgather_ _allgather_base_ alltoall_ alltoall_base_ broadcast_ "
    "send recv_ barrier"
)

_INTEGER_STAYS = (
    "add sub subtract rsub mul multiply pow square floor_divide remainder fmod floor ceil round trunc addcmul "
    "sum nansum prod cumsum cumprod"
)
INTEGER_STAYS = frozenset(_INTEGER_STAYS.split())
"""Functions that give integers for integers: no floating-point operation there. Of the others integers become floats."""

_ONE = (
    "mul div true_divide divide multiply floor_divide remainder fmod pow float_power exp exp2 expm1 log log2 log10 "
    "log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sigmoid "
    "erf erfc erfinv floor ceil round trunc frac lgamma digamma leaky_relu leaky_relu_backward prelu _prelu_kernel "
    "truediv floordiv mod hypot logaddexp i0 sinc polygamma special_expit special_erf"
)
"""Functions that are one function of arithmetic."""

POINTWISE: dict[str, int] = {
    **dict.fromkeys(_ONE.split(), 1),
    "add": 1, "sub": 1, "rsub": 1, "subtract": 1, "addcmul": 2, "addcdiv": 2,
    "lerp": 3,  # self + weight * (end - self)
    "rad2deg": 1, "deg2rad": 1,
    "logit": 3,  # log(x / (1 - x))
    "logit_backward": 3,  # grad / (x * (1 - x))
    "sigmoid_backward": 3,  # grad * ((1 - out) * out)
    "tanh_backward": 3,  # grad * (1 - out * out)
    "silu": 2,  # x * sigmoid(x)
    "silu_backward": 6,  # grad * sigmoid * (1 + x * (1 - sigmoid))
    "swish": 2,
    "gelu": 5,  # x * 0.5 * (1 + erf(x / sqrt 2))
    "gelu_tanh": 9,  # 0.5 * x * (1 + tanh(beta * (x + kappa * x * x * x)))
    "gelu_backward": 11, "gelu_tanh_backward": 18,
    "softplus": 4,  # log1p(exp(beta * x)) / beta
    "mish": 4,  # x * tanh(log1p(exp(x)))
    "elu": 4,  # expm1(x * input_scale) * coefficient, or x * scale
    "hardsigmoid": 2, "hardswish": 3,
    "logsigmoid": 3, "log_sigmoid": 3, "log_sigmoid_forward": 3,  # min(x, 0) - log1p(exp(-|x|))
    "softsign": 2,
    "tanhshrink": 2,
    "hardsigmoid_backward": 1,  # grad / 6
    "hardswish_backward": 3,  # grad * (x / 3 + 0.5)
    "softplus_backward": 5,  # grad * z / (z + 1), z = exp(beta * x)
    "_prelu_kernel_backward": 2,
}  # fmt: skip
"""Functions of one element of the result."""

_SPECIAL = {"gelu", "gelu_tanh", "gelu_backward", "gelu_tanh_backward", "add", "sub", "rsub", "addcmul", "addcdiv"}
"""Those whose arguments matter: functions of their own below."""


def result(call: Call) -> Sizes:
    """Sizes of the result of an elementwise function."""
    told = call.out()
    if told is not None:
        return told
    require(bool(call.inputs))
    return broadcast([s for _, s in call.inputs])


def number_of(call: Call, function: str) -> str:
    """The type that the arithmetic is done in: float if any number is one, or if the function makes floats of integers."""
    types = [d for d, _ in (*call.outputs[:1], *call.inputs)]
    require(bool(types))
    for d in types:
        if is_complex(d):
            return d
    if call.outputs:
        return call.outputs[0][0]
    if any(is_float(d) for d in types) or function not in INTEGER_STAYS:
        return "f32"
    return types[0]


def _pointwise(call: Call, each: int, function: str) -> Operations:
    count, dtype = numel(result(call)), number_of(call, function)
    if is_complex(dtype):
        # a product of complex numbers is four products and two sums, a sum two
        real = {"mul": 6, "add": 2, "sub": 2}.get(function)
        if real is None or each != 1:
            raise Unknown(f"{function} of complex numbers")
        return Operations(0, count * real)
    return Operations(0, elementwise(count * each, dtype))


def _simple(name: str, each: int) -> None:
    @formula(name, f"{each} for every element of the result; none on integers")
    def give(call: Call) -> Operations:
        return _pointwise(call, each, name)


for _name, _each in POINTWISE.items():
    if _name not in _SPECIAL:
        _simple(_name, _each)


@formula(NONE, "none: no arithmetic")
def _none(call: Call) -> Operations:
    return Operations()


@formula(
    [
        f"{space}.{name}"
        for space in ("nccl", "rccl", "_c10d_functional", "_c10d_functional_autograd")
        for name in COLLECTIVES.split()
    ]
    + [f"c10d.{name}" for name in _C10D.split()]
    + ["record_param_comms"],
    "none: what ranks send, and add up on the way, is communication and no work of the graph's own",
)
def _collective(call: Call) -> Operations:
    return Operations()


@formula("add sub rsub", "one for every element, two where the second is scaled by alpha (definition of torch.add)")
def _add(call: Call) -> Operations:
    return _pointwise(call, 1 + (call.get("alpha", 1) not in (1, 1.0)), "sub" if "sub" in call.operator else "add")


@formula(
    "addcmul addcdiv",
    "two for every element, three where the product is scaled by value (definition of torch.addcmul)",
)
def _addc(call: Call) -> Operations:
    return _pointwise(call, 2 + (call.get("value", 1) not in (1, 1.0)), "addcmul")


@formula(
    "gelu gelu_backward",
    "5 for every element, backward 11; approximated by tanh 9 and 18 (torch/_decomp/decompositions.py)",
)
def _gelu(call: Call) -> Operations:
    kind = call.word("approximate", "none")
    if kind not in ("none", "tanh"):
        raise Unknown("approximate is not known")
    name = call.operator if kind == "none" else call.operator.replace("gelu", "gelu_tanh")
    return Operations(0, elementwise(POINTWISE[name] * numel(call.sizes(0)), call.dtype()))


@formula("glu", "a * sigmoid(b): 2 for every element of the result (definition of torch.nn.functional.glu)")
def _glu(call: Call) -> Operations:
    require(numel(call.sizes(0)) % 2 == 0)
    return Operations(0, elementwise(2 * (numel(call.sizes(0)) // 2), call.dtype()))


@formula(
    "_C_cache_ops.reshape_and_cache_flash _C_cache_ops.reshape_and_cache",
    "none where the cache holds the numbers as they are (vLLM)",
)
def _cache(call: Call) -> Operations:
    require(call.dtype(0) == call.dtype(2) and call.has(2))
    return Operations()


@formula(
    "sgl_kernel.silu_and_mul _C.silu_and_mul",
    "x * sigmoid(x) * y: 3 for every element of the result (which comes first in vLLM and SGLang)",
)
def _silu_and_mul(call: Call) -> Operations:
    return Operations(0, elementwise(3 * min(numel(s) for _, s in call.inputs), call.dtype()))


@formula(
    "dropout",
    "two products for every element (mask, 1 / (1 - p)) in training, else none (torch.nn.functional.dropout)",
)
def _dropout(call: Call) -> Operations:
    # torch.nn.functional calls it training
    if not call.flag("train", call.get("training")) or not call.number("p", 0.5):
        return Operations()
    return Operations(0, elementwise(2 * numel(call.sizes(0)), call.dtype()))


@formula("native_dropout", "two products for every element in training (torch/_decomp/decompositions.py)")
def _native_dropout(call: Call) -> Operations:
    train = call.get("train", True)
    return Operations() if train is False else Operations(0, elementwise(2 * numel(call.sizes(0)), call.dtype()))


@formula("native_dropout_backward _fused_dropout", "two products for every element (torch/_decomp/decompositions.py)")
def _dropout_backward(call: Call) -> Operations:
    return Operations(0, elementwise(2 * numel(call.sizes(0)), call.dtype()))


@formula(
    "embedding_dense_backward embedding_backward",
    "one sum for every element of the gradient (it is added up by rows)",
)
def _embedding_backward(call: Call) -> Operations:
    return Operations(0, elementwise(numel(call.sizes(0)), call.dtype()))


@formula("scatter_add index_add", "one sum for every element that is added (definition of torch.Tensor.index_add_)")
def _scatter_add(call: Call) -> Operations:
    # self, index, source: the source's own sizes are those of the index in scatter_add
    source = call.sizes(1) if call.operator == "scatter_add" else call.sizes(2)
    alpha = call.get("alpha", 1) if call.operator == "index_add" else 1
    return Operations(0, elementwise(numel(source) * (1 + (alpha not in (1, 1.0))), call.dtype()))


@formula(
    "index_put _index_put_impl",
    "one sum for every value where it accumulates, else none (definition of torch.Tensor.index_put_)",
)
def _index_put(call: Call) -> Operations:
    if not call.flag("accumulate", False):
        return Operations()
    return Operations(0, elementwise(numel(_indexed(call)), call.dtype()))


def _indexed(call: Call) -> Sizes:
    """Sizes of what is put: the values may be broadcast, then they do not tell; indices stand between self and values."""
    values = call.inputs[-1][1]
    indices = broadcast([s for _, s in call.inputs[1:-1]]) if len(call.inputs) > 2 else ()
    if not values[: len(indices)] == indices:
        raise Unknown("values are broadcast")
    return values


@formula("_unsafe_masked_index_put_accumulate", "one sum for every value (torch/_decomp/decompositions.py)")
def _masked_put(call: Call) -> Operations:
    return Operations(0, elementwise(numel(call.inputs[-1][1]), call.dtype()))


@formula(
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward _low_memory_max_pool_offsets_to_indices_backward",
    "one sum for every element of the gradient (it is added at the place of the maximum)",
)
def _max_pool_backward(call: Call) -> Operations:
    return Operations(0, elementwise(numel(call.sizes(0)), call.dtype()))


@formula(
    "avg_pool1d avg_pool2d avg_pool3d",
    "kernel - 1 sums and one division for every result, without padding (torch.nn.AvgPoolNd)",
)
def _avg_pool(call: Call) -> Operations:
    dims = int(call.operator[-2])
    kernel = call.integers("kernel_size", dims)
    padding = call.integers("padding", dims, 0)
    told = call.out()
    if any(padding) or call.flag("ceil_mode", False):
        raise Unknown("windows over the edge")
    if told is None:
        stride = call.get("stride")
        steps = call.integers("stride", dims) if stride not in (None, [], ()) else kernel
        x = call.sizes(0)
        require(all(s > 0 for s in steps) and len(x) in (dims + 1, dims + 2))
        told = (*x[:-dims], *((n - k) // s + 1 for n, k, s in zip(x[-dims:], kernel, steps, strict=True)))
        require(all(n >= 0 for n in told))
    return Operations(0, elementwise(numel(told) * numel(kernel), call.dtype()))


@formula(
    "avg_pool2d_backward avg_pool3d_backward",
    "one division for every gradient, one sum for every place of its window, without padding",
)
def _avg_pool_backward(call: Call) -> Operations:
    dims = int(call.operator[len("avg_pool")])
    if any(call.integers("padding", dims)) or call.flag("ceil_mode", None):
        raise Unknown("windows over the edge")
    return Operations(0, elementwise(numel(call.sizes(0)) * (1 + numel(call.integers("kernel_size", dims))), call.dtype()))


@formula(
    "upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward",
    "one sum for every element of the gradient (it is added at the place it was copied from)",
)
def _nearest_backward(call: Call) -> Operations:
    return Operations(0, elementwise(numel(call.sizes(0)), call.dtype()))


@formula(
    "_adaptive_avg_pool2d adaptive_avg_pool2d adaptive_avg_pool1d",
    "as a mean of equal windows; unequal ones are not known",
)
def _adaptive_pool(call: Call) -> Operations:
    x, told = call.sizes(0), call.out()
    dims = 1 if call.operator.endswith("1d") else 2
    sizes = told[-dims:] if told is not None else call.integers("output_size", dims)
    require(len(x) > dims)
    if any(m <= 0 or n % m for n, m in zip(x[-dims:], sizes, strict=True)):
        raise Unknown("windows of unequal sizes")
    return Operations(0, elementwise(numel(x), call.dtype()))
