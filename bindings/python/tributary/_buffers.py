# SPDX-License-Identifier: BSD-3-Clause
"""Addresses of NumPy arrays, PyTorch CPU tensors, and objects with the buffer protocol.

Only memory that the object owns or keeps alive is accepted. An object that describes its
memory only by __array_interface__, __array__ or __dlpack__, such as a NumPy scalar or an
array wrapper, may describe a temporary copy that is freed at once.
"""
from __future__ import annotations

import ctypes
import sys
import weakref
from dataclasses import dataclass, field
from typing import Any, List, Optional, Tuple

from . import _ffi
from ._library import lib

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
_SIZES = {dtype: int(lib.trib_dtype_size(dtype)) for dtype in range(_ffi.TRIB_DTYPE_COUNT)}
# Kinds of elements by format character of the buffer protocol. The size is the buffer's
# itemsize, because "l" has 4 or 8 bytes depending on the exporter.
_KINDS = {**dict.fromkeys("efd", "f"), **dict.fromkeys("bhilq", "i"),
          **dict.fromkeys("BHILQc", "u"), "?": "b"}


@dataclass
class Buffer:
    """Memory of an array. `owner` keeps the memory alive and in place."""

    address: int
    count: int
    dtype: int
    shape: Tuple[int, ...]
    writable: bool
    array: Any
    owner: Any = None
    pins: List[Any] = field(default_factory=list)

    def pin(self) -> None:
        """Prevent a resize of the array while this buffer exists. A tensor can never be resized
        again."""
        if _is_tensor(self.array):
            flat = self.array.detach()
            bits = getattr(sys.modules["torch"], "int16")
            try:  # torch makes a storage that NumPy shares non-resizable
                self.pins.append((flat.view(bits) if self.dtype == _ffi.TRIB_BF16
                                  else flat).numpy())
            except RuntimeError:  # torch was built without NumPy
                self.pins.append(flat)
        elif _is_array(self.array):
            self.pins.append(weakref.ref(self.array))  # makes ndarray.resize raise

    def write(self) -> None:
        """Tell autograd that the library writes the memory: bump the tensor's version, so
        that back-propagation rejects an old value that it has saved."""
        if _is_tensor(self.array):
            self.array.detach().transpose_(0, 0)


def dtype_name(dtype: int) -> str:
    """Return the library's name of an element type, such as "f32"."""
    name: bytes = lib.trib_dtype_name(dtype)
    return name.decode()


def _loaded(module: str, name: str) -> Any:
    """Return a class of a module; () for isinstance if the program has not imported it."""
    return getattr(sys.modules.get(module), name, ())


def _is_tensor(x: Any) -> bool:
    return isinstance(x, _loaded("torch", "Tensor"))


def _is_array(x: Any) -> bool:
    return isinstance(x, _loaded("numpy", "ndarray"))


def _is_scalar(x: Any) -> bool:
    return isinstance(x, _loaded("numpy", "generic"))


def _count(shape: Tuple[int, ...]) -> int:
    n = 1
    for length in shape:
        n *= length
    return n


def remedy_for(name: str) -> str:
    """Return the end of an error message: the remedy for an unsupported element type."""
    if name.startswith("complex"):
        return ": sum its real and imaginary parts, as a view of floats of half the size"
    if name in ("float96", "float128"):
        return ": the widest type is float64"
    if name.startswith("void"):
        return ": sum its fields one by one"
    return ""


def _refuse_tensor(x: Any) -> None:
    """Raise TypeError unless x is a contiguous CPU tensor outside of any graph, whose memory
    holds its elements as they are."""
    torch = sys.modules["torch"]
    if x.is_nested or type(x).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise TypeError(f"a {'nested tensor' if x.is_nested else type(x).__name__} has no memory "
                        "of its own: pass the tensors that it consists of")
    if x.device.type == "meta":
        raise TypeError("a tensor on meta has no elements")
    if x.device.type != "cpu":
        raise TypeError(f"the tensor is on {x.device}: copy it to the CPU first")
    if x.layout is not torch.strided:
        raise TypeError(f"the tensor has layout {x.layout}: only strided tensors have an address")
    if not x.is_contiguous():
        raise TypeError("the tensor is not contiguous: call .contiguous()")
    if x.is_neg():
        raise TypeError("the tensor's memory holds the negatives of its elements: call "
                        ".resolve_neg()")
    if x.grad_fn is not None and torch.is_grad_enabled():
        raise TypeError("the tensor is part of a graph, but the call does not propagate gradients: "
                        "pass x.detach(), or call under torch.no_grad()")


