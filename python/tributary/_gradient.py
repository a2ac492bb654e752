# SPDX-License-Identifier: BSD-3-Clause
"""The gradient of a parameter of Fed, and the memory in which it is summed."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Gradient:
    """A parameter, and the memory of its gradient."""

    index: int  # in the group
    name: str
    parameter: Any
    sums: Any  # what the ranks sum, and the sum: of the parameter's shape, in C order
    codec: str
    rest: Any = None  # with in_grad: what the codec holds back, to which backward() adds
    fed: bool = False  # its sum is under way
    version: int = 0  # of its memory when the sum began, or the rest was last used
    owes: bool = False  # a codec may hold back some of it, so it has a sum in each step
    pending: bool = False  # backward() is about to add to it
    added: bool = False  # under no_sync(), since the last sum
    hooks: Any = ()
    shown: Any = None  # the p.grad that show() has made,
    shown_in: Any = None  # in this memory,
    address: int = 0  # which is there

    def __post_init__(self) -> None:
        self.memory = self.sums if self.rest is None else self.rest  # its contribution's

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
        """Make p.grad a new tensor in that memory, which the user may change."""
        if not self.lies_in(memory):
            self.shown, self.shown_in = memory.view(memory.shape), memory
            self.address = self.shown.data_ptr()
            self.parameter.grad = self.shown

    def collect(self) -> bool:
        """Copy p.grad into the memory that is summed, if it lies elsewhere. False: there is
        no gradient."""
        grad = self.parameter.grad
        if grad is None:
            if self.rest is None:
                self.sums.zero_()
            return False
        if self.lies_in(self.memory):
            return True
        self._demand_summable(grad)
        with torch.no_grad():
            if self.rest is not None:
                self.rest.add_(grad)
                self.sums.zero_()  # the library clears only the elements that it has written
            elif grad.layout is torch.strided:
                self.sums.copy_(grad)
            else:
                self.sums.zero_().add_(grad)
        self.show(self.memory)
        return True

    def _demand_summable(self, grad: Any) -> None:
        if grad.dtype != torch.float32 or grad.device.type != "cpu" or (
                grad.shape != self.sums.shape):
            raise TypeError(f"the gradient of {self.name} is now {grad.dtype} of shape "
                            f"{tuple(grad.shape)} on {grad.device}, and Fed was made for float32 "
                            f"of shape {tuple(self.sums.shape)} on the CPU: close() it, and make "
                            "it anew after the model has changed")

    def changed(self) -> bool:
        """Whether somebody has written to the gradient, or replaced it, since it was fed."""
        return not self.lies_in(self.memory) or self.memory._version != self.version
