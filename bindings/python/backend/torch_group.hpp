/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process group of torch.distributed, for torch 1.13: a communicator of the library
 * with torch's store as rendezvous.
 *
 * A call adds a work to a queue under a lock and never blocks. Threads of the group
 * start the plans of works in call order, and wait for them. Sums are uncompressed,
 * whatever codec is configured.
 */
#ifndef TRIBUTARY_TORCH_GROUP_H
#define TRIBUTARY_TORCH_GROUP_H

#include <memory>

#include <ATen/core/LegacyTypeDispatch.h>

#include "bindings/python/backend/torch_memory.hpp"
#include "bindings/python/backend/torch_work.hpp"

namespace tributary {

/* Held during a call that adds a work: excludes other such calls, and disables
 * autograd. */
struct Starting {
    explicit Starting(std::mutex &start) : hold(start)
    {
    }
    std::lock_guard<std::mutex> hold;
    at::AutoDispatchBelowADInplaceOrView below;
};

class Group final : public c10d::ProcessGroup {
public:
    using WorkPtr = c10::intrusive_ptr<c10d::Work>;
    using Tensors = std::vector<at::Tensor>;

    Group(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
          double timeout_s);
    ~Group() override;

    /* Called when the last reference is dropped. Weak references delay the
     * destructor. */
    void release_resources() override
    {
        free_all();
    }

    /* Wait for all pending operations. gives_up: abort them instead. */
    void end(bool gives_up);

    const std::string getBackendName() const override
    {
        return "tributary";
    }

    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override;
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
    WorkPtr allreduce_coalesced(Tensors &tensors,
                                const c10d::AllreduceCoalescedOptions &opts) override;
    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override;
    WorkPtr allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                      const c10d::AllgatherOptions &opts) override;
    WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input,
                            const c10d::AllgatherOptions &opts) override;
    WorkPtr allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &opts) override;
    WorkPtr gather(std::vector<Tensors> &outputs, Tensors &inputs,
                   const c10d::GatherOptions &opts) override;
    WorkPtr scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                    const c10d::ScatterOptions &opts) override;
    WorkPtr reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                           const c10d::ReduceScatterOptions &opts) override;
    WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::ReduceScatterOptions &opts) override;
    WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input,
                          std::vector<int64_t> &output_splits,
                          std::vector<int64_t> &input_splits,
                          const c10d::AllToAllOptions &opts) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs,
                     const c10d::AllToAllOptions &opts) override;
    WorkPtr barrier(const c10d::BarrierOptions &opts) override;
    void monitoredBarrier(const c10d::BarrierOptions &opts, bool all) override;
    WorkPtr send(Tensors &tensors, int to, int tag) override;
    WorkPtr recv(Tensors &tensors, int from, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;
    void setSequenceNumberForGroup() override
    {
    }
    uint64_t getSequenceNumberForGroup() override
    {
        return added_;
    }

private:
    void free_all();
    /* An input, memory for the inputs of all ranks, and the lists to copy them to. */
    struct Allgather {
        at::Tensor from, to;
        std::vector<Tensors> outputs;
    };
    using Allgathers = std::vector<Allgather>;

    static Kind moving(trib_coll_t coll, const Elements &e, int root = 0)
    {
        return {coll, e.count, e.dtype, TRIB_SUM, root, {}, {}};
    }
    static Kind reducing(trib_coll_t coll, const Elements &e, int root = 0)
    {
        return {coll, e.count, e.dtype, e.op, root, {}, {}};
    }
    WorkPtr hand_over(CollectivePtr work);
    WorkPtr message(Tensors &tensors, int peer, int tag, bool sends);
    /* An operation of c10d, and its name in torch's profiler. */
    struct Title {
        c10d::OpType type;
        const char *text;
    };
    CollectivePtr new_work(Title title, const Tensors &inputs, Tensors results);
    CollectivePtr new_work(Title title, const Tensors &inputs,
                           std::vector<Tensors> results);
    WorkPtr allreduce_packed(Tensors &tensors, const c10d::ReduceOp &op);
    WorkPtr allreduce_across(Tensors &tensors, const c10d::ReduceOp &op);
    WorkPtr allreduce_sparse(Tensors &tensors, const c10d::ReduceOp &op);
    void add_allgather(Allgathers &all, std::vector<Tensors> outputs,
                       const at::Tensor &input);
    WorkPtr start_allgathers(const std::vector<Tensors> &outputs, const Tensors &inputs,
                             const Allgathers &all);

    trib_comm_t *comm_ = nullptr;
    std::mutex start_; /* see Starting */
    std::vector<c10::intrusive_ptr<Message>> under_way_;
    size_t under_way_most_ = 1; /* drop completed messages at this size */
    std::shared_ptr<WorkQueue> queue_;
    std::atomic<uint64_t> added_{0}; /* collectives so far */
};

} // namespace tributary

#endif
