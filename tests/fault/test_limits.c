/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time limits of 0: ranks wait for a stopped rank, but detect a dead one.
 */
#include "tests/harness/ranks.h"

enum { STOPPED_MS = 600 }; /* several times the smallest limit, which is 100 ms */

/* The victim reports that it is ready, and waits for the signal. */
static int work(struct ranks_self *self)
{
    const bool dies = *(const bool *)self->arg;
    float x = 1;

    ranks_ok(self, trib_allreduce(self->comm, NULL, &x, 1, TRIB_F32, TRIB_SUM));
    atomic_store(&self->slot->phase, 1);
    if (self->rank == 1)
        raise(SIGSTOP);
    const trib_status_t st =
        trib_allreduce(self->comm, NULL, &x, 1, TRIB_F32, TRIB_SUM);
    ranks_expect(self, st, dies ? TRIB_ERR_PEER_LOST : TRIB_OK, "the second sum");
    ranks_assert(self, dies || x == 4);
    atomic_store(&self->slot->phase, 2);
    return 0;
}

static void await_stop(struct ranks *r)
{
    unsigned turns = 0;
    int status;

    while (!atomic_load(&r->slots[0].phase))
        tribtest_rest(&turns);
    assert_int_equal(waitpid(r->pids[1], &status, WUNTRACED), r->pids[1]);
    assert_true(WIFSTOPPED(status));
}

static void hit(const char *transport, bool dies)
{
    struct ranks r;
    char config[160];

    snprintf(config, sizeof(config), "%s;timeout_ms=0;stop_timeout_ms=0", transport);
    assert_true(ranks_start(&r, &(struct ranks_job){.size = 2,
                                                    .fn = work,
                                                    .arg = &dies,
                                                    .config = config,
                                                    .noisy = true}));
    await_stop(&r);
    usleep(STOPPED_MS * 1000);
    assert_int_equal(atomic_load(&r.slots[0].phase), 1); /* it still waits */
    ranks_signal(&r, 1, dies ? SIGKILL : SIGCONT);
    ranks_wait(&r);
    assert_int_equal(r.slots[0].status, 0);
    if (!dies)
        assert_int_equal(ranks_failed(&r), 0);
    assert_false(r.hung);
    ranks_close(&r);
}

TEST_ON(test_stop, "shm", "tcp", "auto:ranks_per_host=1")
{
    hit(*state, false);
}

TEST_ON(test_death, "shm", "tcp", "auto:ranks_per_host=1")
{
    hit(*state, true);
}
