/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tensors as vectors of the library: element types, operators, and lists of tensors as
 * one block of memory.
 */
#ifndef TRIBUTARY_TORCH_MEMORY_H
#define TRIBUTARY_TORCH_MEMORY_H

#include <functional>
#include <vector>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <tributary/types.h>

namespace tributary {

struct Elements {
    size_t count;
    trib_dtype_t dtype;
    trib_op_t op;
};

/* Throw "the backend tributary requires …" unless `holds`. */
void require(bool holds, const char *what);

trib_op_t op_of(const c10d::ReduceOp &op);

/* Return how a tensor is reduced. A complex number counts as two elements, for sum and
 * mean only. Throws if the library cannot reduce it. */
Elements elements(const at::Tensor &tensor, trib_op_t op);

/* Return how a tensor is moved without a reduction: as elements, so that the library
 * detects different types on other ranks; as bytes if the library lacks the type. */
Elements moved(const at::Tensor &tensor);

/* Throw unless both have the same type. */
void require_one_type(const at::Tensor &a, const at::Tensor &b);

/* Return the only tensor of a list: a rank has one device. */
const at::Tensor &one(const std::vector<at::Tensor> &tensors);

/*
 * Return a contiguous tensor of the same values: the tensor itself, or a copy if it is
 * not contiguous or is a lazy conjugate or negative of its memory.
 */
at::Tensor dense(const at::Tensor &tensor);

/* Return a function that copies block = dense(tensor) back; empty if both are one. */
std::function<void()> write_back(const at::Tensor &block, const at::Tensor &tensor);

/* Tensors of one element type, packed into one block. A single contiguous tensor is not
 * copied. */
struct Packed {
    explicit Packed(const std::vector<at::Tensor> &tensors);
    std::function<void()> unpack() const; /* empty if nothing was copied */

    at::Tensor memory;
    std::vector<at::Tensor> tensors;
};

/* Throw unless a list has tensors, all dense and of one shape and type. */
void require_list_alike(const std::vector<at::Tensor> &list);

/* Throw unless a list has `size` tensors of the length and type of `each`. */
void require_alike(const std::vector<at::Tensor> &list, const at::Tensor &each,
                   int size);

/* Reduce the tensors of a list with each other, into new memory. Throws for mean. */
at::Tensor combined(const std::vector<at::Tensor> &list, trib_op_t op);

/* Allocate `size` blocks like `each`; copy the blocks to the tensors of a list. */
at::Tensor blocks_like(const at::Tensor &each, int size);
void copy_blocks(const at::Tensor &from, const std::vector<at::Tensor> &outputs);

/* Concatenate `size` inputs, all like `each`. */
at::Tensor joined(const std::vector<at::Tensor> &inputs, const at::Tensor &each,
                  int size);

/* The same for tensors of any lengths and types, as bytes. */
at::Tensor bytes_for(const std::vector<at::Tensor> &tensors);
at::Tensor bytes_joined(const std::vector<at::Tensor> &tensors);
void copy_bytes(const at::Tensor &from, const std::vector<at::Tensor> &tensors);

/* Return the elements, as of moved(), of each rank's rows of a tensor. splits: rows for
 * each rank; empty: equally many. */
std::vector<size_t> moved_of_rows(const at::Tensor &tensor,
                                  const std::vector<int64_t> &splits, int size);

} // namespace tributary

#endif
