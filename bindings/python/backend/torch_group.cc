/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/python/backend/torch_group.hpp"

#include "bindings/python/backend/torch_memory.hpp"

#include <algorithm>
#include <cstring>

#include <tributary/elastic.h>
#include <tributary/send.h>

namespace tributary {

namespace {

using Clock = std::chrono::steady_clock;

/* All-gather over torch's store, used as rendezvous of the ranks. */
struct StoreRendezvous {
    c10::intrusive_ptr<c10d::Store> store;
    int rank, size, number;
    double timeout_s;
    std::string failed;

    static int gather(void *arg, const void *in, void *out, size_t bytes)
    {
        StoreRendezvous *me = static_cast<StoreRendezvous *>(arg);
        try {
            me->exchange(static_cast<const uint8_t *>(in), static_cast<uint8_t *>(out),
                         bytes);
            return 0;
        } catch (const std::exception &why) {
            me->failed = why.what();
            return 1;
        }
    }

    /* Poll the store until it has a rank's key: Store::wait ignores signals. */
    void await(int peer, const std::string &key)
    {
        const auto until = Clock::now() + std::chrono::duration<double>(timeout_s);
        std::chrono::milliseconds pause(1);

        while (!store->check({key})) {
            if (signal_raised())
                throw std::runtime_error("interrupted by a signal");
            if (Clock::now() >= until)
                throw std::runtime_error(
                    "rank " + std::to_string(peer) +
                    " has not joined the process group within " +
                    std::to_string(static_cast<long>(timeout_s * 1000)) + " ms");
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, std::chrono::milliseconds(20));
        }
    }

    void exchange(const uint8_t *in, uint8_t *out, size_t bytes)
    {
        const std::string head = "tributary/" + std::to_string(number++) + "/";

        store->set(head + std::to_string(rank), std::vector<uint8_t>(in, in + bytes));
        for (int r = 0; r < size; r++) {
            const std::string key = head + std::to_string(r);
            await(r, key);
            const std::vector<uint8_t> part = store->get(key);
            if (part.size() != bytes)
                throw std::runtime_error("rank " + std::to_string(r) + " stored " +
                                         std::to_string(part.size()) + " bytes under " +
                                         head + ", not " + std::to_string(bytes));
            memcpy(out + r * bytes, part.data(), bytes);
        }
    }
};

int idle(void *)
{
    return signal_raised() ? 1 : 0;
}

std::string settings(double timeout_s)
{
    const double ms = std::min(std::max(timeout_s * 1000, 10.0), 86400000.0);
    const std::string text = std::to_string(static_cast<long>(ms));

    return "timeout_ms=" + text + ";boot_timeout_ms=" + text;
}

} // namespace

Group::Group(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
             double timeout_s)
    : ProcessGroup(rank, size)
{
    StoreRendezvous rendezvous = {store, rank, size, 0, timeout_s, ""};
    const std::string config = settings(timeout_s);
    trib_opts_t opts = TRIB_OPTS_INIT;

    opts.rank_plus_1 = rank + 1;
    opts.ranks = size;
    opts.config = config.c_str();
    opts.idle = idle;
    opts.allgather = StoreRendezvous::gather;
    opts.allgather_arg = &rendezvous;
    opts.threads = TRIB_THREADS_MANY;
    const trib_status_t status = trib_init(&opts, &comm_);
    throw_signal();
    if (status < 0 && !rendezvous.failed.empty())
        throw Failure(status, std::string(trib_last_error(nullptr)) +
                                  "; store of torch.distributed: " + rendezvous.failed);
    check(status, nullptr);
    queue_ = std::make_shared<WorkQueue>(comm_);
    init();
}

Group::~Group()
{
    free_all();
}

void Group::free_all()
{
    if (!comm_)
        return;
    without_python([this] {
        end(false);
        (void)trib_free_comm(comm_);
        comm_ = nullptr;
    });
}

