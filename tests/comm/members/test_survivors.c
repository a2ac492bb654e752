/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Survivors exchange data: streams of any length, a set that grows, a rank that aborts,
 * a rank that learns that it counts as lost, a rank that is late.
 */
#include "build-config.h"
#include "comm/core/communicator.h"
#include "comm/members/survivors.h"
#include "tests/harness/ranks.h"

#define SIZE 4

static void open_survivors(struct ranks_self *self, struct trib_survivors *s,
                           struct trib_error *err)
{
    *s = (struct trib_survivors){.comm = self->comm,
                                 .err = err,
                                 .attempt = TRIB_SURVIVORS_SHRINK,
                                 .call = "trib_comm_shrink"};
    trib_comm_fail_all(self->comm, TRIB_ERR_ABORTED, "the test says so");
    ranks_ok(self, trib_survivors_open(s));
}

static bool agrees(const struct trib_survivors *s, int rank, uint64_t phase)
{
    return s->of[rank].heard && s->of[rank].said.set == s->set &&
           s->of[rank].said.phase >= phase;
}

static bool has_given(const struct trib_survivors *s, int rank, uint64_t fragments)
{
    return s->of[rank].taken >= fragments;
}

static void await_all(struct ranks_self *self, struct trib_survivors *s,
                      enum trib_survivor_phase phase)
{
    trib_survivors_say(s, phase);
    ranks_assert(self, trib_survivors_wait(s, agrees, phase) == TRIB_SURVIVORS_DONE);
}

/* Each rank sends as many bytes as a wireup may, and some odd numbers of bytes. */
static int streams(struct ranks_self *self)
{
    struct trib_error err = {0};
    struct trib_survivors s;
    uint8_t mine[1500];
    uint32_t fragments = 0;

    open_survivors(self, &s, &err);
    await_all(self, &s, TRIB_SURVIVOR_AGREES);
    for (int i = 0; i < 2; i++) {
        const size_t n = i ? 1 : sizeof(mine), before = fragments;
        memset(mine, 16 * i + self->rank, sizeof(mine));
        mine[n - 1] = 0xff;
        fragments = trib_survivors_give(&s, mine, n);
        trib_survivors_say(&s, TRIB_SURVIVOR_EXCHANGES);
        ranks_assert(self, trib_survivors_wait(&s, has_given, fragments) ==
                               TRIB_SURVIVORS_DONE);
        for (int r = 0; r < SIZE; r++) {
            const uint8_t *theirs = s.of[r].stream + before * TRIB_SURVIVOR_DATA;
            ranks_assert(self, theirs[n - 1] == 0xff);
            ranks_assert(self, n == 1 || theirs[n - 2] == 16 * i + r);
        }
    }
    trib_survivors_say(&s, TRIB_SURVIVOR_READY);
    const enum trib_survivors_end end =
        trib_survivors_wait(&s, agrees, TRIB_SURVIVOR_READY);
    /* Another rank may be ahead, and have disconnected. */
    ranks_assert(self, end == TRIB_SURVIVORS_DONE || end == TRIB_SURVIVORS_COMMIT);
    trib_survivors_say(&s, TRIB_SURVIVOR_COMMITTED);
    trib_survivors_flush(&s, 5000);
    trib_survivors_close(&s);
    return 0;
}

TEST_ON(test_streams, "shm", "tcp", IF_UCX("ucx"))
{
    ranks_pass(.size = SIZE, .fn = streams, .config = *state, .noisy = true);
}

/* Rank 0 considers rank 3 lost: the others adopt that, and rank 3 stops. */
RANKS_TEST_ON(test_evicts, ("shm", "tcp", IF_UCX("ucx")), .size = SIZE, .noisy = true)
{
    struct trib_error err = {0};
    struct trib_survivors s;

    open_survivors(self, &s, &err);
    if (self->rank == 0) {
        s.next_lost[0] |= 1 << 3;
        trib_survivors_renew(&s);
    }
    enum trib_survivors_end end;
    while ((end = trib_survivors_wait(&s, agrees, 0)) == TRIB_SURVIVORS_AGAIN)
        trib_survivors_renew(&s);
    ranks_assert(self, s.is_evicted == (self->rank == 3));
    if (self->rank == 3) {
        ranks_assert(self, s.why == TRIB_ERR_PEER_LOST);
        ranks_assert(self, strstr(err.text, "count rank 3 as lost"));
        atomic_store(&self->slot->phase, 1);
    } else {
        ranks_assert(self, end == TRIB_SURVIVORS_DONE);
        ranks_assert(self, trib_survivors_is_lost(&s, 3));
    }
    /* They may be done before their reports have reached rank 3. */
    do {
        trib_survivors_flush(&s, 200);
    } while (atomic_load(&(self->slot - self->rank)[3].phase) == 0);
    trib_survivors_close(&s);
    return 0;
}

