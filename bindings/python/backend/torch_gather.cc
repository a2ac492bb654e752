/* SPDX-License-Identifier: BSD-3-Clause */
/* All-gathers: of one tensor, and of lists. */
#include "bindings/python/backend/torch_group.hpp"

#include "bindings/python/backend/torch_memory.hpp"

namespace tributary {

void Group::add_allgather(Allgathers &all, std::vector<Tensors> outputs,
                          const at::Tensor &input)
{
    const at::Tensor from = dense(input);

    for (const Tensors &list : outputs)
        require_alike(list, from, size_);
    all.push_back({from, blocks_like(from, size_), std::move(outputs)});
}

Group::WorkPtr Group::start_allgathers(const std::vector<Tensors> &outputs,
                                       const Tensors &inputs, const Allgathers &all)
{
    CollectivePtr work =
        new_work({c10d::OpType::ALLGATHER, "tributary:all_gather"}, inputs, outputs);

    work->after = [all] {
        for (const Allgather &each : all) {
            for (const Tensors &list : each.outputs)
                copy_blocks(each.to, list);
        }
    };
    for (const Allgather &each : all)
        work->add(moving(TRIB_ALLGATHER, moved(each.from)), each.from, each.to);
    return hand_over(work);
}

/* As c10d defines it, each list gets all inputs of all ranks, by rank, then index. */
Group::WorkPtr Group::allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &)
{
    const Starting starting(start_);
    const size_t each = inputs.size(), ranks = static_cast<size_t>(size_);
    Allgathers all;

    require(each > 0 && outputs.size() == each, "a list of outputs for each input");
    require_list_alike(inputs);
    for (const Tensors &list : outputs)
        require(list.size() == ranks * each, "an output for each input of each rank");
    for (size_t i = 0; i < each; i++) {
        std::vector<Tensors> of_ranks;
        for (const Tensors &list : outputs) {
            of_ranks.emplace_back();
            for (size_t r = 0; r < ranks; r++)
                of_ranks.back().push_back(list[r * each + i]);
        }
        add_allgather(all, std::move(of_ranks), inputs[i]);
    }
    return start_allgathers(outputs, inputs, all);
}

Group::WorkPtr Group::allgather_coalesced(std::vector<Tensors> &outputs,
                                          Tensors &inputs,
                                          const c10d::AllgatherOptions &)
{
    const Starting starting(start_);
    Allgathers all;

    require(!inputs.empty(), "at least one tensor");
    require(outputs.size() == static_cast<size_t>(size_),
            "a list of outputs for each rank");
    for (const Tensors &list : outputs)
        require(list.size() == inputs.size(), "an output of each rank for each input");
    for (size_t i = 0; i < inputs.size(); i++) {
        Tensors of_ranks;
        for (const Tensors &list : outputs)
            of_ranks.push_back(list[i]);
        add_allgather(all, {std::move(of_ranks)}, inputs[i]);
    }
    return start_allgathers(outputs, inputs, all);
}

Group::WorkPtr Group::_allgather_base(at::Tensor &output, at::Tensor &input,
                                      const c10d::AllgatherOptions &)
{
    const Starting starting(start_);
    CollectivePtr work =
        new_work({c10d::OpType::_ALLGATHER_BASE, "tributary:_all_gather_base"}, {input},
                 Tensors{output});
    const at::Tensor from = dense(input), to = dense(output);

    require_one_type(from, to);
    require(from.nbytes() * size_ == to.nbytes(), "an output of ranks times the input");
    work->after = write_back(to, output);
    work->add(moving(TRIB_ALLGATHER, moved(from)), from, to);
    return hand_over(work);
}

} // namespace tributary
