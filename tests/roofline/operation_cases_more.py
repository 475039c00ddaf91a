"""Attention, recurrent layers, reductions and single elements, with their counts by hand."""

from __future__ import annotations

from typing import Any

from tests.roofline import by_hand as by
from tests.roofline.operation_cases import CAUSAL, NO, NO_FORMULA, PRODUCTS, VECTOR, Case, f

Q, K = f(2, 2, 5, 4), f(2, 2, 5, 4)
BTHD = f(2, 5, 2, 4)
BIG = f(2, 6, 3)


def lower_right(queries: int, keys: int) -> Any:
    return lambda i, j: j - i <= keys - queries


OTHERS: list[Case] = [
    # attention
    Case("sdpa", "scaled_dot_product_attention", [Q, K, K], by.attention(4, 5, 5, 4, 4), why=NO_FORMULA),
    Case(
        "sdpa, causal, fewer queries",
        "scaled_dot_product_attention",
        [f(2, 2, 3, 4), K, K, NO, 0.0, True],
        by.attention(4, 3, 5, 4, 4, visible=lambda i, j: j <= i),
        why=NO_FORMULA,
    ),
    Case(
        "sdpa, a mask, dropout",
        "scaled_dot_product_attention",
        [Q, K, K, f(5, 5), 0.1],
        by.attention(4, 5, 5, 4, 4, mask=True, dropout=True),
        why=NO_FORMULA,
    ),
    Case(
        "sdpa, 4 heads on 2, wide values",
        "scaled_dot_product_attention",
        [f(2, 4, 5, 4), f(2, 2, 6, 4), f(2, 2, 6, 3)],
        by.attention(8, 5, 6, 4, 3),
        why=NO_FORMULA,
    ),
    Case(
        "flash",
        "_scaled_dot_product_flash_attention",
        [f(2, 4, 5, 4), K, K, 0.0, False],
        by.attention(8, 5, 5, 4, 4),
        why=VECTOR,
    ),
    Case(
        "flash, causal",
        "_scaled_dot_product_flash_attention",
        [Q, K, K, 0.0, True],
        by.attention(4, 5, 5, 4, 4, visible=lambda i, j: j <= i),
        why=CAUSAL,
    ),
    Case(
        "flash, causal, fewer queries",
        "_scaled_dot_product_flash_attention",
        [f(2, 2, 3, 4), K, K, 0.0, True],
        by.attention(4, 3, 5, 4, 4, visible=lower_right(3, 5)),
        why=CAUSAL,
    ),
    Case(
        "flash, causal, fewer keys",
        "_scaled_dot_product_flash_attention",
        [K, f(2, 2, 3, 4), f(2, 2, 3, 4), 0.0, True],
        by.attention(4, 5, 3, 4, 4, visible=lower_right(5, 3)),
        why=CAUSAL,
    ),
    Case(
        "flash backward, causal",
        "_scaled_dot_product_flash_attention_backward",
        [Q, Q, K, K, Q, f(2, 2, 5), f(0), f(0), 5, 5, 0.0, True, f(), f()],
        by.attention(4, 5, 5, 4, 4, visible=lambda i, j: j <= i, backward=True),
        why=CAUSAL,
    ),
    Case(
        "CPU flash, causal",
        "_scaled_dot_product_flash_attention_for_cpu",
        [Q, K, K, 0.0, True],
        by.attention(4, 5, 5, 4, 4, visible=lambda i, j: j <= i),
        why=NO_FORMULA,
    ),
    Case(
        "CPU flash backward",
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        [Q, Q, K, K, Q, f(2, 2, 5), 0.0, False],
        by.attention(4, 5, 5, 4, 4, backward=True),
        why=NO_FORMULA,
    ),
    Case(
        "efficient, wide values",
        "_scaled_dot_product_efficient_attention",
        [f(2, 2, 5, 4), f(2, 2, 6, 4), f(2, 2, 6, 7), NO, True],
        by.attention(4, 5, 6, 4, 7),
        why=VECTOR,
    ),
    Case(
        "flash of (batch, tokens, heads, width), causal",
        "_flash_attention_forward",
        [BTHD, BTHD, BTHD, NO, NO, 5, 5, 0.0, True, False],
        by.attention(4, 5, 5, 4, 4, visible=lambda i, j: j <= i),
        why="torch takes the sizes as (batch, heads, tokens, width)",
    ),
    Case(
        "flash, a window of 2 back, 1 ahead",
        "_flash_attention_forward",
        [BTHD, BTHD, BTHD, NO, NO, 5, 5, 0.0, False, False, NO, 2, 1],
        by.attention(4, 5, 5, 4, 4, visible=lambda i, j: -2 <= j - i <= 1),
        why="torch does not know of windows",
    ),
    Case(
        "efficient, causal to the lower right",
        "_efficient_attention_forward",
        [f(2, 3, 2, 4), f(2, 5, 2, 4), f(2, 5, 2, 4), NO, NO, NO, NO, NO, 0.0, 2],
        by.attention(4, 3, 5, 4, 4, visible=lower_right(3, 5)),
        why="torch takes the sizes as (batch, heads, tokens, width)",
    ),
    Case(
        "flash of packed sequences",
        "_flash_attention_forward",
        [f(9, 2, 4), f(9, 2, 4), f(9, 2, 4), f(4, dtype="i32"), f(4, dtype="i32"), 5, 5, 0.0, False, False],
        None,
        why="torch takes every sequence as the longest",
    ),
    # recurrent
    Case(
        "LSTM, two layers, both directions",
        "lstm",
        [
            f(5, 2, 3),
            [f(4, 2, 4), f(4, 2, 4)],
            [f(16, n) if n else f(16) for n in (3, 4, 0, 0) * 2 + (8, 4, 0, 0) * 2],
            True,
            2,
            0.0,
            False,
            True,
            False,
        ],
        by.lstm(5, 2, 3, 4, layers=2, directions=2),
        why=NO_FORMULA,
    ),
    Case(
        "LSTM layer of oneDNN",
        "mkldnn_rnn_layer",
        [f(5, 2, 3), f(16, 3), f(16, 4), f(16), f(16), f(2, 4), f(2, 4), False, [], 2, 4, 1, True, False, False, False],
        by.lstm(5, 2, 3, 4),
        why=NO_FORMULA,
    ),
    Case(
        "GRU",
        "gru",
        [f(5, 2, 3), f(1, 2, 4), [f(12, 3), f(12, 4), f(12), f(12)], True, 1, 0.0, False, False, False],
        by.gru(5, 2, 3, 4),
        why=NO_FORMULA,
    ),
    Case(
        "LSTM cell, no biases",
        "lstm_cell",
        [f(2, 3), [f(2, 4), f(2, 4)], f(16, 3), f(16, 4)],
        by.lstm(1, 2, 3, 4, biases=False),
        why=NO_FORMULA,
    ),
    # tables
    Case("embedding", "embedding", [f(10, 4), f(2, 3, dtype="i64")], by.elements(0), why=NO_FORMULA),
    Case(
        "embedding backward",
        "embedding_dense_backward",
        [f(2, 3, 4), f(2, 3, dtype="i64"), 10, -1, False],
        by.elements(2, 3, 4),
        why=NO_FORMULA,
    ),
    Case("embedding bags", "_embedding_bag", [f(10, 4), f(6, dtype="i64"), f(2, dtype="i64")], None, why=NO_FORMULA),
    # reductions, norms, single elements
    Case("sum", "sum", [BIG, [2], False], by.sums(12, 3), why=NO_FORMULA),
    Case("sum of all, result known", "sum", [BIG], by.sums(1, 36), out=[f()], why=NO_FORMULA),
    Case("sum of integers", "sum", [f(2, 3, dtype="i64"), NO], by.elements(0), why=NO_FORMULA),
    Case("sum, nothing said of its dims", "sum", [BIG], None, why=NO_FORMULA, named={"known": False}),
    Case("mean", "mean", [BIG, [2], False], by.sums(12, 3, then=1), why=NO_FORMULA),
    Case("var_mean", "var_mean", [BIG, [2]], by.variance(12, 3), why=NO_FORMULA),
    Case("cumsum", "cumsum", [BIG, 1], by.sums(6, 6), why=NO_FORMULA),
    Case("softmax", "_softmax", [BIG, -1, False], by.softmax(12, 3), why=NO_FORMULA),
    Case("log_softmax", "_log_softmax", [BIG, 1, False], by.softmax(6, 6, log=True), why=NO_FORMULA),
    Case("layer norm", "native_layer_norm", [BIG, [6, 3], f(6, 3), f(6, 3), 1e-5], by.layer_norm(2, 18), why=NO_FORMULA),
    Case(
        "layer norm backward",
        "native_layer_norm_backward",
        [BIG, BIG, [3], f(2, 6, 1), f(2, 6, 1), f(3), f(3), [True, True, True]],
        by.layer_norm_backward(12, 3),
        why=NO_FORMULA,
    ),
    Case(
        "group norm backward",
        "native_group_norm_backward",
        [f(2, 4, 3), f(2, 4, 3), f(2, 2), f(2, 2), f(4), 2, 4, 3, 2, [True, True, True]],
        by.group_norm_backward(2, 4, 3, 2),
        why=NO_FORMULA,
    ),
    Case(
        "RMS norm backward",
        "_fused_rms_norm_backward",
        [BIG, BIG, [3], f(2, 6, 1), f(3), [True, True]],
        by.rms_norm_backward(12, 3),
        why=NO_FORMULA,
    ),
    Case("RMS norm", "rms_norm", [BIG, [3], f(3)], by.rms_norm(12, 3), why=NO_FORMULA),
    Case(
        "batch norm, training, no statistics",
        "_native_batch_norm_legit",
        [BIG, NO, NO, True, 0.1, 1e-5],
        by.layer_norm(6, 6, parameters=0),
        why=NO_FORMULA,
        named={"training": True},
    ),
    Case("gelu", "gelu", [BIG], by.elements(2, 6, 3, each=5), why=NO_FORMULA),
    Case("add, broadcast", "add", [f(2, 1, 3), f(6, 1)], by.elements(2, 6, 3), why=NO_FORMULA),
    Case("relu", "relu", [BIG], by.elements(0), why=NO_FORMULA),
    Case("all-reduce", "_c10d_functional.all_reduce", [BIG], by.elements(0), why=NO_FORMULA),
    Case("an operator of a user", "mylib.fused", [BIG], None, why=NO_FORMULA),
]


CASES = PRODUCTS + OTHERS
