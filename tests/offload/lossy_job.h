/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job whose aggregators are lost: what ranks and aggregators share, the aggregators,
 * and the provider by which ranks come to later ones.
 */
#ifndef TESTS_OFFLOAD_LOSSY_JOB_H
#define TESTS_OFFLOAD_LOSSY_JOB_H

#include "tests/harness/tribtest.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "offload/offload_plan.h"
#include "tests/offload/nodes.h"

enum { LONG = 30000, SHORT = 1023, CODED = 4097, STEPS = 6, RANKS = 4 };

enum { CALL = NODES_GOODBYE - 1 }; /* to a later node: they are so many, come */

/* The law of the plan with a codec, which must hold in the end, whoever has summed
 * when. */
enum law {
    ALL_CAME_OUT, /* what went in */
    NOTHING_LOST, /* what came out and what ranks hold is what went in */
    CAUGHT_UP,    /* the result is the sum of what was given last, again and again */
};

static const struct kind {
    const char *codec, *feedback;
    enum law law;
    int drain;       /* steps with nothing to add, at the end */
    double momentum; /* of what goes in */
    double rounding; /* of float32, an element of all steps */
    double lost;     /* with each service that ends: what it held back of its last
                      * results */
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
    _Atomic int struck[2]; /* process of node 0 of each, once it has ended itself */
    _Atomic int n_done;    /* ranks */
    _Atomic int returns;
    float held[RANKS][CODED]; /* by ranks, in the end */
};

struct lossy_job {
    struct nodes nodes;
    struct nodes later; /* services: 0: none */
    uint64_t seed;
    const struct kind *kind;
    int signal; /* 0: none */
    uint64_t after[2]; /* so many steps of node 0 of each that moved something; 0:
                        * never */
    int gives_up_at; /* step in which rank 0 alone loses the services; 0: none */
    bool leaves; /* for the later ones, which are better, though nothing has failed */
    struct shared *shared;
};

/* Nodes ---------------------------------------------------------------------------- */

static inline bool is_over(const struct ranks_self *self)
{
    const struct lossy_job *j = self->arg;

    return nodes_over(self, &j->nodes, atomic_load(&j->shared->n_done));
}

static inline void serve(struct ranks_self *self, struct nodes *nodes,
                  struct trib_comm *channel)
{
    struct lossy_job *j = self->arg;
    const bool late = nodes == &j->later, first = channel->engine.rank == nodes->ranks;
    uint64_t moved = 0;

    while (nodes_listen(self, nodes, channel) && !is_over(self)) {
        if (!trib_agg_comm_step(channel))
            sched_yield();
        else if (++moved == j->after[late] && first && j->signal) {
            atomic_store(&j->shared->struck[late], getpid());
            raise(j->signal);
        }
        if (channel->engine.failed)
            usleep(1000);
    }
    trib_agg_comm_dispose(channel);
}

/* A later node, or rank 0's talk with it: one message, or none for long. */
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

struct later_node {
    const struct ranks_self *self;
    int index;
    int fd;
};

static inline trib_status_t meet_later(void *arg, const char *phase, const void *in,
                                size_t bytes, void *out)
{
    const struct later_node *n = arg;
    const struct lossy_job *j = n->self->arg;
    const size_t all = (size_t)(j->later.ranks + j->later.services) * bytes;

    (void)phase;
    if (send(n->fd, in, bytes, 0) != (ssize_t)bytes || !hear(n->self, n->fd, out, all))
        return TRIB_ERR_PEER_LOST;
    return TRIB_OK;
}

/* It is there from the beginning, and waits to be called. */
static inline void serve_later(struct ranks_self *self, trib_comm_t *all)
{
    struct lossy_job *j = self->arg;
    struct later_node n = {.self = self,
                           .index = self->rank - j->nodes.ranks - j->nodes.services};
    struct trib_exchange x = {meet_later, &n};
    struct trib_error err = {0};
    struct trib_comm *channel;
    struct nodes_message call;
    bool called = false;

    n.fd = j->later.pipes[n.index][0];
    while (!called && !is_over(self))
        called = hear(self, n.fd, &call, sizeof(call));
    if (!called)
        return;
    struct trib_agg_comm_opts opts = {.rank = j->later.ranks + n.index,
                                      .ranks = j->later.ranks,
                                      .aggregators = j->later.services};
    if (trib_agg_comm_open(&all->cfg, &all->log, &opts, &x, &err, &channel) != TRIB_OK)
        ranks_die(self, "later channel: %s", trib_error_text(&err));
    serve(self, &j->later, channel);
}

/* The way to them ------------------------------------------------------------------ */

struct way {
    struct ranks_self *self;
    struct trib_comm *all, *first; /* by which they met */
    struct trib_comm *parent;
    uint64_t step;
    bool offered;
    bool returned;
};

static inline bool found(void *arg)
{
    const struct way *w = arg;
    const struct lossy_job *j = w->self->arg;

    if (w->offered || !j->later.services)
        return false;
    return !w->parent->offload->agg_comm || (j->leaves && w->step >= 2);
}

static inline trib_status_t meet_ranks(void *arg, const char *phase, const void *in,
                                size_t bytes, void *out)
{
    struct way *w = arg;
    const struct lossy_job *j = w->self->arg;
    const size_t ranks = (size_t)j->later.ranks, nodes = (size_t)j->later.services;
    struct trib_comm *control_comm = w->parent->offload->control_comm;
    uint8_t *all = out;

    (void)phase;
    ranks_ok(w->self, trib_comm_exchange(control_comm, TRIB_ALLGATHER, in, bytes, all));
    for (size_t i = 0; w->self->rank == 0 && i < nodes; i++)
        ranks_assert(w->self, hear(w->self, j->later.pipes[i][1],
                                   all + (ranks + i) * bytes, bytes));
    for (size_t i = 0; w->self->rank == 0 && i < nodes; i++)
        ranks_assert(w->self, send(j->later.pipes[i][1], all, (ranks + nodes) * bytes,
                                   0) == (ssize_t)((ranks + nodes) * bytes));
    return trib_comm_exchange(control_comm, TRIB_BROADCAST, NULL, nodes * bytes,
                              all + ranks * bytes);
}

static inline trib_status_t open_later(void *arg, struct trib_comm **out, char *text,
                                size_t bytes)
{
    struct way *w = arg;
    struct lossy_job *j = w->self->arg;
    struct trib_agg_comm_opts opts = {.rank = w->self->rank,
                                      .ranks = j->later.ranks,
                                      .aggregators = j->later.services};
    struct trib_exchange x = {meet_ranks, w};
    struct trib_error err = {0};

    w->offered = w->returned = true;
    snprintf(text, bytes, "the later nodes sum");
    if (w->self->rank == 0) {
        atomic_fetch_add(&j->shared->returns, 1);
        nodes_tell(&j->later, CALL, "");
        opts.announcer = (struct trib_announcer){nodes_announce, &j->later};
    }
    return trib_agg_comm_open(&w->parent->cfg, &w->parent->log, &opts, &x, &err, out);
}

#endif