/* Some may learn of it before they have agreed. */
RANKS_TEST_ON(test_gives_up, ("shm", "tcp", IF_UCX("ucx")), .size = SIZE, .noisy = true)
{
    struct trib_error err = {0};
    struct trib_survivors s;

    open_survivors(self, &s, &err);
    if (self->rank == 1) {
        await_all(self, &s, TRIB_SURVIVOR_AGREES);
        trib_survivors_stop(&s, TRIB_ERR_NO_MEMORY, "the first");
        trib_survivors_stop(&s, TRIB_ERR_SYSTEM, "the second");
        ranks_assert(self, strstr(err.text, "the first"));
    } else {
        ranks_assert(self,
                     trib_survivors_wait(&s, has_given, 1) == TRIB_SURVIVORS_STOP);
        ranks_assert(self, strstr(err.text, "rank 1 (host"));
    }
    ranks_assert(self, s.why == TRIB_ERR_NO_MEMORY);
    trib_survivors_say(&s, TRIB_SURVIVOR_GAVE_UP); /* before it disconnects, as all
                                                    * do */
    trib_survivors_flush(&s, 1000);
    trib_survivors_close(&s);
    return 0;
}

/* Rank 3 counts as lost. If all others may have been stopped, they continue only if one
 * of them knows that rank 3 has ended or does not continue. */
struct sureness {
    unsigned away, dead, gone_out; /* bit r: rank r was stopped, knows that rank 3 has
                                    * ended, or does not continue */
    enum trib_survivors_end end;
};

static int make_sure(struct ranks_self *self)
{
    const struct sureness *a = self->arg;
    struct trib_engine *e = &self->comm->engine;
    struct trib_error err = {0};
    struct trib_survivors s;

    (void)trib_barrier(self->comm); /* others may be ahead, and fail it */
    if (self->rank == 3) {
        trib_comm_fail_all(self->comm, TRIB_ERR_ABORTED, "the test says so");
        for (int r = 0; r < 3; r++)
            while (atomic_load(&(self->slot - 3)[r].phase) == 0)
                usleep(1000);
        return 0;
    }
    e->maybe_away = a->away >> self->rank & 1;
    e->links[3].reported_lost = true;
    e->links[3].dead = a->dead >> self->rank & 1;
    e->links[3].gone_out = a->gone_out >> self->rank & 1;
    open_survivors(self, &s, &err);
    await_all(self, &s, TRIB_SURVIVOR_AGREES);
    enum trib_survivors_end end = trib_survivors_make_sure(&s);
    if (end == TRIB_SURVIVORS_AGAIN) /* another rank aborted earlier */
        end = TRIB_SURVIVORS_STOP;
    ranks_assert(self, end == a->end);
    if (s.is_evicted)
        ranks_assert(self, strstr(err.text, "may continue without it"));
    trib_survivors_flush(&s, 200);
    trib_survivors_close(&s);
    atomic_store(&self->slot->phase, 1);
    return 0;
}

TEST_ON(test_sure, "shm", "tcp", IF_UCX("ucx"))
{
    static const struct sureness rows[] = {
        {0, 0, 0, TRIB_SURVIVORS_DONE},       {5, 0, 0, TRIB_SURVIVORS_DONE},
        {7, 0, 0, TRIB_SURVIVORS_STOP},       {7, 1u << 1, 0, TRIB_SURVIVORS_DONE},
        {7, 0, 1u << 2, TRIB_SURVIVORS_DONE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ranks_pass(.size = SIZE, .fn = make_sure, .config = *state,
                   .arg = (void *)(uintptr_t)&rows[i], .noisy = true);
}

enum { REFUSED = 1, TOLD }; /* phases of a rank: TOLD that the late rank is missing */

/* Return true once all others were refused, and one of them got the reason. */
static bool may_come(const struct ranks_self *self)
{
    const struct ranks_slot *slots = self->slot - self->rank;
    bool told = false;

    for (int r = 0; r < SIZE; r++) {
        const int phase = atomic_load(&slots[r].phase);
        if (r != self->rank && phase == 0)
            return false;
        told |= phase == TOLD;
    }
    return told;
}

/* A rank that does not call is named, and once it calls, all may call again. On a busy
 * machine other ranks may be late and named as well. */
static int comes_late(struct ranks_self *self)
{
    trib_comm_t *smaller;
    trib_status_t st;

    ranks_ok(self, trib_init(&self->opts, &self->comm));
    (void)trib_barrier(self->comm); /* others may be ahead, and shrink */
    while (self->rank == 2 && !may_come(self))
        usleep(1000);
    while ((st = trib_comm_shrink(self->comm, &smaller)) != TRIB_OK) {
        const char *text = trib_last_error(NULL);
        if (st != TRIB_ERR_TIMEOUT && st != TRIB_ERR_ABORTED)
            ranks_die(self, "%s: %s", trib_status_name(st), text);
        if (strstr(text, "rank 2 ") && strstr(text, "has not called it for"))
            atomic_store(&self->slot->phase, TOLD);
        else if (atomic_load(&self->slot->phase) == 0)
            atomic_store(&self->slot->phase, REFUSED);
    }
    ranks_assert(self, trib_size(smaller) == SIZE);
    ranks_ok(self, trib_free_comm(self->comm));
    ranks_ok(self, trib_barrier(smaller));
    ranks_ok(self, trib_free_comm(smaller));
    return 0;
}

TEST_ON(test_comes_late, "shm", "tcp", IF_UCX("ucx"))
{
    char config[120];

    snprintf(config, sizeof(config), "%s,timeout_ms=%d", (const char *)*state,
             600 * (int)tribtest_slowness());
    ranks_pass(.size = SIZE, .fn = comes_late, .config = config, .bare = true,
               .noisy = true);
}
