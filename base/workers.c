/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No wake-up is lost. A worker reads `roused`, scans the cells, then sleeps if `roused`
 * is unchanged. The owner posts, increments `roused`, then checks for sleepers. If the
 * worker's scan precedes the post, it read `roused` before the increment. Then either
 * the kernel does not let it sleep, or the owner sees it as a sleeper.
 *
 * `awaited` works the same way in reverse: the asking thread sets it and checks the
 * cell again; the finishing worker sets the cell and checks it.
 */
#include "base/workers.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/time.h"
#include "base/wait.h"

enum state { FREE, POSTED, BEGUN, DONE };

enum {
    PAUSES = 16, /* between two reads of the clock */
    SPINS = 64, /* pauses, before the owner yields its core to a late worker */
};

struct cell {
    _Alignas(TRIB_CACHE_LINE) _Atomic uint32_t state;
    struct trib_work work; /* written by the owner while FREE, else constant */
};

struct thread {
    struct trib_workers *workers;
    uint32_t index;
    pthread_t id;
};

struct trib_workers {
    struct trib_workers_opts opts;
    struct cell *cells;
    struct thread *threads;
    uint32_t n_threads; /* threads started */
    /* Owner only. */
    uint32_t n_free;
    uint32_t next; /* where to start the search for a free cell */
    uint32_t unroused;
    /* Shared by all threads. */
    _Alignas(TRIB_CACHE_LINE) _Atomic uint32_t roused; /* the futex word */
    _Atomic uint32_t oldest; /* where to start the search for work */
    _Atomic uint32_t sleepers;
    _Atomic bool awaited;
    _Atomic bool stop;
};

static uint32_t cell_after(const struct trib_workers *w, uint32_t first, uint32_t k)
{
    return (first + k) % w->opts.cells;
}

static bool change(struct cell *c, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong_explicit(
        &c->state, &from, to, memory_order_acq_rel, memory_order_relaxed);
}

static void work_at(struct trib_workers *w, uint32_t cell, uint32_t worker)
{
    struct cell *c = &w->cells[cell];

    c->work.run(c->work.arg, cell, worker);
    atomic_store(&c->state, DONE); /* arg may be freed from here on */
    if (atomic_load(&w->awaited) && atomic_exchange(&w->awaited, false))
        w->opts.wake(w->opts.arg);
}

static bool find_work(struct trib_workers *w, uint32_t worker)
{
    uint32_t first = atomic_load_explicit(&w->oldest, memory_order_relaxed);

    for (uint32_t k = 0; k < w->opts.cells; k++) {
        uint32_t cell = cell_after(w, first, k);
        struct cell *c = &w->cells[cell];
        if (atomic_load_explicit(&c->state, memory_order_relaxed) == POSTED &&
            change(c, POSTED, BEGUN)) {
            work_at(w, cell, worker);
            return true;
        }
    }
    return false;
}

/* Poll for posted work; return true if there may be some. */
static bool spin(const struct trib_workers *w, uint32_t seen)
{
    const uint64_t until =
        w->opts.spin_us ? trib_now_ns() + w->opts.spin_us * 1000u : 0;

    while (until && trib_now_ns() < until)
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load_explicit(&w->roused, memory_order_relaxed) != seen)
                return true;
            trib_pause();
        }
    return false;
}

