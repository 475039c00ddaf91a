"""Operations of sums, softmax, norms and losses: each written out as its decomposition has it.

A sum of n numbers into m is n - m additions. With n elements in m rows: mean n (the divisions make up for the difference),
variance 4 n (mean, differences, squares, their mean), softmax 4 n - m (difference to the maximum, exp, sum, division).
Source of the written-out forms: torch/_decomp/decompositions.py and torch/_refs, by name of the operator.
"""

from __future__ import annotations

from tuimon.roofline.counts.elementwise import number_of
from tuimon.roofline.counts.formulas import Call, Operations, Sizes, Unknown, elementwise, formula, numel


def _rows(call: Call, *, always: bool = False) -> int:
    """How many results a reduction has: as told, else by its dims. Where it has none it is over everything, unless the schema
    always has some."""
    told = call.out()
    if told is not None:
        return numel(told)
    dims = call.get("dim")
    if isinstance(dims, bool):
        # the place of dims is another flag's where everything is reduced: std(x, unbiased)
        dims = None
    if (dims is None and always) or isinstance(dims, int):
        # alone it may as well be the number of a dtype: sum(x, dtype)
        raise Unknown(f"{call.operator}: neither its result nor its dims are known")
    return numel(_left_over(call.sizes(0), dims))


def _left_over(sizes: Sizes, dims: object) -> Sizes:
    if dims is None or dims in ([], (), ""):
        return ()
    some = [dims] if isinstance(dims, int) else dims
    rank = max(len(sizes), 1)
    if not isinstance(some, (list, tuple)) or not all(isinstance(d, int) and -rank <= d < rank for d in some):
        raise Unknown("dims are not known")
    gone = {d % len(sizes) for d in some} if sizes else set()
    return tuple(n for i, n in enumerate(sizes) if i not in gone)


def _reduced(call: Call, count: int) -> Operations:
    return Operations(0, elementwise(max(count, 0), number_of(call, call.operator)))


@formula("sum nansum prod _grad_sum_to_size", "n - results (definition of torch.sum)")
def _sum(call: Call) -> Operations:
    return _reduced(call, numel(call.sizes(0)) - _rows(call))


@formula("mean", "n: n - results sums and a division for every result (definition of torch.mean)")
def _mean(call: Call) -> Operations:
    return Operations(0, elementwise(numel(call.sizes(0)), call.dtype()))


@formula("var var_mean", "4 n: the mean, differences, squares, and the mean of those (definition of torch.var_mean)")
def _var(call: Call) -> Operations:
    return Operations(0, elementwise(4 * numel(call.sizes(0)), call.dtype()))


@formula("std std_mean", "4 n, and a root for every result (definition of torch.std)")
def _std(call: Call) -> Operations:
    return Operations(0, elementwise(4 * numel(call.sizes(0)) + _rows(call), call.dtype()))


@formula("logsumexp", "3 n + results: differences to the maximum, exp, sums, log, and the maximum added (torch.logsumexp)")
def _logsumexp(call: Call) -> Operations:
    return Operations(0, elementwise(3 * numel(call.sizes(0)) + _rows(call, always=True), call.dtype()))


@formula(
    "linalg_vector_norm norm frobenius_norm linalg_norm",
    "of order 2: 2 n, squares, sums and roots; of order 1: n - results; else not known",
)
def _norm(call: Call) -> Operations:
    order = call.get("ord", 2)
    n = numel(call.sizes(0))
    if order in (2, 2.0, None):
        return Operations(0, elementwise(2 * n, call.dtype()))
    if order in (1, 1.0):
        return _reduced(call, n - _rows(call))
    if order in (float("inf"), float("-inf")):
        return Operations()
    raise Unknown(f"norm of order {order}")


@formula("cumsum cumprod", "n - rows (definition of torch.cumsum)")
def _cumsum(call: Call) -> Operations:
    sizes, dim = call.sizes(0), call.get("dim")
    if not isinstance(dim, int):
        raise Unknown("dim is not known")
    return _reduced(call, numel(sizes) - (numel(_left_over(sizes, dim)) if numel(sizes) else 0))


