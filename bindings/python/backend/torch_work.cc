/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/python/backend/torch_work.hpp"

#include <algorithm>
#include <csignal>
#include <system_error>

#include <ATen/core/LegacyTypeDispatch.h>

namespace tributary {

namespace {

constexpr std::chrono::milliseconds LOOK(50); /* between two checks for signals */
constexpr std::chrono::milliseconds NONE(0);

std::string after_so_long(const char *what, std::chrono::milliseconds timeout,
                          const std::string &awaited)
{
    return std::string(what) + " has not completed within " +
           std::to_string(timeout.count()) + " ms of a wait" +
           (awaited.empty() ? "" : ": it waits for " + awaited);
}

} // namespace

static c10::TypePtr type_of_results(size_t lists)
{
    const c10::TypePtr list = c10::ListType::create(c10::TensorType::get());

    return lists > 1 ? c10::ListType::create(list) : list;
}

Collective::Collective(int rank, c10d::OpType type, const char *title,
                       const std::vector<at::Tensor> &inputs, Lists results,
                       std::shared_ptr<WorkQueue> queue)
    : Work(rank, type, title, inputs), title_(title), results_(std::move(results)),
      future_(
          c10::make_intrusive<c10::ivalue::Future>(type_of_results(results_.size()))),
      queue_(std::move(queue))
{
}

std::vector<at::Tensor> Collective::result()
{
    TORCH_CHECK(results_.size() == 1, "the result is ", results_.size(),
                " lists of tensors: use get_future().value()");
    return results_[0];
}

void Collective::time_out(std::chrono::milliseconds timeout)
{
    queue_->give_up();
    throw Failure(TRIB_ERR_TIMEOUT,
                  after_so_long(title_, timeout, queue_->awaited(this)));
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
        queue_->heed_signals();
        if (timeout != kNoTimeout && std::chrono::steady_clock::now() >= until)
            time_out(timeout);
        hold.lock();
    }
    hold.unlock();
    future_->wait(); /* completed next, before its callbacks run */
    if (exception_)
        std::rethrow_exception(exception_);
    return true;
}

void Collective::add(Kind kind, const at::Tensor &from, const at::Tensor &to)
{
    const auto address = [](const at::Tensor &each) {
        return each.defined() ? each.data_ptr() : nullptr;
    };

    kept.insert(kept.end(), {from, to});
    steps.push_back({std::move(kind), address(from), address(to)});
}

/* A program may replace the memory of a tensor, by set_() or .data. */
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
            /* Write without autograd, as the library does. */
            const at::AutoDispatchBelowADInplaceOrView below;
            after();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    after = nullptr;
    another = nullptr;
    kept.clear();
    memory_.clear();
    finish(failure_);
    if (failure_)
        future_->setError(failure_);
    else
        future_->markCompleted(results_.size() > 1 ? c10::IValue(results_)
                                                   : c10::IValue(results_[0]));
}

void WorkQueue::add(CollectivePtr work)
{
    std::lock_guard<std::mutex> hold(lock_);

    if (stopping_)
        throw Failure(TRIB_ERR_INVALID,
                      "the process group has ended: it cannot start a collective");
    if (!waiting_ && idle_ <= done_.size() && !spawn() && threads_.empty())
        throw Failure(TRIB_ERR_SYSTEM, "cannot create a thread that waits for "
                                       "collectives: raise the limit of processes");
    work->open = work->another != nullptr;
    pending_.push_back(work);
    start_pending();
    changed_.notify_all();
    if (work->failure())
        std::rethrow_exception(work->failure());
}

/* Start pending steps in call order. A step whose plan is busy holds up later ones. */
void WorkQueue::start_pending()
{
    while (!pending_.empty()) {
        const CollectivePtr work = pending_.front();
        while (work->started < work->steps.size()) {
            if (!start_next(work))
                return;
        }
        if (work->open)
            return;
        pending_.pop_front();
    }
}

/* False: the plan of its next step is busy. */
bool WorkQueue::start_next(const CollectivePtr &work)
{
    const Step &step = work->steps[work->started];
    Slot *slot = nullptr;

    try {
        slot = plans_.start(step.kind, step.from, step.to);
        if (!slot)
            return false;
    } catch (...) {
        work->fail(std::current_exception());
    }
    work->started++;
    running_.push_back({work, slot});
    return true;
}