void Group::end(bool gives_up)
{
    if (gives_up)
        queue_->give_up();
    if (!queue_->wait_for_all())
        (void)trib_comm_abort(comm_, "the program is exiting");
    queue_->stop();
    for (auto &message : under_way_) {
        if (!message->isCompleted())
            (void)trib_comm_abort(comm_,
                                  "the process group ended with pending messages");
        message->finish();
    }
    under_way_.clear();
}

// ---- works --------------------------------------------------------------------------

CollectivePtr Group::new_work(Title title, const Tensors &inputs,
                              std::vector<Tensors> results)
{
    return c10::make_intrusive<Collective>(rank_, title.type, title.text, inputs,
                                           std::move(results), queue_);
}

CollectivePtr Group::new_work(Title title, const Tensors &inputs, Tensors results)
{
    std::vector<Tensors> list;

    list.push_back(std::move(results));
    return new_work(title, inputs, std::move(list));
}

Group::WorkPtr Group::hand_over(CollectivePtr work)
{
    work->hold_memory();
    added_++;
    queue_->add(work);
    return work;
}

// ---- collectives -------------------------------------------------------------------

Group::WorkPtr Group::allreduce_coalesced(Tensors &tensors,
                                          const c10d::AllreduceCoalescedOptions &opts)
{
    return allreduce_packed(tensors, opts.reduceOp);
}

/* As c10d defines it, the tensors of a list, one for each device of the rank, are
 * reduced with each other, too. */
Group::WorkPtr Group::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    if (!tensors.empty() && tensors[0].is_sparse())
        return allreduce_sparse(tensors, opts.reduceOp);
    return tensors.size() > 1 ? allreduce_across(tensors, opts.reduceOp)
                              : allreduce_packed(tensors, opts.reduceOp);
}

Group::WorkPtr Group::allreduce_across(Tensors &tensors, const c10d::ReduceOp &op)
{
    const Starting starting(start_);
    CollectivePtr work =
        new_work({c10d::OpType::ALLREDUCE, "tributary:all_reduce"}, tensors, tensors);
    const at::Tensor own = combined(tensors, op_of(op));
    const Elements e = elements(own, op_of(op));

    work->after = [own, tensors] {
        for (const at::Tensor &each : tensors)
            each.copy_(own);
    };
    work->add(reducing(TRIB_ALLREDUCE, e), at::Tensor(), own);
    return hand_over(work);
}

Group::WorkPtr Group::allreduce_packed(Tensors &tensors, const c10d::ReduceOp &op)
{
    const Starting starting(start_);
    CollectivePtr work =
        new_work({c10d::OpType::ALLREDUCE, "tributary:all_reduce"}, tensors, tensors);
    Packed packed(tensors);
    const Elements e = elements(packed.memory, op_of(op));

    work->after = packed.unpack();
    work->add(reducing(TRIB_ALLREDUCE, e), at::Tensor(), packed.memory);
    return hand_over(work);
}

/* All tensors of a list become the root's tensor rootTensor. */
Group::WorkPtr Group::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
    const Starting starting(start_);
    CollectivePtr work =
        new_work({c10d::OpType::BROADCAST, "tributary:broadcast"}, tensors, tensors);
    require_list_alike(tensors);
    require(opts.rootTensor >= 0 &&
                opts.rootTensor < static_cast<int64_t>(tensors.size()),
            "a rootTensor within the list");
    const at::Tensor memory = dense(tensors[opts.rootTensor]);

    work->after = [memory, tensors] {
        for (const at::Tensor &each : tensors) {
            if (!each.is_same(memory))
                each.copy_(memory);
        }
    };
    work->add(moving(TRIB_BROADCAST, moved(memory), static_cast<int>(opts.rootRank)),
              at::Tensor(), memory);
    return hand_over(work);
}