def _softmax_rows(call: Call) -> int:
    dim = call.get("dim")
    if not isinstance(dim, int):
        raise Unknown("dim is not known")
    sizes = call.sizes(0)
    return numel(_left_over(sizes, dim)) if numel(sizes) else 0


@formula(
    "_softmax softmax _safe_softmax",
    "4 n - rows: differences to the maximum, exp, sums, divisions (torch.nn.functional.softmax)",
)
def _softmax(call: Call) -> Operations:
    return Operations(0, elementwise(4 * numel(call.sizes(0)) - _softmax_rows(call), call.dtype()))


@formula(
    "_log_softmax log_softmax",
    "4 n: differences to the maximum, exp, sums, log, differences (torch.nn.functional.log_softmax)",
)
def _log_softmax(call: Call) -> Operations:
    return Operations(0, elementwise(4 * numel(call.sizes(0)), call.dtype()))


@formula("_softmax_backward_data _log_softmax_backward_data", "4 n - rows (torch/_decomp/decompositions.py)")
def _softmax_backward(call: Call) -> Operations:
    return Operations(0, elementwise(4 * numel(call.sizes(0)) - _softmax_rows(call), call.dtype()))


def _loss(call: Call, each: int) -> Operations:
    n = numel(call.sizes(0))
    reduction = call.get("reduction", 1)
    if reduction not in (0, 1, 2, "none", "mean", "sum"):
        raise Unknown("reduction is not known")
    after = {0: 0, 1: n, 2: n - 1, "none": 0, "mean": n, "sum": n - 1}[reduction]
    return Operations(0, elementwise(max(each * n + after, 0), call.dtype()))


@formula("mse_loss", "2 n, and the sum or mean (definition of torch.nn.functional.mse_loss)")
def _mse(call: Call) -> Operations:
    return _loss(call, 2)


@formula("l1_loss", "n, and the sum or mean; absolute values count none (torch.nn.functional.l1_loss)")
def _l1(call: Call) -> Operations:
    return _loss(call, 1)


@formula("mse_loss_backward", "3 n: difference, factor, gradient (torch/_decomp/decompositions.py)")
def _mse_backward(call: Call) -> Operations:
    return Operations(0, elementwise(3 * numel(call.sizes(1)), call.dtype()))


@formula(
    "nll_loss_forward nll_loss nll_loss2d_forward",
    "the sum or mean of one number a target; weights of classes are not known",
)
def _nll(call: Call) -> Operations:
    if call.has(2):
        raise Unknown("weights of classes")
    targets = numel(call.sizes(1))
    reduction = call.get("reduction", 1)
    if reduction not in (0, 1, 2):
        raise Unknown("reduction is not known")
    return Operations(0, elementwise({0: 0, 1: targets, 2: max(targets - 1, 0)}[reduction], call.dtype()))


@formula(
    "nll_loss_backward nll_loss2d_backward",
    "one product a target (and the division of a mean): gradient times -1 / n",
)
def _nll_backward(call: Call) -> Operations:
    targets = numel(call.sizes(2))
    return Operations(0, elementwise(targets + (call.get("reduction", 1) == 1), call.dtype()))


@formula(
    "cross_entropy cross_entropy_loss",
    "log_softmax and nll_loss of class numbers; probabilities as targets are not known",
)
def _cross_entropy(call: Call) -> Operations:
    x, target = call.sizes(0), call.sizes(1)
    if call.has(2) or call.get("label_smoothing", 0.0) or len(target) != len(x) - 1:
        raise Unknown("weights, smoothing or probabilities")
    reduction = {"none": 0, "mean": 1, "sum": 2}.get(str(call.get("reduction", 1)), call.get("reduction", 1))
    rest = _nll(Call("nll_loss", call.inputs[:2], (), {"reduction": reduction}))
    return Operations(0, elementwise(4 * numel(x), call.dtype())) + rest


@formula(
    "binary_cross_entropy_with_logits",
    "(1 - y) x + log1p(exp(-x)) with its shift: 5 n, and the sum or mean; weights are not known",
)
def _bce(call: Call) -> Operations:
    if call.has(2):
        raise Unknown("weights")
    return _loss(call, 5)