bool WorkQueue::spawn()
{
    bool there = true;
    /* The program's own threads handle signals. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        threads_.emplace_back([me = shared_from_this()] { me->run(); });
        idle_++;
    } catch (const std::system_error &) {
        there = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return there;
}

/* Have an idle thread for each done work. From MANY threads on, create another one only
 * if no callback returned for LOOK: then all may wait for later collectives. */
void WorkQueue::ensure_threads(std::unique_lock<std::mutex> &hold)
{
    while (done_.size() > idle_) {
        const size_t before = completed_;
        if (threads_.size() >= MANY && changed_.wait_for(hold, LOOK, [this, before] {
                return completed_ != before || done_.size() <= idle_;
            }))
            continue;
        if (!spawn())
            return; /* existing threads complete the rest later */
    }
}

/* Return the step that follows the last one of a work, if any. */
static std::vector<Step> next_step(Collective &work)
{
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto another = std::move(work.another);
    std::vector<Step> made;

    work.another = nullptr;
    if (another && !work.failure()) {
        made.push_back(another(work));
        work.hold_memory();
    }
    return made;
}

/* Wait for the first running step; the lock is released during the wait. */
void WorkQueue::end_first(std::unique_lock<std::mutex> &hold)
{
    const Running first = running_.front();
    Collective &work = *first.work;
    const bool last = work.ended + 1 == work.steps.size();
    std::exception_ptr failure;
    std::vector<Step> made;

    waiting_ = true;
    hold.unlock();
    try {
        if (first.slot)
            check(trib_plan_wait(first.slot->plan), comm_);
        if (last)
            made = next_step(work);
    } catch (...) {
        failure = std::current_exception();
    }
    hold.lock();
    running_.pop_front();
    if (first.slot)
        first.slot->busy = false;
    if (failure)
        work.fail(failure);
    work.ended++;
    work.steps.insert(work.steps.end(), made.begin(), made.end());
    work.open = work.open && !last;
    start_pending();
    if (work.ended == work.steps.size())
        done_.push_back(first.work);
    changed_.notify_all();
    ensure_threads(hold);
    waiting_ = false;
}

/* Complete the first done work; the lock is released in that time. */
void WorkQueue::complete_first(std::unique_lock<std::mutex> &hold)
{
    CollectivePtr work = std::move(done_.front());

    done_.pop_front();
    hold.unlock();
    work->complete();
    work.reset();
    hold.lock();
    completed_++;
    changed_.notify_all();
}

void WorkQueue::run()
{
    std::unique_lock<std::mutex> hold(lock_);
    for (;; idle_++) {
        changed_.wait(hold, [this] {
            return !done_.empty() || (!waiting_ && !running_.empty()) ||
                   (stopping_ && running_.empty());
        });
        idle_--;
        if (!waiting_ && !running_.empty())
            end_first(hold);
        else if (!done_.empty())
            complete_first(hold);
        else
            return;
    }
}

void WorkQueue::heed_signals()
{
    try {
        check_signals();
    } catch (...) {
        give_up();
        throw;
    }
}

bool WorkQueue::wait_for_all()
{
    std::unique_lock<std::mutex> hold(lock_);
    while (!changed_.wait_for(hold, LOOK, [this] { return running_.empty(); })) {
        hold.unlock();
        const bool over = given_up_ || signal_raised();
        hold.lock();
        if (over)
            return false;
    }
    return true;
}

std::string WorkQueue::awaited(const Collective *work)
{
    /* A busy slot keeps its plan while the lock is held. */
    std::lock_guard<std::mutex> hold(lock_);
    std::string first;

    for (const Running &each : running_) {
        char text[256] = "";
        if (each.slot)
            (void)trib_plan_awaits(each.slot->plan, text, sizeof(text));
        if (first.empty())
            first = text;
        if (each.work.get() == work && text[0])
            return text;
    }
    return first; /* the work is queued after this one */
}

void WorkQueue::stop()
{
    for (;;) {
        std::vector<std::thread> threads; /* callbacks may still create more */
        {
            std::lock_guard<std::mutex> hold(lock_);
            stopping_ = true;
            threads.swap(threads_);
            changed_.notify_all();
        }
        if (threads.empty())
            break;
        for (std::thread &thread : threads) {
            if (thread.get_id() == std::this_thread::get_id())
                thread.detach(); /* a callback held the last reference to the group */
            else
                thread.join();
        }
    }
    plans_.free_all();
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
    /* A work may outlive the group; its request must not. */
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
