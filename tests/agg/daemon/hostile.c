/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job that tribd admits and that misbehaves: tests measure what this costs others.
 *
 *     trib-run -n 2 -- hostile WAY FILE    run until the file exists or tribd drops the
 *                                          job
 *         tiny     many concurrent operations of one element
 *         plans    rank 0 announces and withdraws plans without end
 *         freed    rank 0 withdraws plans that never existed, without end
 *         garble   frames with wrong bytes
 *         rewrite  rank 1 starts a process that rewrites all memory shared with tribd,
 *                  over shm, until their job fails
 *     hostile joins|messages FILE          without ranks, until the file exists:
 *                                          hostile_alone.c
 *     hostile unauthenticated|credentials FILE
 *                                          without a key, until the file exists
 *
 * Rank 0, or the only process, prints at the end what it has done. Exit code 1: it
 * could not begin, or tribd kept a connection that it should have closed.
 */
#include "tests/agg/daemon/hostile.h"

#include "agg/client/fallback.h"
#include "base/time.h"
#include "comm/core/plan_struct.h"
#include "tests/agg/client/rewriter.h"
#include "tests/agg/daemon/exact_jobs.h"

enum { TINY = 32, LONGEST_S = 900 };

bool hostile_goes_on(const char *file)
{
    static uint64_t until; /* deadline of the process: it ends even if the test has
                            * died */

    if (!until)
        until = trib_deadline_ms(LONGEST_S * 1000);
    return access(file, F_OK) != 0 && !trib_deadline_passed(until);
}

static struct trib_comm *channel_of(trib_comm_t *comm)
{
    return comm->offload ? comm->offload->agg_comm : NULL;
}

/* Run one sum: it checks that the service serves the job. */
static void begin(trib_comm_t *comm)
{
    float x = 1;

    const trib_status_t st = trib_allreduce(comm, NULL, &x, 1, TRIB_F32, TRIB_SUM);
    if (st == TRIB_ERR_PEER_LOST && trib_rank(comm) > 0)
        _exit(0); /* rank 0 has already misbehaved, was dropped, and has exited */
    must(comm, st, "a first sum");
    if (channel_of(comm))
        return;
    fprintf(stderr, "there is no service to be hostile to\n");
    exit(1);
}

/* Continue on both ranks until rank 0 has seen the file. */
static bool all_go_on(trib_comm_t *comm, const char *file)
{
    int32_t on = hostile_goes_on(file);

    must(comm, trib_broadcast(comm, &on, 1, TRIB_I32, 0), "a broadcast");
    return on;
}

static long tiny(trib_comm_t *comm, const char *file)
{
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan[TINY];
    float x[TINY];
    long n = 0;

    for (int i = 0; i < TINY; i++) {
        d.count = 1;
        d.recv = &x[i];
        must(comm, trib_plan_allreduce(comm, &d, &plan[i]), "a plan");
    }
    for (; n % 10 || all_go_on(comm, file); n++) {
        for (int i = 0; i < TINY; i++) {
            x[i] = (float)i;
            must(comm, trib_plan_start(plan[i]), "start");
        }
        for (int i = 0; i < TINY; i++) {
            must(comm, trib_plan_wait(plan[i]), "wait");
            if (x[i] != (float)(i * trib_size(comm)))
                exit(1);
        }
    }
    for (int i = 0; i < TINY; i++)
        must(comm, trib_plan_free(plan[i]), "free");
    return n * TINY;
}

/* Check now and then whether tribd has dropped the job. */
static bool is_dropped(trib_comm_t *comm, long n)
{
    struct trib_offload *v = comm->offload;

    if (n % 100 == 0)
        v->provider.check(v->provider.arg);
    return v->agg_comm->engine.failed;
}