Group::WorkPtr Group::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
    const Starting starting(start_);
    CollectivePtr work =
        new_work({c10d::OpType::REDUCE, "tributary:reduce"}, tensors, tensors);
    Packed packed({one(tensors)});
    const Elements e = elements(packed.memory, op_of(opts.reduceOp));
    const int root = static_cast<int>(opts.rootRank);
    const at::Tensor none;

    if (root == rank_)
        work->after = packed.unpack();
    work->add(reducing(TRIB_REDUCE, e, root), root == rank_ ? none : packed.memory,
              root == rank_ ? packed.memory : none);
    return hand_over(work);
}

Group::WorkPtr Group::gather(std::vector<Tensors> &outputs, Tensors &inputs,
                             const c10d::GatherOptions &opts)
{
    const Starting starting(start_);
    const int root = static_cast<int>(opts.rootRank);
    const at::Tensor from = dense(one(inputs));
    at::Tensor to;
    Tensors results;

    if (root == rank_) {
        require(outputs.size() == 1, "one list of outputs on the root");
        results = outputs[0];
        require_alike(results, from, size_);
        to = blocks_like(from, size_);
    } else {
        require(outputs.empty(), "outputs only on the root");
    }
    CollectivePtr work =
        new_work({c10d::OpType::GATHER, "tributary:gather"}, inputs, results);
    if (root == rank_)
        work->after = [to, results] { copy_blocks(to, results); };
    work->add(moving(TRIB_GATHER, moved(from), root), from, to);
    return hand_over(work);
}

Group::WorkPtr Group::scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                              const c10d::ScatterOptions &opts)
{
    const Starting starting(start_);
    const int root = static_cast<int>(opts.rootRank);
    const at::Tensor output = one(outputs), to = dense(output);
    at::Tensor from;

    if (root == rank_) {
        require(inputs.size() == 1, "one list of inputs on the root");
        from = joined(inputs[0], output, size_);
    } else {
        require(inputs.empty(), "inputs only on the root");
    }
    CollectivePtr work = new_work({c10d::OpType::SCATTER, "tributary:scatter"},
                                  root == rank_ ? inputs[0] : Tensors(), outputs);
    work->after = write_back(to, output);
    work->add(moving(TRIB_SCATTER, moved(to), root), from, to);
    return hand_over(work);
}

Group::WorkPtr Group::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                                     const c10d::ReduceScatterOptions &opts)
{
    require(inputs.size() == 1, "one list of inputs");
    at::Tensor output = one(outputs);
    at::Tensor input = joined(inputs[0], output, size_);

    return _reduce_scatter_base(output, input, opts);
}

Group::WorkPtr Group::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                           const c10d::ReduceScatterOptions &opts)
{
    const Starting starting(start_);
    CollectivePtr work =
        new_work({c10d::OpType::_REDUCE_SCATTER_BASE, "tributary:reduce_scatter"},
                 {input}, Tensors{output});
    const at::Tensor from = dense(input), to = dense(output);
    const Elements e = elements(to, op_of(opts.reduceOp));

    require_one_type(from, to);
    require(to.nbytes() * size_ == from.nbytes(), "an input of ranks times the output");
    work->after = write_back(to, output);
    work->add(reducing(TRIB_REDUCE_SCATTER, e), from, to);
    return hand_over(work);
}

Group::WorkPtr Group::alltoall_base(at::Tensor &output, at::Tensor &input,
                                    std::vector<int64_t> &output_splits,
                                    std::vector<int64_t> &input_splits,
                                    const c10d::AllToAllOptions &)
{
    const Starting starting(start_);
    CollectivePtr work = new_work({c10d::OpType::ALLTOALL_BASE, "tributary:all_to_all"},
                                  {input}, Tensors{output});
    const at::Tensor from = dense(input), to = dense(output);
    Kind kind = moving(TRIB_ALLTOALL, moved(from));

    require_one_type(from, to);
    if (output_splits.empty() && input_splits.empty()) {
        require(from.numel() == to.numel() && from.numel() % size_ == 0,
                "input and output of one length, a multiple of the number of ranks");
        kind.count /= size_;
    } else {
        kind.count = 0;
        kind.send_counts = moved_of_rows(from, input_splits, size_);
        kind.recv_counts = moved_of_rows(to, output_splits, size_);
    }
    work->after = write_back(to, output);
    work->add(kind, from, to);
    return hand_over(work);
}

