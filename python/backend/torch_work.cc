/* SPDX-License-Identifier: BSD-3-Clause */
#include "python/backend/torch_work.hpp"

#include <algorithm>
#include <csignal>

#include <ATen/core/LegacyTypeDispatch.h>

namespace tributary {

namespace {

constexpr std::chrono::milliseconds LOOK(50); /* between two looks for signals */
constexpr std::chrono::milliseconds NONE(0);

std::string after_so_long(const char *what, std::chrono::milliseconds timeout,
                          const std::string &awaited)
{
    return std::string(what) + " has not ended within " +
           std::to_string(timeout.count()) + " ms of a wait" +
           (awaited.empty() ? "" : ": it waits for " + awaited);
}

} // namespace

void check(trib_status_t status, const trib_comm_t *comm)
{
    if (status < 0)
        throw Failure(status, trib_last_error(comm));
}

static c10::TypePtr type_of_results(size_t lists)
{
    const c10::TypePtr list = c10::ListType::create(c10::TensorType::get());

    return lists > 1 ? c10::ListType::create(list) : list;
}

Collective::Collective(int rank, c10d::OpType type, const char *title,
                       const std::vector<at::Tensor> &inputs, Lists results,
                       std::shared_ptr<Waiters> waiters)
    : Work(rank, type, title, inputs), title_(title), results_(std::move(results)),
      future_(
          c10::make_intrusive<c10::ivalue::Future>(type_of_results(results_.size()))),
      waiters_(std::move(waiters))
{
}

std::vector<at::Tensor> Collective::result()
{
    TORCH_CHECK(results_.size() == 1, "the result is ", results_.size(),
                " lists of tensors: take get_future().value()");
    return results_[0];
}

void Collective::time_out(std::chrono::milliseconds timeout)
{
    waiters_->give_up();
    throw Failure(TRIB_ERR_TIMEOUT,
                  after_so_long(title_, timeout, waiters_->awaited(slots)));
}

bool Collective::wait(std::chrono::milliseconds timeout)
{
    const auto until = std::chrono::steady_clock::now() + timeout;
    std::unique_lock<std::mutex> hold(mutex_);

    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            until - std::chrono::steady_clock::now());
        const auto look =
            timeout == kNoTimeout ? LOOK : std::min(LOOK, std::max(left, NONE));
        if (cv_.wait_for(hold, look, [this] { return completed_; }))
            break;
        hold.unlock();
        waiters_->heed_signals();
        if (timeout != kNoTimeout && std::chrono::steady_clock::now() >= until)
            time_out(timeout);
        hold.lock();
    }
    if (exception_)
        std::rethrow_exception(exception_);
    return true;
}

void Collective::wait_for_plans(const trib_comm_t *comm)
{
    for (Slot *slot : slots) {
        /* All are waited for: none may use the memory any more. */
        const trib_status_t status = trib_plan_wait(slot->plan);
        if (status < 0 && !failure_)
            failure_ = std::make_exception_ptr(Failure(status, trib_last_error(comm)));
    }
}

/* A program may give a tensor other memory, by set_() or by its .data. */
void Collective::hold_memory()
{
    for (const at::Tensor &each : kept) {
        if (each.defined())
            memory_.push_back(each.storage());
    }
}