/* Called by rank 0; the others do nothing. */
static long announce(trib_comm_t *comm, const char *file, bool real)
{
    static const char *const text[] = {
        "coll=allreduce count=1 dtype=f32 op=sum root=0 feed=0 chunk=0 leaving=0 "
        "feedback=none quorum=all codec=none",
        "freed=0 "};
    const struct trib_announcer to = trib_agg_comm_of(channel_of(comm))->announcer;
    struct trib_error err = {0};
    long n = 0;

    for (; hostile_goes_on(file); n++) {
        const int which = real ? (int)(n / 1000 % 2) : 1;
        if (trib_rank(comm) != 0)
            usleep(1000);
        else if (to.plan(to.arg, (uint32_t)(n % 1000 + 100), text[which], &err) !=
                     TRIB_OK ||
                 is_dropped(comm, n))
            break;
    }
    return n;
}

/* The original write of the transport, for all but the corrupted bytes. */
static trib_status_t (*honest_write)(struct trib_transport *, int,
                                     const struct trib_write *);
static struct trib_engine *engine;

static trib_status_t garbled_write(struct trib_transport *t, int peer,
                                   const struct trib_write *w)
{
    static unsigned n;
    const struct trib_outbox *box = &engine->links[peer].outbox;

    if (++n % 7 == 0 && w->len && w->local == box->region)
        hostile_noise(box->base + w->local_off, w->len);
    return honest_write(t, peer, w);
}

/* Within load/store reach of tribd: overwrite the slots while it sums there. */
static void garble_slots(void)
{
    for (int p = engine->ranks; p < engine->size; p++) {
        struct trib_link *l = &engine->links[p];
        for (int lane = 0; lane < TRIB_LANES; lane++)
            if (l->send[lane].remote)
                hostile_noise(l->send[lane].remote, l->stride * l->window[lane]);
    }
}

static long garble(trib_comm_t *comm, const char *file)
{
    static struct trib_transport_ops ops;
    static float x[10000];
    long n = 0;

    engine = &channel_of(comm)->engine;
    ops = *engine->transport->ops;
    honest_write = ops.write;
    ops.write = garbled_write;
    engine->transport->ops = &ops;
    for (; hostile_goes_on(file) && channel_of(comm); n++) {
        garble_slots();
        if (trib_allreduce(comm, NULL, x, 10000, TRIB_F32, TRIB_SUM) != TRIB_OK)
            break;
    }
    return n;
}

static long rewrite(trib_comm_t *comm, const char *file)
{
    static float x[20000];
    struct trib_engine *e = &channel_of(comm)->engine;
    pid_t rewriter = 0;
    long n = 0;

    if (trib_rank(comm) == 1)
        rewriter = rewriter_start(e, e->ranks);
    for (; hostile_goes_on(file) && channel_of(comm); n++)
        if (trib_allreduce(comm, NULL, x, 20000, TRIB_F32, TRIB_SUM) != TRIB_OK)
            break;
    rewriter_stop(rewriter);
    return n;
}

static int member(const char *way, const char *file)
{
    trib_comm_t *comm;
    long n;

    must(NULL, trib_init(NULL, &comm), "trib_init");
    begin(comm);
    if (strcmp(way, "tiny") == 0)
        n = tiny(comm, file);
    else if (strcmp(way, "garble") == 0)
        n = garble(comm, file);
    else if (strcmp(way, "rewrite") == 0)
        n = rewrite(comm, file);
    else
        n = announce(comm, file, strcmp(way, "plans") == 0);
    if (trib_rank(comm) == 0)
        printf("hostile by %s: %ld\n", way, n);
    if (strcmp(way, "tiny") == 0)
        must(NULL, trib_free_comm(comm), "leave");
    fflush(stdout);
    _exit(0); /* without a goodbye */
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: hostile tiny|plans|freed|garble|rewrite|joins|messages|"
                        "unauthenticated|credentials FILE\n");
        return 1;
    }
    if (strcmp(argv[1], "joins") == 0 || strcmp(argv[1], "messages") == 0)
        return hostile_alone(argv[1], argv[2]);
    if (strcmp(argv[1], "unauthenticated") == 0 || strcmp(argv[1], "credentials") == 0)
        return hostile_unauthenticated(argv[1], argv[2]);
    return member(argv[1], argv[2]);
}
