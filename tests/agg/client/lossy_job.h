/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job that loses its aggregators: memory that ranks and aggregators share, the
 * aggregators, and the provider through which ranks reach later ones.
 */
#ifndef TESTS_AGG_CLIENT_LOSSY_JOB_H
#define TESTS_AGG_CLIENT_LOSSY_JOB_H

#include <poll.h>

#include "comm/plan/exchange.h"
#include "tests/agg/client/aggregators.h"

enum { LONG = 30000, SHORT = 1023, CODED = 4097, STEPS = 6, RANKS = 4 };

enum { CALL = AGGREGATORS_GOODBYE - 1 }; /* calls a later aggregator */

/* The invariant that the plan with a codec satisfies at the end, whatever aggregators
 * summed. */
enum law {
    ALL_CAME_OUT, /* the outputs equal the inputs */
    NOTHING_LOST, /* outputs plus residuals of the ranks equal the inputs */
    CAUGHT_UP,    /* the result is the sum of the last input, which is repeated */
};

static const struct kind {
    const char *codec, *feedback;
    enum law law;
    int drain;       /* steps with zero input at the end */
    double momentum; /* of the inputs */
    double rounding; /* error of an element from float32, over all steps */
    double lost;     /* per aggregator that exits: the error of the last results, whose
                      * residual it kept */
} kinds[] = {
    {"topk:ratio=0.25", NULL, ALL_CAME_OUT, 12, 0, 0, 0},
    {"topk:ratio=0.25", "ef14:momentum=0.5,masking=0", NOTHING_LOST, 4, 0.5, 0, 0},
    {"topk:ratio=0.25", "ef21", CAUGHT_UP, 12, 0, 0, 0},
    {"qsgd:bits=8,bucket=64,ef=1", NULL, NOTHING_LOST, 4, 0, 1e-3, 0.6},
    {"int8:ef=1", NULL, NOTHING_LOST, 4, 0, 1e-3, 0},
    {"powersgd:rank=2", NULL, NOTHING_LOST, 4, 0, 1e-3, 0},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

struct shared {
    _Atomic int struck[2]; /* process of each first aggregator that has killed itself */
    _Atomic int n_done;    /* ranks that have ended */
    _Atomic int returns;
    float held[RANKS][CODED]; /* residuals at the end */
};

struct lossy_job {
    struct aggregators aggregators;
    struct aggregators later; /* n = 0: none */
    uint64_t seed;
    const struct kind *kind;
    int signal; /* 0: none */
    uint64_t after[2]; /* the first aggregator of each kind kills itself after that many
                        * moves; 0: never */
    int gives_up_at; /* step in which only rank 0 loses the aggregators; 0: none */
    bool leaves; /* the ranks leave working aggregators for later ones */
    struct shared *shared;
};

/* Aggregators ---------------------------------------------------------------------- */

static inline bool is_over(const struct ranks_self *self)
{
    const struct lossy_job *j = self->arg;

    return aggregators_over(self, &j->aggregators, atomic_load(&j->shared->n_done));
}

static inline void serve(struct ranks_self *self, struct aggregators *aggregators,
                  struct trib_comm *agg_comm)
{
    struct lossy_job *j = self->arg;
    const bool late = aggregators == &j->later,
               first = agg_comm->engine.rank == aggregators->ranks;
    uint64_t moved = 0;
    unsigned turns = 0;

    while (aggregators_listen(self, aggregators, agg_comm) && !is_over(self)) {
        if (aggregators_turn(agg_comm, &turns) && ++moved == j->after[late] && first &&
            j->signal) {
            atomic_store(&j->shared->struck[late], getpid());
            raise(j->signal);
        }
        if (agg_comm->engine.failed)
            usleep(1000);
    }
    trib_agg_comm_dispose(agg_comm);
}

/* Receive one message at a later aggregator or at rank 0. Return false after a long
 * silence. */
static inline bool hear(const struct ranks_self *self, int fd, void *out, size_t bytes)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    for (unsigned i = 0; i < 200 * tribtest_slowness(); i++) {
        if (poll(&ready, 1, 100) == 1)
            return recv(fd, out, bytes, 0) == (ssize_t)bytes;
        if (is_over(self))
            return false;
    }
    return false;
}