static void *worker_main(void *arg)
{
    struct thread *t = arg;
    struct trib_workers *w = t->workers;

    (void)pthread_setname_np(pthread_self(), w->opts.name);
    for (;;) {
        uint32_t seen = atomic_load(&w->roused);
        if (find_work(w, t->index))
            continue;
        if (atomic_load(&w->stop))
            return NULL;
        if (spin(w, seen))
            continue;
        atomic_fetch_add(&w->sleepers, 1);
        syscall(SYS_futex, &w->roused, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        atomic_fetch_sub(&w->sleepers, 1);
    }
}

static void wake(struct trib_workers *w, uint32_t most)
{
    atomic_fetch_add(&w->roused, 1);
    if (atomic_load(&w->sleepers))
        syscall(SYS_futex, &w->roused, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

int trib_workers_create(const struct trib_workers_opts *opts, struct trib_workers **out)
{
    assert(opts->threads && opts->threads <= TRIB_WORKERS_MAX && opts->cells);
    struct trib_workers *w = aligned_alloc(TRIB_CACHE_LINE, sizeof(*w));

    *out = NULL;
    if (!w)
        return ENOMEM;
    *w = (struct trib_workers){.opts = *opts, .n_free = opts->cells};
    w->cells = aligned_alloc(TRIB_CACHE_LINE, opts->cells * sizeof(*w->cells));
    w->threads = calloc(opts->threads, sizeof(*w->threads));
    int error = w->cells && w->threads ? 0 : ENOMEM;
    for (uint32_t i = 0; w->cells && i < opts->cells; i++)
        w->cells[i] = (struct cell){.state = FREE};
    while (!error && w->n_threads < opts->threads) {
        struct thread *t = &w->threads[w->n_threads];
        *t = (struct thread){.workers = w, .index = w->n_threads};
        error = trib_thread_start(&t->id, worker_main, t);
        w->n_threads += !error;
    }
    if (error) {
        trib_workers_destroy(w);
        return error;
    }
    *out = w;
    return 0;
}

void trib_workers_destroy(struct trib_workers *w)
{
    if (!w)
        return;
    if (w->cells)
        trib_workers_clear(w);
    atomic_store(&w->stop, true);
    wake(w, INT_MAX);
    for (uint32_t i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i].id, NULL);
    trib_workers_forget(w);
}

void trib_workers_forget(struct trib_workers *w)
{
    if (!w)
        return;
    free(w->cells);
    free(w->threads);
    free(w);
}

bool trib_workers_asleep(const struct trib_workers *w)
{
    return atomic_load_explicit(&w->sleepers, memory_order_relaxed) == w->n_threads;
}

uint32_t trib_workers_free(const struct trib_workers *w)
{
    return w->n_free;
}

uint32_t trib_workers_cell(const struct trib_workers *w)
{
    uint32_t cell = w->next;

    assert(w->n_free);
    while (atomic_load_explicit(&w->cells[cell].state, memory_order_relaxed) != FREE)
        cell = cell_after(w, cell, 1);
    return cell;
}

void trib_workers_post(struct trib_workers *w, uint32_t cell, struct trib_work work)
{
    assert(atomic_load_explicit(&w->cells[cell].state, memory_order_relaxed) == FREE);
    w->cells[cell].work = work;
    atomic_store_explicit(&w->cells[cell].state, POSTED, memory_order_release);
    w->next = cell_after(w, cell, 1);
    atomic_store_explicit(&w->oldest, w->next, memory_order_relaxed);
    w->n_free--;
    w->unroused++;
}

void trib_workers_rouse(struct trib_workers *w)
{
    if (w->unroused)
        wake(w, w->unroused);
    w->unroused = 0;
}

bool trib_workers_help(struct trib_workers *w)
{
    return find_work(w, w->opts.threads);
}

/* Wait until the worker of a cell is done. */
static void await_worker(const struct cell *c)
{
    for (unsigned i = 0; atomic_load_explicit(&c->state, memory_order_acquire) == BEGUN;
         i++) {
        if (i < SPINS)
            trib_pause();
        else
            trib_wait_turn(1 + i - SPINS, TRIB_WAIT_YIELDS);
    }
}

static void free_cell(struct trib_workers *w)
{
    w->n_free++;
    assert(w->n_free <= w->opts.cells);
}

bool trib_workers_retract(struct trib_workers *w, uint32_t cell)
{
    if (!change(&w->cells[cell], POSTED, FREE))
        return false;
    free_cell(w);
    return true;
}

bool trib_workers_done(struct trib_workers *w, uint32_t cell)
{
    struct cell *c = &w->cells[cell];

    if (atomic_load_explicit(&c->state, memory_order_acquire) == DONE)
        return true;
    atomic_store(&w->awaited, true);
    return atomic_load(&c->state) == DONE;
}

void trib_workers_release(struct trib_workers *w, uint32_t cell)
{
    bool done = change(&w->cells[cell], DONE, FREE);

    assert(done);
    (void)done;
    free_cell(w);
}

/* The parts that one thread takes first: contiguous memory, and a counter that the
 * other threads leave alone until they have taken their own. */
struct range {
    _Alignas(TRIB_CACHE_LINE) _Atomic uint32_t next;
    uint32_t end;
};

/* Work in parts. It is on the owner's stack: a worker accesses it only between BEGUN
 * and DONE of its cell, for which the owner waits. */
struct split {
    void (*run)(void *arg, uint32_t part);
    void *arg;
    uint32_t n_ranges; /* the owner's, then one for each helper */
    struct range ranges[TRIB_WORKERS_MAX + 1];
};

/* Run the parts of a range, then those that are left of the others. */
static uint32_t run_parts(struct split *s, uint32_t range)
{
    uint32_t part, ran = 0;

    for (uint32_t k = 0; k < s->n_ranges; k++) {
        struct range *r = &s->ranges[(range + k) % s->n_ranges];
        while ((part = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed)) <
               r->end) {
            s->run(s->arg, part);
            ran++;
        }
    }
    return ran;
}

static void help_split(void *arg, uint32_t cell, uint32_t worker)
{
    struct split *s = arg;

    (void)cell;
    (void)run_parts(s, 1 + worker % (s->n_ranges - 1));
}

/* Free a cell of a split whose parts are all taken. */
static void end_help(struct trib_workers *w, uint32_t cell)
{
    if (trib_workers_retract(w, cell))
        return;
    await_worker(&w->cells[cell]);
    trib_workers_release(w, cell);
}

uint32_t trib_workers_split(struct trib_workers *w, uint32_t n,
                            void (*run)(void *arg, uint32_t part), void *arg)
{
    uint32_t cells[TRIB_WORKERS_MAX], helpers = w->opts.threads;
    struct split s;

    assert(n > 0);
    helpers = n - 1 < helpers ? n - 1 : helpers;
    helpers = w->n_free < helpers ? w->n_free : helpers;
    s.run = run, s.arg = arg, s.n_ranges = helpers + 1;
    for (uint32_t k = 0; k <= helpers; k++) {
        atomic_init(&s.ranges[k].next, (uint32_t)((uint64_t)n * k / s.n_ranges));
        s.ranges[k].end = (uint32_t)((uint64_t)n * (k + 1) / s.n_ranges);
    }
    for (uint32_t i = 0; i < helpers; i++) {
        cells[i] = trib_workers_cell(w);
        trib_workers_post(w, cells[i], (struct trib_work){help_split, &s});
    }
    trib_workers_rouse(w);
    const uint32_t here = run_parts(&s, 0);
    for (uint32_t i = 0; i < helpers; i++)
        end_help(w, cells[i]);
    return n - here;
}

void trib_workers_clear(struct trib_workers *w)
{
    for (uint32_t cell = 0; cell < w->opts.cells; cell++)
        (void)trib_workers_retract(w, cell);
    for (uint32_t cell = 0; cell < w->opts.cells; cell++) {
        struct cell *c = &w->cells[cell];
        await_worker(c);
        if (atomic_load_explicit(&c->state, memory_order_relaxed) == DONE)
            trib_workers_release(w, cell);
    }
}
