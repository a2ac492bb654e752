/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of sparse tensors: all-gather the elements of all ranks in blocks of one size,
 * then add them up on each rank.
 */
#include "bindings/python/backend/torch_group.hpp"

#include "bindings/python/backend/torch_memory.hpp"

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

namespace tributary {

namespace {

constexpr int64_t DIMS_MOST = 12; /* sizes in a description */
constexpr int64_t DESCRIPTION = 4 + DIMS_MOST; /* nnz, sparse dims, dims, type, sizes */
constexpr int64_t ROOM_LEAST = 16;

/* Return the number of elements, then the fields that must be equal on all ranks. */
at::Tensor description(const at::Tensor &tensor)
{
    at::Tensor text = at::zeros({DESCRIPTION}, at::kLong);
    int64_t *at = text.data_ptr<int64_t>();

    require(tensor.dim() <= DIMS_MOST, "sparse tensors of at most 12 dimensions");
    at[0] = tensor._nnz();
    at[1] = tensor.sparse_dim();
    at[2] = tensor.dim();
    at[3] = static_cast<int64_t>(tensor.scalar_type());
    std::copy(tensor.sizes().begin(), tensor.sizes().end(), at + 4);
    return text;
}

/* Return the largest number of elements of a rank, rounded up to 16 * 2^k, so that few
 * different plans are created. */
int64_t room_for(const at::Tensor &all, const at::Tensor &mine)
{
    const int64_t *own = mine.data_ptr<int64_t>();
    int64_t room = ROOM_LEAST, most = 1;

    for (int64_t i = 0; i < own[1]; i++)
        most *= own[4 + i];
    for (int64_t r = 0; r < all.size(0); r++) {
        const int64_t *its = all.data_ptr<int64_t>() + r * DESCRIPTION;
        TORCH_CHECK(
            std::equal(own + 1, own + DESCRIPTION, its + 1),
            "the backend tributary requires sparse tensors of the same shape and type "
            "on all ranks; the tensor of rank ",
            r, " differs from this rank's");
        TORCH_CHECK(its[0] >= 0 && its[0] <= most, "rank ", r, " has ", its[0],
                    " elements of a sparse tensor of at most ", most);
        while (room < its[0])
            room *= 2;
    }
    return room;
}

/* Block of a rank: `room` indices, then `room` values. */
struct Blocks {
    Blocks(const at::Tensor &tensor, int64_t room)
        : like(tensor), index_bytes(room * tensor.sparse_dim() * 8),
          bytes(index_bytes + room * row_bytes())
    {
    }

    std::vector<int64_t> shape_of_values(int64_t count) const
    {
        const auto row = like.sizes().slice(like.sparse_dim());
        std::vector<int64_t> shape = {count};

        shape.insert(shape.end(), row.begin(), row.end());
        return shape;
    }

    int64_t row_bytes() const
    {
        int64_t elements = 1;
        for (const int64_t length : like.sizes().slice(like.sparse_dim()))
            elements *= length;
        return elements * static_cast<int64_t>(like.element_size());
    }

    at::Tensor pack() const
    {
        at::Tensor block = at::zeros({bytes}, at::kByte);
        char *to = static_cast<char *>(block.data_ptr());
        const at::Tensor indices = like.indices().contiguous();
        const at::Tensor values = dense(like.values());

        if (like._nnz() > 0) {
            memcpy(to, indices.data_ptr(), indices.nbytes());
            memcpy(to + index_bytes, values.data_ptr(), values.nbytes());
        }
        return block;
    }

    at::Tensor sum(const at::Tensor &blocks, const at::Tensor &all) const
    {
        std::vector<at::Tensor> indices, values;

        for (int64_t r = 0; r < all.size(0); r++) {
            const int64_t count = all.data_ptr<int64_t>()[r * DESCRIPTION];
            char *from = static_cast<char *>(blocks.data_ptr()) + r * bytes;
            indices.push_back(
                at::from_blob(from, {like.sparse_dim(), count}, at::kLong));
            values.push_back(at::from_blob(from + index_bytes, shape_of_values(count),
                                           like.values().options()));
        }
        return at::sparse_coo_tensor(at::cat(indices, 1), at::cat(values, 0),
                                     like.sizes(), like.options())
            .coalesce();
    }

    at::Tensor like; /* coalesced */
    int64_t index_bytes, bytes;
};

at::Tensor added(const std::vector<at::Tensor> &tensors)
{
    at::Tensor whole;

    for (const at::Tensor &each : tensors) {
        require(each.device().is_cpu() && each.is_sparse() &&
                    each.sizes() == tensors[0].sizes() &&
                    each.scalar_type() == tensors[0].scalar_type(),
                "sparse tensors of the same shape and type on the CPU in a list");
        whole = whole.defined() ? whole + each : each;
    }
    return whole.coalesce();
}

} // namespace

/* First step: all-gather the descriptions, which determine the size of the blocks.
 * Second step, created after the first: all-gather the blocks. */
Group::WorkPtr Group::allreduce_sparse(Tensors &tensors, const c10d::ReduceOp &op)
{
    const Starting starting(start_);
    const bool mean = op_of(op) == TRIB_MEAN;

    require(op_of(op) == TRIB_SUM || (mean && tensors.size() == 1),
            "SUM, or AVG of a single tensor, for sparse tensors");
    CollectivePtr work = new_work(
        {c10d::OpType::ALLREDUCE, "tributary:sparse_all_reduce"}, tensors, tensors);
    const at::Tensor own = added(tensors), mine = description(own);
    const at::Tensor all = at::empty({size_, DESCRIPTION}, at::kLong);

    work->add(moving(TRIB_ALLGATHER, moved(mine)), mine, all);
    work->another = [own, mine, all, tensors, mean](Collective &me) -> Step {
        const Blocks blocks(own, room_for(all, mine));
        const int64_t ranks = all.size(0);
        const at::Tensor from = blocks.pack();
        const at::Tensor to = at::empty({ranks, blocks.bytes}, at::kByte);

        me.kept.insert(me.kept.end(), {from, to});
        me.after = [blocks, to, all, tensors, mean, ranks] {
            const at::Tensor sum = blocks.sum(to, all);
            for (const at::Tensor &each : tensors)
                each.copy_(mean ? sum / ranks : sum);
        };
        return {moving(TRIB_ALLGATHER, moved(from)), from.data_ptr(), to.data_ptr()};
    };
    return hand_over(work);
}

} // namespace tributary
