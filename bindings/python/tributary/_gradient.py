# SPDX-License-Identifier: BSD-3-Clause
"""The gradient of one parameter of Fed, and the memory that it is summed in."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Gradient:
    """A parameter and the memory of its gradient."""

    index: int  # of its tensor in the trib_group
    name: str
    parameter: Any
    sums: Any  # input and result of the sum: the parameter's shape, in C order
    codec: str
    residual: Any = None  # with in_grad: the codec's residual, to which backward() adds
    submitted: bool = False  # marked as ready: its sum is pending
    version: int = 0  # of its memory when the sum began, or residual was last used
    may_have_residual: bool = False  # the codec may have a residual, so every step sums it
    pending: bool = False  # backward() is about to add to it
    added: bool = False  # to, under no_sync(), since the last sum
    hooks: Any = ()
    shown: Any = None  # the tensor that show() has assigned to p.grad,
    shown_in: Any = None  # a view of this memory,
    address: int = 0  # at this address

    def __post_init__(self) -> None:
        # Memory of this rank's contribution.
        self.memory = self.sums if self.residual is None else self.residual

    def lies_in(self, memory: Any) -> bool:
        grad = self.parameter.grad
        if grad is None:
            return False
        if grad is self.shown and memory is self.shown_in:
            at: bool = grad.data_ptr() == self.address
            return at
        return (grad.layout is torch.strided and grad.data_ptr() == memory.data_ptr()
                and grad.dtype == memory.dtype and grad.stride() == memory.stride())

    def show(self, memory: Any) -> None:
        """Make p.grad a new view of `memory`, unless it is one. The user may change it."""
        if not self.lies_in(memory):
            self.shown, self.shown_in = memory.view(memory.shape), memory
            self.address = self.shown.data_ptr()
            self.parameter.grad = self.shown

    def collect(self) -> bool:
        """Copy p.grad into the memory that is summed, if it lies elsewhere. Return False if
        the parameter has no gradient."""
        grad = self.parameter.grad
        if grad is None:
            if self.residual is None:
                self.sums.zero_()
            return False
        if self.lies_in(self.memory):
            return True
        self._require_summable(grad)
        with torch.no_grad():
            if self.residual is not None:
                self.residual.add_(grad)
                self.sums.zero_()  # the library clears only elements that it wrote itself
            elif grad.layout is torch.strided:
                self.sums.copy_(grad)
            else:
                self.sums.zero_().add_(grad)
        self.show(self.memory)
        return True

    def _require_summable(self, grad: Any) -> None:
        if grad.dtype != torch.float32 or grad.device.type != "cpu" or (
                grad.shape != self.sums.shape):
            raise TypeError(f"the gradient of {self.name} is now {grad.dtype} of shape "
                            f"{tuple(grad.shape)} on {grad.device}, but Fed was created for "
                            f"float32 of shape {tuple(self.sums.shape)} on the CPU: after a change "
                            "of the model, close() Fed and create a new one")

    def changed(self) -> bool:
        """Return whether p.grad was written to or replaced since its sum began."""
        return not self.lies_in(self.memory) or self.memory._version != self.version
