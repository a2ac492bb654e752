/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks and the nodes of their channel as the processes of one job, by whose
 * communicator they meet. What rank 0 announces goes through pipes.
 */
#ifndef TESTS_OFFLOAD_NODES_H
#define TESTS_OFFLOAD_NODES_H

#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "offload/agg_comm.h"
#include "tests/harness/ranks.h"

enum { NODES_MOST = 4 };

#define NODES_GOODBYE UINT32_MAX

struct nodes {
    int ranks;
    int services;
    const struct trib_agg_tree *tree;
    int pipes[NODES_MOST][2]; /* [1]: rank 0's end */
};

struct nodes_message {
    uint32_t number;
    char text[TRIB_AGG_COMM_TEXT_MAX];
};

static inline bool nodes_open(struct nodes *s)
{
    for (int i = 0; i < s->services; i++)
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s->pipes[i]) != 0)
            return false;
    return true;
}

static inline void nodes_close(struct nodes *s)
{
    for (int i = 0; i < s->services; i++) {
        close(s->pipes[i][0]);
        close(s->pipes[i][1]);
    }
}

/* Are all ranks done, or has one failed? */
static inline bool nodes_over(const struct ranks_self *self, const struct nodes *s,
                              int n_done)
{
    for (int r = 0; r < s->ranks; r++) {
        const int status = self->slot[r - self->rank].status;
        if (status != 0 && status != RANKS_NEVER)
            return true;
    }
    return n_done == s->ranks;
}

/* To nodes that may be dead, or stopped. */
static inline void nodes_tell(const struct nodes *s, uint32_t number, const char *text)
{
    struct nodes_message m = {.number = number};

    snprintf(m.text, sizeof(m.text), "%s", text);
    for (int i = 0; i < s->services; i++)
        (void)!send(s->pipes[i][1], &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static inline trib_status_t nodes_announce(void *arg, uint32_t number, const char *text,
                                           struct trib_error *err)
{
    (void)err;
    nodes_tell(arg, number, text);
    return TRIB_OK;
}

static inline trib_status_t nodes_meet(void *arg, const char *phase, const void *in,
                                       size_t bytes, void *out)
{
    (void)phase;
    return trib_allgather(arg, in, out, bytes, TRIB_I8);
}

/* comm: of the whole job. */
static inline struct trib_comm *nodes_join(struct ranks_self *self, struct nodes *s,
                                           trib_comm_t *comm)
{
    struct trib_agg_comm_opts opts = {.rank = self->rank,
                                      .ranks = s->ranks,
                                      .aggregators = s->services,
                                      .tree = s->tree};
    struct trib_exchange x = {nodes_meet, comm};
    struct trib_error err = {0};
    struct trib_comm *channel;

    if (self->rank == 0)
        opts.announcer = (struct trib_announcer){nodes_announce, s};
    if (trib_agg_comm_open(&comm->cfg, &comm->log, &opts, &x, &err, &channel) !=
        TRIB_OK)
        ranks_die(self, "channel: %s", trib_error_text(&err));
    return channel;
}

static inline size_t nodes_allocated(void)
{
#ifdef __GLIBC__
    const struct mallinfo2 m = mallinfo2(); /* zeros, under a sanitizer */

    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

/* What a node charges for a plan is what it takes, but for its codec and the
 * allocator's own. */
static inline void nodes_check_charge(struct ranks_self *self,
                                      const struct trib_plan *plan, size_t before)
{
    enum { SLACK = 32768 };
    const size_t after = nodes_allocated();
    const uint64_t used = after > before ? after - before : 0;

    if (used > plan->charged + SLACK || (after && plan->charged > 2 * used + SLACK))
        ranks_die(
            self,
            "a plan of %zu elements by codec %s takes %llu bytes, charged were %llu",
            plan->run.desc.count,
            plan->codec ? trib_codec_info(plan->codec)->text : "none",
            (unsigned long long)used, (unsigned long long)plan->charged);
}

/* Of a node; false: rank 0 has said goodbye. */
static inline bool nodes_listen(struct ranks_self *self, const struct nodes *s,
                                struct trib_comm *channel)
{
    struct nodes_message m;

    while (recv(s->pipes[channel->engine.rank - s->ranks][0], &m, sizeof(m),
                MSG_DONTWAIT) == sizeof(m)) {
        if (m.number == NODES_GOODBYE)
            return false;
        const size_t before = nodes_allocated();
        if (trib_agg_comm_take_plan(channel, m.number, m.text) != TRIB_OK &&
            !channel->engine.failed)
            ranks_die(self, "%s", trib_last_error(channel));
        const struct trib_plan *plan = trib_agg_comm_of(channel)->plans[m.number];
        if (plan && !plan->dropped && m.number > 0) /* the first makes links, too */
            nodes_check_charge(self, plan, before);
    }
    return true;
}

#endif
