"""Guards on tensors: size, stride, rank, dtype, device and what else Dynamo keeps of them; and relations between sizes."""

from __future__ import annotations

import re

from tuimon.model.readings.common import Given, Reading, changed, plain, short, trend

_TENSOR = re.compile(r"^tensor '(?P<name>.+?)' (?P<what>.+)$")
_ALONG = re.compile(r"^(?P<what>size|stride) mismatch at index (?P<at>\d+)\. expected (?P<before>\S+), actual (?P<now>\S+)$")
_PLAIN = re.compile(r"^(?P<what>rank|dtype) mismatch\. expected (?P<before>\S+), actual (?P<now>\S+)$")
_GRAD = re.compile(r"^requires_grad mismatch\. expected requires_grad=(?P<before>[01])$")
_KEYS = re.compile(r"^dispatch key set mismatch\. expected DispatchKeySet\((.*?)\), actual DispatchKeySet\((.*?)\)$")
_INDEX = re.compile(r"device index mismatch\. Expected device index to be (?P<before>-?\d+), got (?P<now>-?\d+)")
_CLASS = re.compile(r"^expected type of '(?P<name>.+?)' to be a tensor type,[ ']* but found <class '(?P<now>[^']*)'>$")
_RANGE = re.compile(
    r"^(?:(?P<low>\d+) <= )?(?P<name>[^<>=%*+]+?)\.(?P<what>size|stride)\(\)\[(?P<at>\d+)\](?: <= (?P<high>\d+))?$"
)
_EXACT = re.compile(r"^(?P<name>[^<>=%*+()]+?)\.(?P<what>size|stride)\(\)\[(?P<at>\d+)\] == (?P<before>\d+)$")
_PARTS = re.compile(r"^\(*(?P<name>[^<>=%*+()]+?)\.size\(\)\[(?P<at>\d+)\] % (?P<by>\d+)\)* == 0$")
_OF_SIZE = re.compile(r"(?P<name>[A-Za-z_][\w.\[\]']*)\.(?:size|stride|storage_offset)\(\)")

_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "ComplexHalf": "complex32",
}
_DEVICES = {"CPU", "CUDA", "HIP", "XPU", "MPS", "HPU", "IPU", "XLA", "MTIA", "MAIA", "Meta", "PrivateUse1", "PrivateUse2"}


def read(given: Given) -> Reading | None:
    """A guard on a tensor or on sizes of tensors; None where it is about something else."""
    found = _TENSOR.match(given.guard)
    if found:
        return _tensor(given, given.name(found["name"]), found["what"])
    found = _CLASS.match(given.guard)
    if found:
        name, now = given.name(found["name"]), found["now"].rsplit(".", 1)[-1]
        return Reading(
            "type",
            name,
            "Tensor",
            now,
            f"{name} is a {now}, was an ordinary tensor",
            f"pass {name} as the same class in every call",
            "Dynamo guards on a tensor's class: Parameter, Tensor and each subclass have graphs of their own",
        )
    return _sizes(given)


def _tensor(given: Given, name: str, what: str) -> Reading | None:
    found = _ALONG.match(what)
    if found:
        return _along(given, name, found["what"], found["at"], found["before"], found["now"])
    found = _PLAIN.match(what)
    if found and found["what"] == "rank":
        before, now = found["before"], found["now"]
        return Reading(
            "rank",
            name,
            before,
            now,
            f"{name} has {now} dimension{'' if now == '1' else 's'}, had {before}",
            "one call, one rank: reshape before it, or compile a function for each rank",
            "the number of dimensions is never dynamic: each one is a graph of its own",
        )
    if found:
        before, now = (_DTYPES.get(found[key], found[key]) for key in ("before", "now"))
        return Reading(
            "dtype",
            name,
            before,
            now,
            changed(f"{name}.dtype", before, now),
            f"cast {name} once before the call, to one dtype",
            "each dtype is a graph of its own; autocast, or a batch that was not converted, brings in another",
        )
    found = _GRAD.match(what)
    if found:
        before, now = ("True", "False") if found["before"] == "1" else ("False", "True")
        return Reading(
            "requires_grad",
            name,
            before,
            now,
            changed(f"{name}.requires_grad", before, now),
            f"where no gradient of {name} is wanted: {name}.detach(), or the same grad mode in every call",
            "a graph is made with a backward or without one; a model's input and its layers' outputs differ in this",
            expected=not _again(given, "requires_grad mismatch", 1),
        )
    found = _KEYS.match(what)
    if found:
        return _dispatch(name, _keys(found[1]), _keys(found[2]))
    found = _INDEX.search(what)
    if found:
        before, now = found["before"], found["now"]
        return Reading("device", name, before, now, changed(f"the device of {name}", before, now), f"keep {name} on one device")
    return None


def _along(given: Given, name: str, what: str, at: str, before: str, now: str) -> Reading:
    sentence = changed(f"{name}.{what}({at})", before, now)
    if what == "stride":
        return Reading(
            "stride",
            name,
            before,
            now,
            sentence,
            f"give {name} one memory layout: {name}.contiguous() before the call",
            "a transposed or sliced tensor has other strides than a new one",
        )
    sizes = [past for past in (_size_before(one, name, at) for one in given.history) if past is not None]
    if not sizes:
        return Reading(
            "size",
            name,
            before,
            now,
            sentence,
            f"to spare this one as well: torch._dynamo.mark_dynamic({name}, {at}) before the first call",
            "Dynamo makes a size dynamic once it has seen it change; later sizes then fit",
            expected=True,
        )
    told = trend([*sizes, before, now])
    return Reading(
        "size",
        name,
        before,
        now,
        sentence,
        f"let it be dynamic (torch._dynamo.mark_dynamic({name}, {at}), no dynamic=False), or pad to a few sizes",
        f"{f'{told}; ' if told else ''}this size stays static: dynamic=False, a parameter, or mark_static",
    )


