/* SPDX-License-Identifier: BSD-3-Clause */
#include "python/backend/torch_work.hpp"

#include <csignal>

namespace tributary {

namespace {

constexpr auto LOOK = std::chrono::milliseconds(50); /* between two looks for signals */

std::string after_so_long(const char *what, std::chrono::milliseconds timeout)
{
    return std::string(what) + " has not ended within " +
           std::to_string(timeout.count()) +
           " ms of a wait; the timeout of the process group names the rank";
}

} // namespace

void check(trib_status_t status, const trib_comm_t *comm)
{
    if (status < 0)
        throw Failure(status, trib_last_error(comm));
}

Collective::Collective(int rank, c10d::OpType type, const char *title,
                       std::vector<at::Tensor> results)
    : Work(rank, type, title), title_(title), results_(std::move(results)),
      future_(c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::create(c10::TensorType::get())))
{
}

bool Collective::wait(std::chrono::milliseconds timeout)
{
    const auto until = std::chrono::steady_clock::now() + timeout;
    std::unique_lock<std::mutex> hold(mutex_);

    while (!cv_.wait_for(hold, LOOK, [this] { return completed_; })) {
        hold.unlock();
        check_signals();
        hold.lock();
        if (timeout != kNoTimeout && std::chrono::steady_clock::now() >= until)
            throw Failure(TRIB_ERR_TIMEOUT, after_so_long(title_, timeout));
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
            failure_ =
                std::make_exception_ptr(Failure(status, trib_last_error(comm)));
    }
}

void Collective::complete()
{
    if (!failure_ && after) {
        try {
            after();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    after = nullptr;
    kept.clear();
    finish(failure_);
    if (failure_)
        future_->setError(failure_);
    else
        future_->markCompleted(c10::IValue(results_));
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
    threads_.emplace_back([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Waiters::run()
{
    std::unique_lock<std::mutex> hold(lock_);
    for (;;) {
        idle_++;
        changed_.wait(hold, [this] {
            return !waiting_ && (!queue_.empty() || stopping_);
        });
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

void Waiters::wait_for_slot(Slot *slot)
{
    std::unique_lock<std::mutex> hold(lock_);
    changed_.wait(hold, [slot] { return !slot->busy; });
}

void Waiters::stop()
{
    {
        std::lock_guard<std::mutex> hold(lock_);
        stopping_ = true;
        changed_.notify_all();
    }
    for (std::thread &thread : threads_)
        thread.join();
    threads_.clear();
}

void Message::end(trib_status_t status)
{
    if (status < 0)
        exception_ = std::make_exception_ptr(Failure(status, trib_last_error(comm_)));
    else if (opType_ == c10d::OpType::RECV && !tensor_.is_same(memory_))
        tensor_.copy_(memory_);
    completed_ = true;
    if (recordFunctionEndCallback_)
        recordFunctionEndCallback_();
}

bool Message::isCompleted()
{
    std::lock_guard<std::mutex> hold(mutex_);
    if (!completed_) {
        const trib_status_t status = trib_request_test(request);
        if (status != TRIB_INPROGRESS)
            end(status);
    }
    return completed_;
}

bool Message::wait(std::chrono::milliseconds timeout)
{
    const auto until = std::chrono::steady_clock::now() + timeout;

    while (timeout != kNoTimeout && !isCompleted()) {
        check_signals();
        if (std::chrono::steady_clock::now() >= until)
            throw Failure(TRIB_ERR_TIMEOUT, after_so_long("a message", timeout));
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    std::unique_lock<std::mutex> hold(mutex_);
    if (!completed_)
        end(trib_request_wait(request));
    hold.unlock();
    throw_signal();
    if (exception_)
        std::rethrow_exception(exception_);
    return true;
}

} // namespace tributary