def _of_torch(x: Any) -> Buffer:
    try:
        _refuse_tensor(x)
        name = str(x.dtype).replace("torch.", "")
        if name not in _TORCH:
            raise TypeError(f"tensors of {name} cannot be summed{remedy_for(name)}")
        b = Buffer(x.data_ptr(), x.numel(), _TORCH[name], tuple(x.shape), True, x)
        size = x.element_size()
        storage = (x.untyped_storage() if hasattr(x, "untyped_storage") else x.storage()).nbytes()
    except (RuntimeError, ValueError, NotImplementedError) as why:
        raise TypeError(f"torch does not give the memory of a {type(x).__name__}: {why}") from None
    if (x.storage_offset() + b.count) * size > storage and b.count:
        raise TypeError(f"the tensor has {b.count} elements, but its storage was resized to "
                        f"{storage} bytes")
    return b


def _of_array(x: Any) -> Buffer:
    numpy = sys.modules["numpy"]
    if isinstance(x, numpy.ma.MaskedArray):
        raise TypeError("the array is masked, and the sum would include masked elements: pass "
                        "x.filled(value)")
    dtype = _TYPES.get(x.dtype.str[1:])
    if dtype is None:
        name = x.dtype.name
        dtype = _ffi.TRIB_BF16 if name == "bfloat16" else None
    if dtype is None:
        kind = "void" if x.dtype.names else name
        raise TypeError(f"arrays of {name} cannot be summed{remedy_for(kind)}")
    if not x.dtype.isnative:
        raise TypeError("the array is not in native byte order: pass "
                        "x.astype(x.dtype.newbyteorder('='))")
    if not x.flags.c_contiguous:
        raise TypeError("the array is not C-contiguous: pass numpy.ascontiguousarray(x)")
    return Buffer(x.__array_interface__["data"][0], x.size, dtype, x.shape, x.flags.writeable, x)


def _of_view(x: Any) -> Buffer:
    try:
        view = memoryview(x)
    except TypeError:
        if any(hasattr(x, n) for n in ("__array_interface__", "__array__", "__dlpack__")):
            raise TypeError(f"{type(x).__name__} may describe a copy that is freed at once: pass "
                            "numpy.asarray(x)") from None
        raise TypeError(f"{type(x).__name__} supports neither the array interface nor the buffer "
                        "protocol") from None
    except (ValueError, BufferError) as why:
        raise TypeError(f"{type(x).__name__} provides no buffer: {why}") from None
    text = view.format.lstrip("@=<")
    if not view.c_contiguous:
        raise TypeError("the buffer is not C-contiguous")
    kind = f"{_KINDS.get(text)}{view.itemsize}"
    if kind not in _TYPES:
        raise TypeError(f"elements of format {view.format!r} cannot be summed")
    if view.readonly:
        raise TypeError("the buffer is read-only: copy it into a bytearray or an array")
    raw = view.cast("B") if view.nbytes else view
    address = ctypes.addressof(ctypes.c_char.from_buffer(raw)) if view.nbytes else 0
    shape = tuple(view.shape or ())
    return Buffer(address, _count(shape), _TYPES[kind], shape, True, x, view)


def buffer_of(x: Any, writable: bool = False) -> Buffer:
    """Return the memory of an array. Raise TypeError if the library cannot use it.

    writable  it is for a result, so read-only memory is rejected
    """
    if _is_tensor(x):
        b = _of_torch(x)
    elif _is_array(x):
        b = _of_array(x)
    elif _is_scalar(x):
        if writable:
            raise TypeError(f"a NumPy {type(x).__name__} is read-only and cannot receive the "
                            "result: pass an array")
        b = _of_array(array_of(x))
    else:
        b = _of_view(x)
    if writable and not b.writable:
        raise TypeError("the array is read-only and cannot receive the result")
    if b.address % _SIZES[b.dtype] and b.count:
        raise TypeError(f"the array begins at {b.address:#x}, which is not aligned for "
                        f"{dtype_name(b.dtype)}: pass a copy")
    return b


def array_of(x: Any) -> Any:
    """Return x, or, of a NumPy scalar such as y.mean(), a 0-d array with a copy of it."""
    return sys.modules["numpy"].array(x) if _is_scalar(x) else x


def result_of(array: Any, x: Any) -> Any:
    """Return the current value of array = array_of(x): the array, or a NumPy scalar."""
    return array if array is x else array[()]


def empty_like(x: Any, b: Buffer, shape: Tuple[int, ...]) -> Any:
    """Return an uninitialized array of x's kind and element type with another shape."""
    if _is_tensor(x):
        return x.new_empty(shape)
    import numpy  # pylint: disable=import-outside-toplevel

    names = {number: name for name, number in _TYPES.items()}
    return numpy.empty(shape, dtype=getattr(x, "dtype", None) or names[b.dtype])
