/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks and their aggregators are processes of one job and wire up over its
 * communicator. Rank 0 sends announcements through pipes.
 */
#ifndef TESTS_AGG_CLIENT_AGGREGATORS_H
#define TESTS_AGG_CLIENT_AGGREGATORS_H

#include <malloc.h>
#include <sys/socket.h>

#include "agg/client/offload_plan.h"
#include "comm/core/plan_struct.h"
#include "comm/members/wireup.h"
#include "tests/harness/ranks.h"

enum { AGGREGATORS_MOST = 4 };

#define AGGREGATORS_GOODBYE UINT32_MAX

struct aggregators {
    int ranks;
    int n;
    const struct trib_agg_tree *tree;
    bool guarded; /* the aggregators and ranks do not trust each other */
    int pipes[AGGREGATORS_MOST][2]; /* [1]: rank 0's end */
};

struct aggregators_message {
    uint32_t number;
    char text[TRIB_AGG_COMM_TEXT_MAX];
};

static inline bool aggregators_open(struct aggregators *s)
{
    for (int i = 0; i < s->n; i++)
        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s->pipes[i]) != 0)
            return false;
    return true;
}

static inline void aggregators_close(struct aggregators *s)
{
    for (int i = 0; i < s->n; i++) {
        close(s->pipes[i][0]);
        close(s->pipes[i][1]);
    }
}

/* True if all ranks are done, or one has failed. */
static inline bool aggregators_over(const struct ranks_self *self,
                                    const struct aggregators *s, int n_done)
{
    for (int r = 0; r < s->ranks; r++) {
        const int status = self->slot[r - self->rank].status;
        if (status != 0 && status != RANKS_NEVER)
            return true;
    }
    return n_done == s->ranks;
}