def _size_before(past: Given, name: str, at: str) -> str | None:
    """The size that an earlier recompile's guard asked for, where it is one of the same tensor and dimension."""
    found = _TENSOR.match(past.guard)
    along = _ALONG.match(found["what"]) if found else None
    if found is None or along is None or (along["what"], along["at"]) != ("size", at) or past.name(found["name"]) != name:
        return None
    return along["before"]


def _again(given: Given, what: str, most: int) -> bool:
    return sum(what in past.guard for past in given.history) > most


def _keys(text: str) -> set[str]:
    return {key.strip() for key in text.split(",") if key.strip()}


def _dispatch(name: str, before: set[str], now: set[str]) -> Reading:
    gone, come = before - now, now - before
    devices_before, devices_now = sorted(gone & _DEVICES), sorted(come & _DEVICES)
    sparse = [key for key in (*gone, *come) if key.startswith("Sparse")]
    if sparse:
        words = ("sparse", "strided") if any(key in gone for key in sparse) else ("strided", "sparse")
        return Reading(
            "layout", name, *words, changed(f"{name}.layout", *words), f"keep {name} in one layout", "each layout has its graph"
        )
    if devices_before and devices_now:
        words = (devices_before[0].lower(), devices_now[0].lower())
        return Reading(
            "device",
            name,
            *words,
            changed(f"{name}.device", *words),
            f"keep {name} on one device; move it before the call",
            "each device is a graph of its own",
        )
    lost, got = ", ".join(sorted(gone)) or "none", ", ".join(sorted(come)) or "none"
    if any(key.startswith(("Autograd", "ADInplace")) for key in gone ^ come):
        words = ("a tensor of inference mode", "an ordinary tensor")
        if any(key.startswith(("Autograd", "ADInplace")) for key in gone):
            words = (words[1], words[0])
        return Reading(
            "inference tensor",
            name,
            *words,
            changed(name, *words),
            "call under torch.inference_mode() always, or use no_grad() instead",
            "a tensor made in inference mode carries no autograd state, and Dynamo guards on that",
        )
    if {"Conjugate", "Negative", "ZeroTensor"} & (gone ^ come):
        before_text, now_text = (lost, got)
        return Reading(
            "view",
            name,
            before_text,
            now_text,
            f"{name} is {'a lazy' if come else 'no longer a lazy'} {'conjugate' if 'Conjugate' in gone ^ come else 'negative'}"
            " view",
            f"{name}.resolve_conj() (or resolve_neg()) before the call",
        )
    return Reading(
        "dispatch", name, short(lost), short(got), f"{name} is another sort of tensor: {short(lost)} gone, {short(got)} new"
    )


def _sizes(given: Given) -> Reading | None:
    guard = given.guard
    if "size()" not in guard and "stride()" not in guard and "storage_offset()" not in guard:
        return None
    found = _RANGE.match(guard)
    if found and (found["low"] or found["high"]):
        name, low, high = given.name(found["name"]), found["low"], found["high"]
        before = f"{low} to {high}" if low and high else (f"{low} or more" if low else f"{high} or less")
        subject = f"{name}.{found['what']}({found['at']})"
        now = given.value(f"{found['name']}.{found['what']}()[{found['at']}]")
        if low == "2" and not high:
            return Reading(
                "size",
                name,
                before,
                now,
                f"{subject} is {now or '0 or 1'}, the graph is for 2 and more",
                f"avoid a size of 1 there, or torch._dynamo.decorators.mark_unbacked({name}, {found['at']})",
                "0 and 1 are never dynamic: Dynamo makes a graph of its own for each",
                expected=True,
            )
        return Reading(
            "size",
            name,
            before,
            now,
            f"{subject} is {now or 'something else'}, the graph is for {before}",
            "nothing if each branch of the code has its graph once; else take the branch on the size out of the function",
            "the code, or an operation in it, goes another way for other sizes",
        )
    found = _PARTS.match(guard)
    if found:
        name = given.name(found["name"])
        subject, now = f"{name}.size({found['at']})", given.value(f"{found['name']}.size()[{found['at']}]")
        before = f"divisible by {found['by']}"
        is_now = f" ({now})" if now else ""
        return Reading(
            "size",
            name,
            before,
            now,
            f"{subject} is no longer {before}{is_now}",
            f"pad it to a multiple of {found['by']}",
            "the code, or an operation in it, asks whether the size divides",
        )
    found = _EXACT.match(guard)
    if found:
        name, before = given.name(found["name"]), found["before"]
        now = given.value(f"{found['name']}.{found['what']}()[{found['at']}]")
        return Reading(
            "size" if found["what"] == "size" else "stride",
            name,
            before,
            now,
            changed(f"{name}.{found['what']}({found['at']})", before, now),
            "let the size be dynamic, or pad to a few sizes",
            "the code needs this size as a number",
        )
    names = list(dict.fromkeys(given.name(match["name"]) for match in _OF_SIZE.finditer(guard)))
    if not names:
        return None
    relation = short(plain(given.name(guard)), 80)
    return Reading(
        "size",
        names[0],
        relation,
        None,
        f"sizes of {' and '.join(names[:3])} no longer hold {relation}",
        "keep the relation between the sizes, or branch on it outside the compiled function",
        "the graph was made for sizes that stand in this relation",
    )
