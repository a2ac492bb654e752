/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/python/backend/torch_memory.hpp"

#include <cstring>
#include <numeric>

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>

namespace tributary {

void require(bool holds, const char *what)
{
    TORCH_CHECK(holds, "the backend tributary requires ", what);
}

trib_op_t op_of(const c10d::ReduceOp &op)
{
    switch (op.op_) {
    case c10d::ReduceOp::SUM:
        return TRIB_SUM;
    case c10d::ReduceOp::AVG:
        return TRIB_MEAN;
    case c10d::ReduceOp::PRODUCT:
        return TRIB_PROD;
    case c10d::ReduceOp::MIN:
        return TRIB_MIN;
    case c10d::ReduceOp::MAX:
        return TRIB_MAX;
    case c10d::ReduceOp::BAND:
        return TRIB_BAND;
    case c10d::ReduceOp::BOR:
        return TRIB_BOR;
    case c10d::ReduceOp::BXOR:
        return TRIB_BXOR;
    default:
        require(false, "another operator: PREMUL_SUM is not supported");
        return TRIB_SUM;
    }
}

/* TRIB_DTYPE_COUNT: the library lacks the type. */
static trib_dtype_t dtype_of(at::ScalarType type)
{
    switch (type) {
    case at::kFloat:
        return TRIB_F32;
    case at::kDouble:
        return TRIB_F64;
    case at::kHalf:
        return TRIB_F16;
    case at::kBFloat16:
        return TRIB_BF16;
    case at::kChar:
        return TRIB_I8;
    case at::kByte:
        return TRIB_U8;
    case at::kShort:
        return TRIB_I16;
    case at::kInt:
        return TRIB_I32;
    case at::kLong:
        return TRIB_I64;
    case at::kBool:
        return TRIB_BOOL;
    default:
        return TRIB_DTYPE_COUNT;
    }
}

Elements elements(const at::Tensor &tensor, trib_op_t op)
{
    const Elements e = moved(tensor);

    TORCH_CHECK(e.dtype == dtype_of(c10::toRealValueType(tensor.scalar_type())),
                "the backend tributary cannot reduce elements of type ",
                c10::toString(tensor.scalar_type()));
    require(!tensor.is_complex() || op == TRIB_SUM || op == TRIB_MEAN,
            "SUM or AVG for complex numbers");
    return {e.count, e.dtype, op};
}

Elements moved(const at::Tensor &tensor)
{
    const trib_dtype_t dtype = dtype_of(c10::toRealValueType(tensor.scalar_type()));
    const size_t count = static_cast<size_t>(tensor.numel());

    if (dtype == TRIB_DTYPE_COUNT)
        return {tensor.nbytes(), TRIB_U8, TRIB_SUM};
    return {tensor.is_complex() ? 2 * count : count, dtype, TRIB_SUM};
}

static void require_reachable(const at::Tensor &tensor)
{
    TORCH_CHECK(tensor.device().is_cpu() && !tensor.is_sparse(),
                "the backend tributary requires dense CPU tensors, not one on ",
                tensor.device(),
                tensor.is_sparse() ? ", sparse (only a sum of one tensor may be sparse; "
                                     "sparse=False of nn.Embedding avoids it)"
                                   : "");
    TORCH_CHECK(tensor.layout() == at::kStrided && !tensor.is_nested(),
                "the backend tributary requires dense tensors; this one is ",
                tensor.is_nested() ? "nested" : c10::str(tensor.layout()));
    const size_t bytes =
        at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
                                         tensor.itemsize(), tensor.storage_offset());
    TORCH_CHECK(tensor.numel() == 0 || tensor.storage().nbytes() >= bytes,
                "the backend tributary got a tensor of ", tensor.numel(),
                " elements whose storage was resized to ", tensor.storage().nbytes(),
                " bytes");
}

at::Tensor dense(const at::Tensor &tensor)
{
    require_reachable(tensor);
    return tensor.resolve_conj().resolve_neg().contiguous();
}

std::function<void()> write_back(const at::Tensor &block, const at::Tensor &tensor)
{
    if (block.is_same(tensor))
        return nullptr;
    return [block, tensor] { tensor.copy_(block); };
}

void require_one_type(const at::Tensor &a, const at::Tensor &b)
{
    require(a.scalar_type() == b.scalar_type(), "inputs and outputs of the same type");
}

const at::Tensor &one(const std::vector<at::Tensor> &tensors)
{
    require(tensors.size() == 1, "exactly one tensor in each list");
    require_reachable(tensors[0]);
    return tensors[0];
}

Packed::Packed(const std::vector<at::Tensor> &list) : tensors(list)
{
    require(!list.empty(), "at least one tensor");
    for (const at::Tensor &each : list) {
        require_reachable(each);
        require(each.scalar_type() == list[0].scalar_type(),
                "tensors of the same type");
    }
    if (list.size() == 1) {
        memory = dense(list[0]);
        return;
    }
    std::vector<at::Tensor> flat;
    for (const at::Tensor &each : list)
        flat.push_back(dense(each).reshape({-1}));
    memory = at::cat(flat);
}

