/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Works of torch.distributed: collectives, which threads of the group wait for, and
 * messages, which their caller waits for.
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

#include "python/backend/torch_plans.hpp"

namespace tributary {

/* Runs Python's handlers of signals, and throws what they raise. The module has it. */
void check_signals();

/* The same from an idle function of the library: true if a handler has raised, which
 * throw_signal then throws. */
bool signal_raised();
void throw_signal();

/* Runs a function that waits for threads, which may need the lock of Python. */
void without_python(const std::function<void()> &function);

class Waiters;

/* A start of a plan that a work needs. */
struct Step {
    Kind kind;
    const void *from;
    void *to;
};

/* One step, or several that are started one after the other. */
class Collective final : public c10d::Work {
public:
    using Lists = std::vector<std::vector<at::Tensor>>;

    /* inputs: what torch's profiler shows. results: one list, or, of calls that fill
     * several, all of them, which are then the value of the future. */
    Collective(int rank, c10d::OpType type, const char *title,
               const std::vector<at::Tensor> &inputs, Lists results,
               std::shared_ptr<Waiters> waiters);
    ~Collective() override = default;

    bool wait(std::chrono::milliseconds timeout) override;
    /* Once the future has its value, which is a moment after the work has ended. */
    bool isCompleted() override
    {
        return future_->completed();
    }
    std::vector<at::Tensor> result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
    {
        return future_;
    }

    /* The rest of the work, once all its steps have ended and another thread of the
     * group waits for the next work. */
    void complete();

    /* The first failure is that of the work. */
    void fail(std::exception_ptr why)
    {
        if (!failure_)
            failure_ = std::move(why);
    }
    std::exception_ptr failure() const
    {
        return failure_;
    }

    std::vector<Step> steps; /* in the order of their starts */
    size_t started = 0, ended = 0; /* of the steps; Waiters count them */
    /* Makes another step after all steps have ended well; empty if there is none. Works
     * that were added later start after that step: until then this one is open. */
    std::function<Step(Collective &me)> another;
    bool open = false; /* Waiters set it */
    void hold_memory(); /* of the tensors that are kept, whatever becomes of them */

    std::vector<at::Tensor> kept; /* whose memory the plans use */
    std::function<void()> after; /* copies results to where the caller wants them */

private:
    [[noreturn]] void time_out(std::chrono::milliseconds timeout);

    const char *title_;
    Lists results_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    std::exception_ptr failure_;
    std::shared_ptr<Waiters> waiters_;
    std::vector<c10::Storage> memory_;
};

using CollectivePtr = c10::intrusive_ptr<Collective>;

/*
 * Threads that start collectives, and wait for them, in the order in which they were
 * added: a step that needs a busy plan is started once that plan has ended, and its
 * caller does not wait. One thread waits at a time and drives the library meanwhile; the
 * others run what was chained to futures, which may wait for a later collective itself,
 * however many do so.
 */
class Waiters : public std::enable_shared_from_this<Waiters> {
public:
    explicit Waiters(trib_comm_t *comm) : comm_(comm), plans_(comm)
    {
    }
    ~Waiters()
    {
        stop();
    }

    /* Throws if a step that could be started at once has failed. */
    void add(CollectivePtr work);
    void heed_signals(); /* check_signals; what it throws gives up */
    bool wait_for_all(); /* false if the program gave up before all had ended */

    /* For what a work waits: "a contribution of rank 1 …"; empty if for nobody. */
    std::string awaited(const Collective *work);

    /* The program gave a work up: what is under way when the group ends is ended. */
    void give_up()
    {
        given_up_ = true;
    }
    bool given_up() const
    {
        return given_up_;
    }

    void stop(); /* once all that was added has ended; frees all plans */

private:
    /* A step that was started; no slot: its start has failed. */
    struct Running {
        CollectivePtr work;
        Slot *slot;
    };

    /* These are called with the lock. */
    void start_pending();
    bool start_next(const CollectivePtr &work);
    void end_first(std::unique_lock<std::mutex> &hold);
    void complete_first(std::unique_lock<std::mutex> &hold);
    void hand_on(std::unique_lock<std::mutex> &hold); /* to threads that complete works */
    bool spawn(); /* false if there is no more */

    void run();

    static constexpr size_t MANY = 16; /* threads; more come only if all are held up */
    trib_comm_t *comm_;
    std::mutex lock_;
    std::condition_variable changed_;
    Plans plans_;
    std::deque<CollectivePtr> pending_; /* with steps that were not started */
    std::deque<Running> running_;
    std::deque<CollectivePtr> done_; /* all steps have ended: to be completed */
    std::vector<std::thread> threads_;
    size_t idle_ = 0; /* threads, also those that were woken; one for each of done_ */
    size_t completed_ = 0;
    bool waiting_ = false, stopping_ = false; /* waiting_: for the first that runs */
    std::atomic<bool> given_up_{false};
};

/* A message: its caller waits for it. */
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
    void finish(); /* waits, and throws nothing */
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
    void end(trib_status_t status); /* with driving_ */
    bool has_ended();

    trib_comm_t *comm_;
    at::Tensor tensor_, memory_;
    c10::Storage storage_; /* the memory's, whatever becomes of the tensor */
    int peer_;
    /* Of the thread that tests or waits for the request. mutex_ is never held so long:
     * torch takes it with the lock of Python. */
    std::timed_mutex driving_;
};

} // namespace tributary

#endif
