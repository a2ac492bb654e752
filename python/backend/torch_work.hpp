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
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <tributary/coll.h>
#include <tributary/request.h>

namespace tributary {

/* A call of the library that failed; what() is its sentence. Python gets the class of
 * tributary's that goes with the status. */
struct Failure : std::runtime_error {
    Failure(trib_status_t status, const std::string &sentence)
        : std::runtime_error(sentence), status(status)
    {
    }
    trib_status_t status;
};

/* Throws what a status says, if it is an error. */
void check(trib_status_t status, const trib_comm_t *comm);

/* Runs Python's handlers of signals, and throws what they raise. The module has it. */
void check_signals();

/* The same from an idle function of the library: true if a handler has raised, which
 * throw_signal then throws. */
bool signal_raised();
void throw_signal();

/* Runs a function that waits for threads, which may need the lock of Python. */
void without_python(const std::function<void()> &function);

/* A plan that is started again and again; busy from its start to its end. */
struct Slot {
    trib_plan_t *plan = nullptr;
    bool busy = false;
};

class Waiters;

/* One or several plans that were started one after the other. */
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
    std::vector<at::Tensor> result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
    {
        return future_;
    }

    /* What threads of the group do: the end of all plans, then what follows it. */
    void wait_for_plans(const trib_comm_t *comm);
    void complete();

    /* The work has failed before all of its plans were started. */
    void fail(std::exception_ptr why)
    {
        failure_ = std::move(why);
    }

    std::vector<Slot *> slots; /* in the order of their starts */
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
 * Threads that wait for collectives in the order of their starts. One waits at a time
 * and drives the library meanwhile; the others run what was chained to futures, which
 * may wait for a later collective itself.
 */
class Waiters : public std::enable_shared_from_this<Waiters> {
public:
    explicit Waiters(const trib_comm_t *comm) : comm_(comm)
    {
    }
    ~Waiters()
    {
        stop();
    }

    void add(CollectivePtr work);
    void wait_for_slot(Slot *slot, bool heeds_signals); /* until it is not busy */
    void heed_signals(); /* check_signals; what it throws gives up */
    bool wait_for_all(); /* false if the program gave up before all had ended */

    /* For what the first of these waits that is not done: "a contribution of rank 1 …";
     * empty if it waits for nobody. */
    std::string awaited(const std::vector<Slot *> &slots);

    /* The program gave a work up: what is under way when the group ends is ended. */
    void give_up()
    {
        given_up_ = true;
    }
    bool given_up() const
    {
        return given_up_;
    }

    void take_slot(Slot *slot);
    void stop(); /* once all that was added has ended */

private:
    void run();
    void more(); /* with the lock: a thread, if nobody would wait for the next work */

    static constexpr size_t MOST = 16;
    const trib_comm_t *comm_;
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<CollectivePtr> queue_;
    std::vector<std::thread> threads_;
    size_t idle_ = 0;
    bool waiting_ = false, stopping_ = false;
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
