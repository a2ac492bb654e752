# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of any kind as addresses: NumPy's, torch's, and all that has the buffer protocol."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Tuple

from . import _ffi

_TYPES = {
    "f4": _ffi.TRIB_F32,
    "f8": _ffi.TRIB_F64,
    "f2": _ffi.TRIB_F16,
    "i1": _ffi.TRIB_I8,
    "i2": _ffi.TRIB_I16,
    "i4": _ffi.TRIB_I32,
    "i8": _ffi.TRIB_I64,
    "u1": _ffi.TRIB_U8,
    "u2": _ffi.TRIB_U16,
    "u4": _ffi.TRIB_U32,
    "u8": _ffi.TRIB_U64,
    "b1": _ffi.TRIB_BOOL,
}
_TORCH = {
    "float32": _ffi.TRIB_F32,
    "float64": _ffi.TRIB_F64,
    "float16": _ffi.TRIB_F16,
    "bfloat16": _ffi.TRIB_BF16,
    "int8": _ffi.TRIB_I8,
    "int16": _ffi.TRIB_I16,
    "int32": _ffi.TRIB_I32,
    "int64": _ffi.TRIB_I64,
    "uint8": _ffi.TRIB_U8,
    "bool": _ffi.TRIB_BOOL,
}
_FORMATS = dict(
    f="f4", d="f8", e="f2", b="i1", h="i2", i="i4", B="u1", H="u2", I="u4", q="i8", Q="u8"
)
_FORMATS.update({"?": "b1", "l": f"i{ctypes.sizeof(ctypes.c_long)}", "c": "u1"})
_FORMATS["L"] = f"u{ctypes.sizeof(ctypes.c_long)}"


@dataclass
class Buffer:
    """Memory of an array; `owner` keeps it alive."""

    address: int
    count: int
    dtype: int
    shape: Tuple[int, ...]
    writable: bool
    owner: Any

    @property
    def nbytes(self) -> int:
        from ._library import lib

        size: int = lib.trib_dtype_size(self.dtype)
        return self.count * size


def _count(shape: Tuple[int, ...]) -> int:
    n = 1
    for length in shape:
        n *= length
    return n


def _instead(name: str) -> str:
    """What to do with elements of a kind that has no sum here."""
    if name.startswith("complex"):
        return ": sum its real and imaginary parts, such as x.view of floats of half the size"
    if name in ("float96", "float128"):
        return ": the widest type is float64"
    if name.startswith("void"):
        return ": sum its fields one by one"
    return ""


def _of_torch(x: Any) -> Buffer:
    name = str(x.dtype).replace("torch.", "")
    if x.device.type != "cpu":
        raise TypeError(f"a tensor on {x.device}: copy it to the CPU first")
    if str(x.layout) != "torch.strided":
        raise TypeError(f"a tensor of layout {x.layout}: only strided ones have an address")
    if not x.is_contiguous():
        raise TypeError("the tensor is not contiguous: call .contiguous()")
    if name not in _TORCH:
        raise TypeError(f"tensors of {name} cannot be summed{_instead(name)}")
    if x.is_neg():
        raise TypeError("the tensor's memory has the negative of its elements: call .resolve_neg()")
    return Buffer(x.data_ptr(), x.numel(), _TORCH[name], tuple(x.shape), True, x)


def _of_interface(x: Any) -> Buffer:
    what = x.__array_interface__
    text, shape = str(what["typestr"]), tuple(what["shape"])
    strides = what.get("strides")
    if getattr(getattr(x, "dtype", None), "name", "") == "bfloat16":
        dtype = _ffi.TRIB_BF16
    elif text[1:] in _TYPES:
        dtype = _TYPES[text[1:]]
    else:
        name = getattr(getattr(x, "dtype", None), "name", text)
        raise TypeError(f"arrays of {name} cannot be summed{_instead(name)}")
    size = int(text[2:])
    if text[0] == ">" and size > 1:
        raise TypeError("the array has the other order of bytes: call .byteswap() and a view")
    if strides is not None:
        dense = size
        for length, stride in zip(reversed(shape), reversed(strides)):
            if length > 1 and stride != dense:
                raise TypeError("the array is not C-contiguous: numpy.ascontiguousarray makes one")
            dense *= length
    address, read_only = what["data"]
    return Buffer(address, _count(shape), dtype, shape, not read_only, x)


def _of_view(x: Any) -> Buffer:
    try:
        view = memoryview(x)
    except TypeError:
        raise TypeError(f"{type(x).__name__} has neither an array interface nor a buffer") from None
    text = view.format.lstrip("@=<")
    if not view.c_contiguous:
        raise TypeError("the buffer is not C-contiguous")
    if text not in _FORMATS:
        raise TypeError(f"elements of format {view.format!r} cannot be summed")
    if view.readonly:
        raise TypeError("the buffer is read-only: copy it into a bytearray or an array")
    raw = view.cast("B") if view.nbytes else view
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw)) if view.nbytes else 0
    shape = tuple(view.shape or ())
    return Buffer(address, _count(shape), _TYPES[_FORMATS[text]], shape, True, (x, view))


def buffer_of(x: Any, writable: bool = False) -> Buffer:
    """The memory of an array. TypeError says what is wrong with it."""
    if type(x).__module__.split(".")[0] == "torch" and hasattr(x, "data_ptr"):
        b = _of_torch(x)
    elif hasattr(x, "__array_interface__"):
        b = _of_interface(x)
    else:
        b = _of_view(x)
    if writable and not b.writable:
        raise TypeError("the array is read-only, and the result goes there")
    return b


def empty_like(x: Any, shape: Tuple[int, ...]) -> Any:
    """An array of x's kind and element type, of another shape."""
    if type(x).__module__.split(".")[0] == "torch":
        return x.new_empty(shape)
    import numpy  # pylint: disable=import-outside-toplevel

    return numpy.empty(shape, dtype=getattr(x, "dtype", None) or memoryview(x).format)