std::function<void()> Packed::unpack() const
{
    if (tensors.size() == 1 && tensors[0].is_same(memory))
        return nullptr;
    return [memory = memory, tensors = tensors] {
        int64_t at = 0;
        for (const at::Tensor &each : tensors) {
            const at::Tensor part =
                memory.reshape({-1}).narrow(0, at, each.numel()).reshape(each.sizes());
            each.copy_(part);
            at += each.numel();
        }
    };
}

void require_list_alike(const std::vector<at::Tensor> &list)
{
    require(!list.empty(), "at least one tensor");
    for (const at::Tensor &each : list) {
        require_reachable(each);
        require(
            each.sizes() == list[0].sizes() &&
                each.scalar_type() == list[0].scalar_type(),
            "tensors of the same shape and type in a list, which it reduces with each "
            "other (use all_reduce_coalesced for separate reductions)");
    }
}

void require_alike(const std::vector<at::Tensor> &list, const at::Tensor &each,
                   int size)
{
    require(list.size() == static_cast<size_t>(size), "a tensor for each rank");
    require_reachable(each);
    for (const at::Tensor &tensor : list) {
        require_reachable(tensor);
        require(tensor.numel() == each.numel() &&
                    tensor.scalar_type() == each.scalar_type(),
                "tensors of the same length and type on all ranks");
    }
}

static void combine(at::Tensor &into, const at::Tensor &with, trib_op_t op)
{
    switch (op) {
    case TRIB_SUM:
        into.add_(with);
        break;
    case TRIB_PROD:
        into.mul_(with);
        break;
    case TRIB_MIN:
        into = at::minimum(into, with);
        break;
    case TRIB_MAX:
        into = at::maximum(into, with);
        break;
    case TRIB_BAND:
        into.bitwise_and_(with);
        break;
    case TRIB_BOR:
        into.bitwise_or_(with);
        break;
    case TRIB_BXOR:
        into.bitwise_xor_(with);
        break;
    default:
        require(false, "a single tensor, not a list, for a mean");
    }
}

at::Tensor combined(const std::vector<at::Tensor> &list, trib_op_t op)
{
    require_list_alike(list);
    at::Tensor whole = dense(list[0]).clone(at::MemoryFormat::Contiguous);

    for (size_t i = 1; i < list.size(); i++)
        combine(whole, list[i], op);
    return whole;
}

at::Tensor blocks_like(const at::Tensor &each, int size)
{
    return at::empty({size, each.numel()}, each.options());
}

void copy_blocks(const at::Tensor &from, const std::vector<at::Tensor> &outputs)
{
    for (size_t i = 0; i < outputs.size(); i++)
        outputs[i].copy_(from.select(0, i).reshape(outputs[i].sizes()));
}

at::Tensor joined(const std::vector<at::Tensor> &inputs, const at::Tensor &each,
                  int size)
{
    require_alike(inputs, each, size);
    return Packed(inputs).memory;
}

at::Tensor bytes_for(const std::vector<at::Tensor> &tensors)
{
    int64_t bytes = 0;

    for (const at::Tensor &each : tensors) {
        require_reachable(each);
        bytes += static_cast<int64_t>(each.nbytes());
    }
    return at::empty({bytes}, at::kByte);
}

at::Tensor bytes_joined(const std::vector<at::Tensor> &tensors)
{
    at::Tensor block = bytes_for(tensors);
    char *to = static_cast<char *>(block.data_ptr());

    for (const at::Tensor &each : tensors) {
        const at::Tensor part = dense(each);
        if (part.nbytes())
            memcpy(to, part.data_ptr(), part.nbytes());
        to += part.nbytes();
    }
    return block;
}

void copy_bytes(const at::Tensor &from, const std::vector<at::Tensor> &tensors)
{
    int64_t at = 0;

    for (const at::Tensor &each : tensors) {
        const int64_t bytes = static_cast<int64_t>(each.nbytes());
        const at::Tensor part = dense(each);
        if (bytes)
            memcpy(part.data_ptr(), static_cast<char *>(from.data_ptr()) + at, bytes);
        if (!part.is_same(each))
            each.copy_(part);
        at += bytes;
    }
}

std::vector<size_t> moved_of_rows(const at::Tensor &tensor,
                                  const std::vector<int64_t> &splits, int size)
{
    require(tensor.dim() > 0, "a tensor with at least one dimension");
    const int64_t rows = tensor.size(0);
    const size_t row = rows ? moved(tensor).count / static_cast<size_t>(rows) : 0;
    std::vector<size_t> counts;

    if (splits.empty()) {
        require(rows % size == 0, "a multiple of the number of ranks as rows");
        return std::vector<size_t>(size, row * static_cast<size_t>(rows / size));
    }
    require(splits.size() == static_cast<size_t>(size) &&
                std::accumulate(splits.begin(), splits.end(), int64_t(0)) == rows,
            "a number of rows for each rank, whose sum is the number of rows");
    for (int64_t each : splits) {
        require(each >= 0, "non-negative numbers of rows");
        counts.push_back(row * static_cast<size_t>(each));
    }
    return counts;
}

} // namespace tributary
