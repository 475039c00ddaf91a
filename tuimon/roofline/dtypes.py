"""Number formats by the names that graphs and traces have for them: how wide they are and of what kind.

Graphs' texts say "f32" and "b8" (torch.utils._dtype_abbrs), Kineto "float", "c10::BFloat16" and "long int", the code of a
user "torch.float32".
"""

from __future__ import annotations

_EIGHT = ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")

_BITS: dict[str, int] = {
    "f64": 64, "f32": 32, "f16": 16, "bf16": 16,
    "f8e4m3fn": 8, "f8e5m2": 8, "f8e4m3fnuz": 8, "f8e5m2fnuz": 8, "f8e8m0fnu": 8, "f4e2m1fnx2": 8,
    "c32": 32, "c64": 64, "c128": 128,
    "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64, "b8": 8,
    "qi8": 8, "qu8": 8, "qi32": 32,
    **{f"{kind}{n}": n for kind in ("i", "u") for n in range(1, 8)},
}  # fmt: skip
"""Bits of one element. A shell of two four-bit floats ("x2") is one element of eight bits, as its sizes count it."""

_ALSO: dict[str, str] = {
    "float64": "f64", "double": "f64", "float32": "f32", "float": "f32", "float16": "f16", "half": "f16", "c10::half": "f16",
    "bfloat16": "bf16", "c10::bfloat16": "bf16",
    "complexhalf": "c32", "complex32": "c32", "c10::complex<c10::half>": "c32",
    "complexfloat": "c64", "complex64": "c64", "c10::complex<float>": "c64", "std::complex<float>": "c64",
    "complexdouble": "c128", "complex128": "c128", "c10::complex<double>": "c128", "std::complex<double>": "c128",
    "char": "i8", "signed char": "i8", "int8": "i8",
    "short": "i16", "short int": "i16", "int16": "i16", "int": "i32", "int32": "i32",
    "long": "i64", "long int": "i64", "long long": "i64", "int64": "i64",
    "unsigned char": "u8", "byte": "u8", "uint8": "u8", "unsigned short": "u16", "short unsigned int": "u16", "uint16": "u16",
    "unsigned int": "u32", "uint32": "u32", "unsigned long": "u64", "long unsigned int": "u64", "uint64": "u64", "bool": "b8",
    "c10::qint8": "qi8", "qint8": "qi8", "c10::quint8": "qu8", "quint8": "qu8", "c10::qint32": "qi32", "qint32": "qi32",
    **{f"{at}float8_{kind}": f"f8{kind}" for at in ("", "c10::") for kind in _EIGHT},
    **{f"{at}float4_e2m1fn_x2": "f4e2m1fnx2" for at in ("", "c10::")}, "f4e2m1fn_x2": "f4e2m1fnx2",
    **{f"{kind}nt{n}": f"{kind[0]}{n}" for kind in ("i", "ui") for n in range(1, 8)},
}  # fmt: skip


def short(dtype: str) -> str:
    """The name that graphs' texts have for it: "c10::BFloat16" and "torch.bfloat16" are "bf16". Unknown ones as they are."""
    name = dtype.strip().removeprefix("torch.").lower()
    return _ALSO.get(name, name)


def bits(dtype: str) -> int | None:
    """Width of one element, None for a type that is not known."""
    return _BITS.get(short(dtype))


def is_complex(dtype: str) -> bool:
    return short(dtype) in ("c32", "c64", "c128")


def is_float(dtype: str) -> bool:
    """Real or complex floats; a type that is not known counts as one."""
    name = short(dtype)
    return name not in _BITS or name[0] in "fc" or name == "bf16"


def packed(dtype: str) -> int:
    """How many numbers one element holds: two in a shell of four-bit floats, else one."""
    return 2 if short(dtype) == "f4e2m1fnx2" else 1