Group::WorkPtr Group::alltoall(Tensors &outputs, Tensors &inputs,
                               const c10d::AllToAllOptions &)
{
    const Starting starting(start_);
    CollectivePtr work =
        new_work({c10d::OpType::ALLTOALL, "tributary:all_to_all"}, inputs, outputs);
    const size_t ranks = static_cast<size_t>(size_);

    require(outputs.size() == ranks && inputs.size() == ranks,
            "an input and an output for each rank");
    Kind kind = moving(TRIB_ALLTOALL, {0, moved(inputs[0]).dtype, TRIB_SUM});
    const at::Tensor from = bytes_joined(inputs), to = bytes_for(outputs);
    for (size_t r = 0; r < ranks; r++) {
        require_one_type(inputs[0], inputs[r]);
        require_one_type(inputs[0], outputs[r]);
        kind.send_counts.push_back(moved(inputs[r]).count);
        kind.recv_counts.push_back(moved(outputs[r]).count);
    }
    work->after = [to, outputs] { copy_bytes(to, outputs); };
    work->add(kind, from, to);
    return hand_over(work);
}

Group::WorkPtr Group::barrier(const c10d::BarrierOptions &)
{
    const Starting starting(start_);
    CollectivePtr work =
        new_work({c10d::OpType::BARRIER, "tributary:barrier"}, {}, Tensors());

    work->steps.push_back(
        {{TRIB_BARRIER, 0, TRIB_U8, TRIB_SUM, 0, {}, {}}, nullptr, nullptr});
    return hand_over(work);
}

void Group::monitoredBarrier(const c10d::BarrierOptions &opts, bool)
{
    const bool own = opts.timeout != c10d::kUnsetTimeout;

    barrier(opts)->wait(own ? opts.timeout : kNoTimeout);
}

// ---- messages ----------------------------------------------------------------------

Group::WorkPtr Group::message(Tensors &tensors, int peer, int tag, bool sends)
{
    const Starting starting(start_);
    const at::Tensor tensor = one(tensors), memory = dense(tensor);
    const Elements e = moved(memory);
    auto work = c10::make_intrusive<Message>(
        rank_, sends ? c10d::OpType::SEND : c10d::OpType::RECV,
        sends ? "tributary:send" : "tributary:recv", comm_, tensor, memory, peer);

    if (under_way_.size() >= under_way_most_) {
        under_way_.erase(std::remove_if(under_way_.begin(), under_way_.end(),
                                        [](auto &each) { return each->isCompleted(); }),
                         under_way_.end());
        under_way_most_ = 2 * under_way_.size() + 1;
    }
    if (sends)
        check(trib_isend(comm_, memory.data_ptr(), e.count, e.dtype, peer, tag,
                         &work->request),
              comm_);
    else
        check(trib_irecv(comm_, memory.data_ptr(), e.count, e.dtype, peer, tag,
                         &work->request),
              comm_);
    under_way_.push_back(work);
    return work;
}

Group::WorkPtr Group::send(Tensors &tensors, int to, int tag)
{
    return message(tensors, to, tag, true);
}

Group::WorkPtr Group::recv(Tensors &tensors, int from, int tag)
{
    return message(tensors, from, tag, false);
}

Group::WorkPtr Group::recvAnysource(Tensors &, int)
{
    require(false, "a receive from a given rank: recvAnysource is not supported");
    return {};
}

} // namespace tributary
