"""Which arguments of an operator change how many operations a call is, and where they stand in its schema.

Readers of graphs and traces keep these and no others, so that equal rows stay equal. A graph's text has an argument at its
place, or by its name, or leaves a default out; a trace has it among "Concrete Inputs". Places are those of torch 2.13
(aten/src/ATen/native/native_functions.yaml); None: by name alone. Arguments that stand only by name in a text have a place in
a trace all the same, as record_function puts them behind the others.
"""

from __future__ import annotations

from collections.abc import Mapping

_DENSE = {"stride": 3, "padding": 4, "dilation": 5, "groups": 6}
_TRANSPOSED = {"stride": 3, "padding": 4, "output_padding": 5, "groups": 6, "dilation": 7}
_ADDED = {"beta": 3, "alpha": 4}
_SDPA = {"dropout_p": 4, "is_causal": 5}
_BATCH_NORM = {"training": 5}


def _each(operators: str, places: Mapping[str, int]) -> dict[str, Mapping[str, int]]:
    """The same places for several operators, names apart by spaces."""
    return dict.fromkeys(operators.split(), places)


PLACES: Mapping[str, Mapping[str, int]] = {
    # matrices
    "addmm": _ADDED, "baddbmm": _ADDED, "addbmm": _ADDED, "addmv": _ADDED, "addr": _ADDED,
    "_addmm_activation": {**_ADDED, "use_gelu": 5},
    "einsum": {"equation": 0},
    "tensordot": {"dims_self": 2, "dims_other": 3},
    "_sparse_semi_structured_addmm": {"alpha": 4, "beta": 5},
    "_sparse_semi_structured_linear": {"activation": 4},
    "mkldnn._linear_pointwise": {"attr": 3, "algorithm": 5},
    # convolutions
    "convolution": {"stride": 3, "padding": 4, "dilation": 5, "transposed": 6, "output_padding": 7, "groups": 8},
    "_convolution": {"stride": 3, "padding": 4, "dilation": 5, "transposed": 6, "output_padding": 7, "groups": 8},
    "convolution_overrideable": {"stride": 3, "padding": 4, "dilation": 5, "transposed": 6, "output_padding": 7, "groups": 8},
    "conv1d": _DENSE, "conv2d": _DENSE, "conv3d": _DENSE,
    "conv_transpose1d": _TRANSPOSED, "conv_transpose2d": _TRANSPOSED, "conv_transpose3d": _TRANSPOSED,
    "cudnn_convolution": {"padding": 2, "stride": 3, "dilation": 4, "groups": 5},
    "cudnn_convolution_transpose": {"padding": 2, "output_padding": 3, "stride": 4, "dilation": 5, "groups": 6},
    "cudnn_convolution_relu": _DENSE,
    "cudnn_convolution_add_relu": {"alpha": 3, "stride": 5, "padding": 6, "dilation": 7, "groups": 8},
    "miopen_convolution": {"padding": 3, "stride": 4, "dilation": 5, "groups": 6},
    "miopen_depthwise_convolution": {"padding": 3, "stride": 4, "dilation": 5, "groups": 6},
    "miopen_convolution_transpose": {"padding": 3, "output_padding": 4, "stride": 5, "dilation": 6, "groups": 7},
    "miopen_convolution_relu": _DENSE,
    "miopen_convolution_add_relu": {"alpha": 3, "stride": 5, "padding": 6, "dilation": 7, "groups": 8},
    "mkldnn_convolution": {"padding": 3, "stride": 4, "dilation": 5, "groups": 6},
    "mkldnn._convolution_pointwise": {"padding": 3, "stride": 4, "dilation": 5, "groups": 6, "attr": 7, "algorithm": 9},
    "mkldnn._convolution_transpose_pointwise": {
        "padding": 3, "output_padding": 4, "stride": 5, "dilation": 6, "groups": 7, "attr": 8, "algorithm": 10,
    },
    "_slow_conv2d_forward": {"stride": 4, "padding": 5}, "thnn_conv2d": {"stride": 4, "padding": 5},
    "slow_conv3d": {"stride": 4, "padding": 5},
    "_conv_depthwise2d": {"stride": 4, "padding": 5, "dilation": 6},
    "conv_depthwise3d": {"stride": 4, "padding": 5, "dilation": 6},
    "conv_tbc": {"pad": 3},
    "convolution_backward": {"transposed": 7, "output_mask": 10},
    "convolution_backward_overrideable": {"transposed": 6, "output_mask": 9},
    # torch 1.x: traces of that time hold their sizes, seldom their arguments
    "cudnn_convolution_backward": {"output_mask": 10}, "miopen_convolution_backward": {"output_mask": 9},
    "cudnn_convolution_backward_weight": {"weight_size": 0}, "miopen_convolution_backward_weight": {"weight_size": 0},
    # attention
    "scaled_dot_product_attention": _SDPA, "_scaled_dot_product_attention_math": _SDPA,
    "_scaled_dot_product_attention_math_for_mps": _SDPA, "_scaled_dot_product_fused_attention_overrideable": _SDPA,
    "_scaled_dot_product_fused_attention_overrideable_backward": {"dropout_p": 12, "is_causal": 13},
    "_scaled_dot_product_flash_attention": {"dropout_p": 3, "is_causal": 4},
    "_scaled_dot_product_flash_attention_backward": {"dropout_p": 10, "is_causal": 11},
    "_scaled_dot_product_flash_attention_for_cpu": {"dropout_p": 3, "is_causal": 4},
    "_scaled_dot_product_flash_attention_for_cpu_backward": {"dropout_p": 6, "is_causal": 7},
    "_scaled_dot_product_efficient_attention": {"dropout_p": 5, "is_causal": 6},
    "_scaled_dot_product_efficient_attention_backward": {"dropout_p": 9, "is_causal": 11},
    "_scaled_dot_product_cudnn_attention": {"dropout_p": 5, "is_causal": 6},
    "_scaled_dot_product_cudnn_attention_backward": {"dropout_p": 13, "is_causal": 14},
    "_cudnn_attention_forward": {"dropout_p": 9, "is_causal": 10},
    "_cudnn_attention_backward": {"dropout_p": 13, "is_causal": 14},
    "_flash_attention_forward": {"dropout_p": 7, "is_causal": 8, "window_size_left": 11, "window_size_right": 12},
    "_flash_attention_backward": {"dropout_p": 10, "is_causal": 11, "window_size_left": 15, "window_size_right": 16},
    "_efficient_attention_forward": {"dropout_p": 8, "custom_mask_type": 9, "window_size": 13},
    "_efficient_attention_backward": {"dropout_p": 11, "custom_mask_type": 14, "window_size": 18},
    # flash_attn/flash_attn_interface.py, 2.7
    "flash_attn._flash_attn_forward": {"dropout_p": 3, "causal": 5, "window_size_left": 6, "window_size_right": 7},
    "flash_attn._flash_attn_backward": {"dropout_p": 9, "causal": 11, "window_size_left": 12, "window_size_right": 13},
    # recurrent
    "mkldnn_rnn_layer": {"mode": 9, "has_biases": 12},
    "mkldnn_rnn_layer_backward": {"mode": 14, "has_biases": 17},
    "_cudnn_rnn": {"mode": 6, "proj_size": 8}, "miopen_rnn": {"mode": 5},
    # reductions
    **_each("sum prod nansum logsumexp std std_mean", {"dim": 1}),
    "linalg_vector_norm": {"ord": 1, "dim": 2}, "linalg_norm": {"ord": 1, "dim": 2}, "norm": {"ord": 1, "dim": 2},
    **_each("cumsum cumprod softmax log_softmax _softmax _safe_softmax", {"dim": 1}),
    **_each("_softmax_backward_data _log_softmax_backward_data", {"dim": 2}),
    # losses
    **_each("mse_loss l1_loss", {"reduction": 2}),
    **_each("nll_loss_forward nll_loss nll_loss2d_forward", {"reduction": 3}),
    **_each("nll_loss_backward nll_loss2d_backward", {"reduction": 4}),
    "cross_entropy_loss": {"reduction": 3, "label_smoothing": 5}, "cross_entropy": {"reduction": 6, "label_smoothing": 7},
    "binary_cross_entropy_with_logits": {"reduction": 4},
    # norms
    "native_layer_norm": {"normalized_shape": 1}, "layer_norm": {"normalized_shape": 1},
    "rms_norm": {"normalized_shape": 1}, "_fused_rms_norm": {"normalized_shape": 1},
    "native_layer_norm_backward": {"output_mask": 7}, "_fused_rms_norm_backward": {"output_mask": 5},
    "native_group_norm": {"group": 6}, "native_group_norm_backward": {"output_mask": 9}, "group_norm": {"num_groups": 1},
    **_each(
        "native_batch_norm batch_norm cudnn_batch_norm "
        "miopen_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional _batch_norm_impl_index", _BATCH_NORM),
    "native_batch_norm_backward": {"train": 7, "output_mask": 9}, "batch_norm_backward": {"update": 7, "output_mask": 9},
    # single elements
    "add": {"alpha": 2}, "sub": {"alpha": 2}, "rsub": {"alpha": 2}, "addcmul": {"value": 3}, "addcdiv": {"value": 3},
    "gelu": {"approximate": 1}, "gelu_backward": {"approximate": 2},
    "dropout": {"p": 1, "train": 2, "training": 2}, "native_dropout": {"train": 2},
    "index_put": {"accumulate": 3}, "_index_put_impl": {"accumulate": 3}, "index_add": {"alpha": 4},
    "avg_pool1d": {"kernel_size": 1, "stride": 2, "padding": 3, "ceil_mode": 4},
    "avg_pool2d": {"kernel_size": 1, "stride": 2, "padding": 3, "ceil_mode": 4},
    "avg_pool3d": {"kernel_size": 1, "stride": 2, "padding": 3, "ceil_mode": 4},
    **_each("avg_pool2d_backward avg_pool3d_backward", {"kernel_size": 2, "padding": 4, "ceil_mode": 5}),
    **_each("adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d", {"output_size": 1}),
    # lists of tensors
    "_fused_adam": {"weight_decay": 9}, "_fused_adamw": {"weight_decay": 9},
    "_fused_sgd": {"weight_decay": 3, "momentum": 4, "nesterov": 7, "is_first_step": 9},
    "_foreach_add": {"alpha": 2}, "_foreach_sub": {"alpha": 2},
    "_foreach_addcmul": {"value": 3}, "_foreach_addcdiv": {"value": 3}, "_foreach_norm": {"ord": 1},
}  # fmt: skip
"""Operator -> argument -> place. In-place forms (`add_`) and overloads count as the operator itself."""