/* Aggregators may be dead or stopped. */
static inline void aggregators_tell(const struct aggregators *s, uint32_t number,
                                    const char *text)
{
    struct aggregators_message m = {.number = number};

    snprintf(m.text, sizeof(m.text), "%s", text);
    for (int i = 0; i < s->n; i++)
        (void)!send(s->pipes[i][1], &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static inline trib_status_t aggregators_announce(void *arg, uint32_t number,
                                                 const char *text,
                                                 struct trib_error *err)
{
    (void)err;
    aggregators_tell(arg, number, text);
    return TRIB_OK;
}

static inline trib_status_t aggregators_meet(void *arg, const char *phase,
                                             const void *in, size_t bytes, void *out)
{
    (void)phase;
    return trib_allgather(arg, in, out, bytes, TRIB_I8);
}

/* comm: the communicator of the whole job. */
static inline struct trib_comm *aggregators_join(struct ranks_self *self,
                                                 struct aggregators *s,
                                                 trib_comm_t *comm)
{
    struct trib_agg_comm_opts opts = {.rank = self->rank,
                                      .ranks = s->ranks,
                                      .aggregators = s->n,
                                      .tree = s->tree};
    const struct trib_guard guard = {.serves = self->rank >= s->ranks,
                                     .ranks = s->ranks,
                                     .user = TRIB_GUARD_ANYBODY};
    struct trib_exchange x = {aggregators_meet, comm};
    struct trib_error err = {0};
    struct trib_comm *agg_comm;

    if (s->guarded)
        opts.guard = &guard;
    if (self->rank == 0)
        opts.announcer = (struct trib_announcer){aggregators_announce, s};
    if (trib_agg_comm_open(&comm->cfg, &comm->log, &opts, &x, &err, &agg_comm) !=
        TRIB_OK)
        ranks_die(self, "no agg_comm: %s", trib_error_text(&err));
    return agg_comm;
}

static inline size_t aggregators_allocated(void)
{
#ifdef __GLIBC__
    const struct mallinfo2 m = mallinfo2(); /* zero under a sanitizer */

    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

/* Check that an aggregator charges for a plan the memory that the plan allocates. The
 * codec and the overhead of the allocator are not charged. */
static inline void aggregators_check_charge(struct ranks_self *self,
                                      const struct trib_plan *plan, size_t before)
{
    enum { SLACK = 32768 };
    const size_t after = aggregators_allocated();
    const uint64_t used = after > before ? after - before : 0;

    if (used > plan->charged + SLACK || (after && plan->charged > 2 * used + SLACK))
        ranks_die(
            self,
            "a plan of %zu elements by codec %s takes %llu bytes, charged were %llu",
            plan->run.desc.count,
            plan->codec ? trib_codec_info(plan->codec)->text : "none",
            (unsigned long long)used, (unsigned long long)plan->charged);
}

/* Let an aggregator accept the announcements of rank 0. Return false after the goodbye
 * of rank 0. */
static inline bool aggregators_listen(struct ranks_self *self,
                                      const struct aggregators *s,
                                      struct trib_comm *agg_comm)
{
    struct aggregators_message m;

    while (recv(s->pipes[agg_comm->engine.rank - s->ranks][0], &m, sizeof(m),
                MSG_DONTWAIT) == sizeof(m)) {
        if (m.number == AGGREGATORS_GOODBYE)
            return false;
        const size_t before = aggregators_allocated();
        if (trib_agg_comm_announced(agg_comm, m.number, m.text) != TRIB_OK &&
            !agg_comm->engine.failed)
            ranks_die(self, "%s", trib_last_error(agg_comm));
        const struct trib_plan *plan = trib_agg_comm_of(agg_comm)->plans[m.number];
        /* The first plan also makes links; UCX allocates for received data, on any
         * thread. */
        if (plan && !plan->dropped && m.number > 0 &&
            !strstr(agg_comm->cfg.transport, "ucx"))
            aggregators_check_charge(self, plan, before);
    }
    return true;
}

/* Run one step of an aggregator. Return true if it moved data, otherwise pause; turns
 * counts the idle steps. */
static inline bool aggregators_turn(struct trib_comm *agg_comm, unsigned *turns)
{
    if (!trib_agg_comm_step(agg_comm)) {
        tribtest_rest(turns);
        return false;
    }
    *turns = 0;
    return true;
}

/* Let an aggregator sum until rank 0 has sent its goodbye and all operations have
 * ended, or until agg_comm or the test of a rank fails. */
static inline void aggregators_serve(struct ranks_self *self,
                                     const struct aggregators *s,
                                     struct trib_comm *agg_comm)
{
    bool more = true;
    unsigned turns = 0;

    while ((more || agg_comm->engine.head) && !agg_comm->engine.failed &&
           !aggregators_over(self, s, 0)) {
        more = more && aggregators_listen(self, s, agg_comm);
        (void)aggregators_turn(agg_comm, &turns);
    }
}

/* Called by all processes: ranks get a parent that offloads to the aggregators.
 * Aggregators serve until rank 0 detaches, and get NULL. */
static inline struct trib_comm *aggregators_attach(struct ranks_self *self,
                                                   struct aggregators *s)
{
    const bool is_rank = self->rank < s->ranks;
    struct trib_comm *parent, *agg_comm = aggregators_join(self, s, self->comm);

    ranks_ok(self, trib_split(self->comm, is_rank ? 0 : -1, 0, &parent));
    if (is_rank) {
        ranks_ok(self, trib_offload_attach(parent));
        parent->offload->agg_comm = agg_comm;
        return parent;
    }
    aggregators_serve(self, s, agg_comm);
    trib_agg_comm_dispose(agg_comm);
    return NULL;
}

/* A rank without plans disconnects; rank 0 sends its goodbye to the aggregators. */
static inline void aggregators_leave(struct ranks_self *self,
                                     const struct aggregators *s,
                                     struct trib_comm *agg_comm)
{
    if (trib_free_comm(agg_comm) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(NULL));
    if (self->rank == 0)
        aggregators_tell(s, AGGREGATORS_GOODBYE, "-");
}

/* Run a job of the ranks and their aggregators: each process calls job.fn, and all must
 * pass. */
static inline void aggregators_run(struct aggregators *s, struct ranks_job job)
{
    job.size = s->ranks + s->n;
    assert_true(aggregators_open(s));
    assert_int_equal(ranks_run(&job), 0);
    aggregators_close(s);
}

/* Return a tree of two racks whose aggregators form the root as well; one rack has two
 * of them. */
static inline const struct trib_agg_tree *aggregators_of_racks(void)
{
    static const int parent[] = {0, 0, 0}, first[] = {0, 3, 5, 6},
                     members[] = {0, 1, 2, 0, 1, 2}, leaf_of[] = {1, 2, 1};
    static const struct trib_agg_tree tree = {3, parent, first, members, leaf_of};

    return &tree;
}

#endif
