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

/* Throws "the backend tributary wants …" unless it holds. */
void demand(bool holds, const char *what);

trib_op_t op_of(const c10d::ReduceOp &op);

/* What is summed of a tensor; a complex number is two, and has a sum and a mean. */
Elements elements(const at::Tensor &tensor, trib_op_t op);

/* What is moved of a tensor: elements, so that a rank that has others hears so, and bytes
 * of types that the library lacks. */
Elements moved(const at::Tensor &tensor);

/* Throws unless both are of one type. */
void demand_one_type(const at::Tensor &a, const at::Tensor &b);

/* The only tensor of a list: a rank has one device. */
const at::Tensor &one(const std::vector<at::Tensor> &tensors);

/*
 * The elements of a tensor in one block, as they are: the tensor itself, or a copy
 * where it is not contiguous, or is the conjugate or the negative of what its memory has.
 */
at::Tensor dense(const at::Tensor &tensor);

/* Copies a block back to the tensor whose dense() it is; empty if nothing is to be. */
std::function<void()> write_back(const at::Tensor &block, const at::Tensor &tensor);

/* Tensors of one element type in one block: the tensor itself if it is one that is
 * contiguous. */
struct Packed {
    explicit Packed(const std::vector<at::Tensor> &tensors);
    std::function<void()> unpack() const; /* empty if nothing is to be copied */

    at::Tensor memory;
    std::vector<at::Tensor> tensors;
};

/* Throws unless a list has tensors, all dense and of one shape and type. */
void demand_list_alike(const std::vector<at::Tensor> &list);

/* Throws unless a list has `size` tensors of the length and type of `each`. */
void demand_alike(const std::vector<at::Tensor> &list, const at::Tensor &each,
                  int size);

/* The tensors of a list combined by an operator, which is no mean, in new memory. */
at::Tensor combined(const std::vector<at::Tensor> &list, trib_op_t op);

/* Memory for `size` blocks that are like `each`. */
at::Tensor blocks_like(const at::Tensor &each, int size);
void copy_blocks(const at::Tensor &from, const std::vector<at::Tensor> &outputs);

/* `size` inputs, all alike `each`, behind one another. */
at::Tensor joined(const std::vector<at::Tensor> &inputs, const at::Tensor &each,
                  int size);

/* The same for tensors of any lengths and types, as bytes. */
at::Tensor bytes_for(const std::vector<at::Tensor> &tensors);
at::Tensor bytes_joined(const std::vector<at::Tensor> &tensors);
void copy_bytes(const at::Tensor &from, const std::vector<at::Tensor> &tensors);

/* What is moved of the rows of a tensor that go to or come from each rank; no splits: all
 * alike. */
std::vector<size_t> moved_of_rows(const at::Tensor &tensor,
                                  const std::vector<int64_t> &splits, int size);

} // namespace tributary

#endif