void Collective::complete()
{
    if (!failure_ && after) {
        try {
            /* Memory is written as by the library: no history of gradients. */
            const at::AutoDispatchBelowADInplaceOrView below;
            after();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    after = nullptr;
    kept.clear();
    memory_.clear();
    finish(failure_);
    if (failure_)
        future_->setError(failure_);
    else
        future_->markCompleted(results_.size() > 1 ? c10::IValue(results_)
                                                   : c10::IValue(results_[0]));
}

void Waiters::add(CollectivePtr work)
{
    std::lock_guard<std::mutex> hold(lock_);
    queue_.push_back(std::move(work));
    more();
    changed_.notify_all();
}

void Waiters::more()
{
    if (queue_.empty() || waiting_ || idle_ > 0 || threads_.size() == MOST)
        return;
    /* Signals are for the threads of the program. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    threads_.emplace_back([me = shared_from_this()] { me->run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Waiters::run()
{
    std::unique_lock<std::mutex> hold(lock_);
    for (;;) {
        idle_++;
        changed_.wait(hold,
                      [this] { return !waiting_ && (!queue_.empty() || stopping_); });
        idle_--;
        if (queue_.empty())
            return;
        CollectivePtr work = std::move(queue_.front());
        queue_.pop_front();
        waiting_ = true;
        hold.unlock();
        work->wait_for_plans(comm_);
        hold.lock();
        waiting_ = false;
        for (Slot *slot : work->slots)
            slot->busy = false;
        more();
        changed_.notify_all();
        hold.unlock();
        work->complete();
        work.reset();
        hold.lock();
    }
}

void Waiters::take_slot(Slot *slot)
{
    std::lock_guard<std::mutex> hold(lock_);
    slot->busy = true;
}

void Waiters::wait_for_slot(Slot *slot, bool heeds_signals)
{
    std::unique_lock<std::mutex> hold(lock_);
    while (!changed_.wait_for(hold, LOOK, [slot] { return !slot->busy; })) {
        hold.unlock();
        if (heeds_signals)
            heed_signals();
        hold.lock();
    }
}

void Waiters::heed_signals()
{
    try {
        check_signals();
    } catch (...) {
        give_up();
        throw;
    }
}

bool Waiters::wait_for_all()
{
    std::unique_lock<std::mutex> hold(lock_);
    while (!changed_.wait_for(hold, LOOK,
                              [this] { return !waiting_ && queue_.empty(); })) {
        hold.unlock();
        const bool over = given_up_ || signal_raised();
        hold.lock();
        if (over)
            return false;
    }
    return true;
}

std::string Waiters::awaited(const std::vector<Slot *> &slots)
{
    /* A slot that is busy keeps its plan while this has the lock. */
    std::lock_guard<std::mutex> hold(lock_);
    for (Slot *slot : slots) {
        char text[256] = "";
        if (slot->busy && trib_plan_awaits(slot->plan, text, sizeof(text)) == TRIB_OK &&
            text[0])
            return text;
    }
    return "";
}

void Waiters::stop()
{
    {
        std::lock_guard<std::mutex> hold(lock_);
        stopping_ = true;
        changed_.notify_all();
    }
    for (std::thread &thread : threads_) {
        if (thread.get_id() == std::this_thread::get_id())
            thread.detach(); /* a callback had the last reference to the group */
        else
            thread.join();
    }
    threads_.clear();
}

void Message::end(trib_status_t status)
{
    std::exception_ptr failure;

    if (status < 0)
        failure = std::make_exception_ptr(Failure(status, trib_last_error(comm_)));
    else if (opType_ == c10d::OpType::RECV && !tensor_.is_same(memory_)) {
        try {
            const at::AutoDispatchBelowADInplaceOrView below;
            tensor_.copy_(memory_);
        } catch (...) {
            failure = std::current_exception();
        }
    }
    /* A work may outlive the group, and its request must not. */
    if (trib_request_free(request) == TRIB_OK)
        request = nullptr;
    std::lock_guard<std::mutex> hold(mutex_);
    exception_ = failure;
    completed_ = true;
    if (recordFunctionEndCallback_)
        recordFunctionEndCallback_();
}

bool Message::has_ended()
{
    std::lock_guard<std::mutex> hold(mutex_);
    return completed_;
}

bool Message::isCompleted()
{
    std::unique_lock<std::timed_mutex> driving(driving_, std::try_to_lock);

    if (driving && !has_ended()) {
        const trib_status_t status = trib_request_test(request);
        if (status != TRIB_INPROGRESS)
            end(status);
    }
    return has_ended();
}

void Message::finish()
{
    std::lock_guard<std::timed_mutex> driving(driving_);

    if (!has_ended())
        end(trib_request_wait(request));
}

bool Message::wait(std::chrono::milliseconds timeout)
{
    const auto until = std::chrono::steady_clock::now() + timeout;

    while (timeout != kNoTimeout && !isCompleted()) {
        check_signals();
        if (std::chrono::steady_clock::now() >= until)
            throw Failure(
                TRIB_ERR_TIMEOUT,
                after_so_long(opType_ == c10d::OpType::RECV ? "a receive" : "a send",
                              timeout, "rank " + std::to_string(peer_)));
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    std::unique_lock<std::timed_mutex> driving(driving_, std::defer_lock);
    while (!driving.try_lock_for(LOOK))
        check_signals();
    if (!has_ended())
        end(trib_request_wait(request));
    driving.unlock();
    throw_signal();
    if (exception_)
        std::rethrow_exception(exception_);
    return true;
}

} // namespace tributary