struct later_aggregator {
    const struct ranks_self *self;
    int index;
    int fd;
};

static inline trib_status_t meet_later(void *arg, const char *phase, const void *in,
                                size_t bytes, void *out)
{
    const struct later_aggregator *n = arg;
    const struct lossy_job *j = n->self->arg;
    const size_t all = (size_t)(j->later.ranks + j->later.n) * bytes;

    (void)phase;
    if (send(n->fd, in, bytes, 0) != (ssize_t)bytes || !hear(n->self, n->fd, out, all))
        return TRIB_ERR_PEER_LOST;
    return TRIB_OK;
}

/* Run a later aggregator: it exists from the beginning and waits to be called. */
static inline void serve_later(struct ranks_self *self, trib_comm_t *all)
{
    struct lossy_job *j = self->arg;
    struct later_aggregator n = {
        .self = self, .index = self->rank - j->aggregators.ranks - j->aggregators.n};
    struct trib_exchange x = {meet_later, &n};
    struct trib_error err = {0};
    struct trib_comm *agg_comm;
    struct aggregators_message call;
    bool called = false;

    n.fd = j->later.pipes[n.index][0];
    while (!called && !is_over(self))
        called = hear(self, n.fd, &call, sizeof(call));
    if (!called)
        return;
    struct trib_agg_comm_opts opts = {.rank = j->later.ranks + n.index,
                                      .ranks = j->later.ranks,
                                      .aggregators = j->later.n};
    if (trib_agg_comm_open(&all->cfg, &all->log, &opts, &x, &err, &agg_comm) != TRIB_OK)
        ranks_die(self, "later agg_comm: %s", trib_error_text(&err));
    serve(self, &j->later, agg_comm);
}

/* The provider --------------------------------------------------------------------- */

struct provider {
    struct ranks_self *self;
    struct trib_comm *all, *first; /* communicators of the wireup */
    struct trib_comm *parent;
    uint64_t step;
    bool offered;
    bool returned;
};

static inline bool found(void *arg)
{
    const struct provider *w = arg;
    const struct lossy_job *j = w->self->arg;

    if (w->offered || !j->later.n)
        return false;
    return !w->parent->offload->agg_comm || (j->leaves && w->step >= 2);
}

static inline trib_status_t meet_ranks(void *arg, const char *phase, const void *in,
                                size_t bytes, void *out)
{
    struct provider *w = arg;
    const struct lossy_job *j = w->self->arg;
    const size_t ranks = (size_t)j->later.ranks, aggregators = (size_t)j->later.n;
    struct trib_comm *control_comm = w->parent->offload->control_comm;
    uint8_t *all = out;

    (void)phase;
    ranks_ok(w->self, trib_comm_exchange(control_comm, TRIB_ALLGATHER, in, bytes, all));
    for (size_t i = 0; w->self->rank == 0 && i < aggregators; i++)
        ranks_assert(w->self, hear(w->self, j->later.pipes[i][1],
                                   all + (ranks + i) * bytes, bytes));
    for (size_t i = 0; w->self->rank == 0 && i < aggregators; i++)
        ranks_assert(w->self,
                     send(j->later.pipes[i][1], all, (ranks + aggregators) * bytes,
                          0) == (ssize_t)((ranks + aggregators) * bytes));
    return trib_comm_exchange(control_comm, TRIB_BROADCAST, NULL, aggregators * bytes,
                              all + ranks * bytes);
}

static inline trib_status_t open_later(void *arg, struct trib_comm **out, char *text,
                                size_t bytes)
{
    struct provider *w = arg;
    struct lossy_job *j = w->self->arg;
    struct trib_agg_comm_opts opts = {.rank = w->self->rank,
                                      .ranks = j->later.ranks,
                                      .aggregators = j->later.n};
    struct trib_exchange x = {meet_ranks, w};
    struct trib_error err = {0};

    w->offered = w->returned = true;
    snprintf(text, bytes, "the later aggregators sum");
    if (w->self->rank == 0) {
        atomic_fetch_add(&j->shared->returns, 1);
        aggregators_tell(&j->later, CALL, "");
        opts.announcer = (struct trib_announcer){aggregators_announce, &j->later};
    }
    return trib_agg_comm_open(&w->parent->cfg, &w->parent->log, &opts, &x, &err, out);
}

#endif
