/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Works of torch.distributed: collectives, driven by threads of the group, and
 * messages, driven by their caller.
 */
#ifndef TRIBUTARY_TORCH_WORK_H
#define TRIBUTARY_TORCH_WORK_H

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <tributary/request.h>

#include "bindings/python/backend/torch_plans.hpp"

namespace tributary {

/* Run Python's pending signal handlers and throw the exception of a handler. Defined in
 * torch_module.cc. */
void check_signals();

/* For idle callbacks of the library: run handlers and return true if one has raised.
 * throw_signal then throws its exception on the same thread. */
bool signal_raised();
void throw_signal();

/* Run a function without the GIL. It waits for threads, which may need the GIL. */
void without_python(const std::function<void()> &function);

class WorkQueue;

/* One start of a plan. */
struct Step {
    Kind kind;
    const void *from;
    void *to;
};

/* A collective of one or several steps, which are started in order. */
class Collective final : public c10d::Work {
public:
    using Lists = std::vector<std::vector<at::Tensor>>;

    /* inputs: shown by torch's profiler. results: the value of the future, one list of
     * tensors or several. */
    Collective(int rank, c10d::OpType type, const char *title,
               const std::vector<at::Tensor> &inputs, Lists results,
               std::shared_ptr<WorkQueue> queue);
    ~Collective() override = default;

    bool wait(std::chrono::milliseconds timeout) override;
    /* True when the future has its value, shortly after the work has ended. */
    bool isCompleted() override
    {
        return future_->completed();
    }
    std::vector<at::Tensor> result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
    {
        return future_;
    }

    /* Copy results and complete the future, after all steps have ended. Called without
     * the lock of WorkQueue, because callbacks of the future run here. */
    void complete();

    /* The first failure becomes the failure of the work. */
    void fail(std::exception_ptr why)
    {
        if (!failure_)
            failure_ = std::move(why);
    }
    std::exception_ptr failure() const
    {
        return failure_;
    }

    /* Add a step from one tensor to another, and keep both. An undefined one is NULL. */
    void add(Kind kind, const at::Tensor &from, const at::Tensor &to);

    std::vector<Step> steps; /* in the order of their starts */
    size_t started = 0, ended = 0; /* number of steps; updated by WorkQueue */
    /* Returns one more step after all steps have succeeded; empty: none. The work stays
     * open until then, because later works start after that step. */
    std::function<Step(Collective &me)> another;
    bool open = false; /* updated by WorkQueue */
    void hold_memory(); /* keep the storages of `kept` alive */

    std::vector<at::Tensor> kept; /* plans use their memory */
    std::function<void()> after; /* copies results to the caller's tensors */

private:
    [[noreturn]] void time_out(std::chrono::milliseconds timeout);

    const char *title_;
    Lists results_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    std::exception_ptr failure_;
    std::shared_ptr<WorkQueue> queue_;
    std::vector<c10::Storage> memory_;
};

using CollectivePtr = c10::intrusive_ptr<Collective>;

/*
 * Threads that start collectives and wait for them, in the order in which they were
 * added. A step whose plan is busy starts when that plan is done, without blocking the
 * caller. One thread at a time waits, and so drives the library. The others run
 * callbacks of futures, any number of which may wait for later collectives.
 */
class WorkQueue : public std::enable_shared_from_this<WorkQueue> {
public:
    explicit WorkQueue(trib_comm_t *comm) : comm_(comm), plans_(comm)
    {
    }
    ~WorkQueue()
    {
        stop();
    }

    /* Throws if a step that could be started at once has failed. */
    void add(CollectivePtr work);
    void heed_signals(); /* check_signals; give_up before its exception passes */
    bool wait_for_all(); /* false if the program gave up before all had ended */

    /* Return the data and rank that a work waits for, such as "a contribution of rank
     * 1 …"; empty if it waits for no rank. */
    std::string awaited(const Collective *work);

    /* Record that the program has abandoned a work: the end of the group then aborts
     * pending works instead of waiting for them. */
    void give_up()
    {
        given_up_ = true;
    }
    bool given_up() const
    {
        return given_up_;
    }

    void stop(); /* after all works have ended: join the threads, free all plans */

private:
    /* A started step. No slot: its start has failed. */
    struct Running {
        CollectivePtr work;
        Slot *slot;
    };

    /* Called with lock_ held. */
    void start_pending();
    bool start_next(const CollectivePtr &work);
    void end_first(std::unique_lock<std::mutex> &hold);
    void complete_first(std::unique_lock<std::mutex> &hold);
    void ensure_threads(std::unique_lock<std::mutex> &hold); /* for done_ */
    bool spawn(); /* false: the system refused a thread */

    void run();

    static constexpr size_t MANY = 16; /* threads; more only if all are blocked */
    trib_comm_t *comm_;
    std::mutex lock_;
    std::condition_variable changed_;
    Plans plans_;
    std::deque<CollectivePtr> pending_; /* have steps that are not started */
    std::deque<Running> running_;
    std::deque<CollectivePtr> done_; /* all steps have ended; to be completed */
    std::vector<std::thread> threads_;
    size_t idle_ = 0; /* threads, including woken ones; one per entry of done_ */
    size_t completed_ = 0;
    bool waiting_ = false, stopping_ = false; /* waiting_: a thread is in end_first */
    std::atomic<bool> given_up_{false};
};

/* A point-to-point message, driven by the thread that tests or waits. */
class Message final : public c10d::Work {
public:
    Message(int rank, c10d::OpType type, const char *title, trib_comm_t *comm,
            at::Tensor tensor, at::Tensor memory, int peer)
        : Work(rank, type, title, std::vector<at::Tensor>{tensor}), comm_(comm),
          tensor_(std::move(tensor)), memory_(std::move(memory)),
          storage_(memory_.storage()), peer_(peer)
    {
    }
    ~Message() override
    {
        (void)trib_request_free(request);
    }

    bool isCompleted() override; /* false also while another thread waits for it */
    bool wait(std::chrono::milliseconds timeout) override;
    void finish(); /* wait; throws nothing */
    int sourceRank() const override
    {
        return peer_;
    }
    std::vector<at::Tensor> result() override
    {
        return {tensor_};
    }

    trib_request_t *request = nullptr;

private:
    void end(trib_status_t status); /* with driving_ held */
    bool has_ended();

    trib_comm_t *comm_;
    at::Tensor tensor_, memory_;
    c10::Storage storage_; /* keeps the memory alive if the tensor gets another one */
    int peer_;
    /* Held by the thread that tests or waits for the request. mutex_ must not be held
     * that long, because torch locks it while it holds the GIL. */
    std::timed_mutex driving_;
};

} // namespace tributary

#endif
