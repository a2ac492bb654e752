/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps: an urgent tensor overtakes; misuse causes an error message and no harm; a lost
 * rank ends the step on all ranks.
 */
#include "comm/tensors/tensor_group.h"
#include "tests/comm/tensors/net.h"

static void await_phase(struct ranks_self *self, int rank, int phase)
{
    while (self->slot[rank - self->rank].phase < phase)
        usleep(1000);
}

/* Rank 0 has all tensors ready before rank 1 starts with the urgent one. */
static int overtakes(struct ranks_self *self)
{
    trib_group_stats_t stats = {.size = sizeof(stats)};
    static struct net net;

    describe(&net);
    net.of[N - 1].priority = 5;
    create(self, &net);
    ranks_ok(self, trib_group_start(net.group));
    if (self->rank == 1)
        await_phase(self, 0, 1);
    for (int i = 0; i < N; i++)
        ranks_ok(self, trib_group_ready(net.group, self->rank == 0
                                                       ? (size_t)i
                                                       : (size_t)(i + N - 1) % N));
    self->slot->phase = 1;
    ranks_ok(self, trib_group_wait(net.group));
    ranks_assert(self, net.told.n == N && net.told.order[0] == N - 1);
    ranks_ok(self, trib_group_stats(net.group, &stats));
    ranks_assert(self, (stats.overtaken > 0) == (self->rank == 0));
    for (int i = 0; i < N; i++)
        ranks_assert(self, net.memory[i][COUNT - 1] == (float)(i * self->size));
    ranks_ok(self, trib_group_free(net.group));
    return 0;
}

static void misuse_buffers(struct ranks_self *self, struct net *net)
{
    void *recvs[N];
    const void *sends[N];

    for (int i = 0; i < N; i++) {
        recvs[i] = net->memory[i];
        sends[i] = NULL;
    }
    sends[5] = net->memory[5] + 1;
    said(self, trib_group_start_with(net->group, sends, recvs), TRIB_ERR_OVERLAP,
         WORDS("\"t5\"", "overlap"));
    recvs[6] = NULL;
    said(self, trib_group_start_with(net->group, NULL, recvs), TRIB_ERR_INVALID,
         WORDS("\"t6\"", "recv is NULL"));
    said(self, trib_group_start_with(net->group, sends, NULL), TRIB_ERR_INVALID,
         WORDS("recvs is NULL"));
}

static int misuse(struct ranks_self *self)
{
    static struct net net;
    size_t bytes;

    describe(&net);
    create(self, &net);
    trib_group_t *g = net.group;
    ranks_ok(self, trib_group_test(g));
    ranks_ok(self, trib_group_wait(g));
    said(self, trib_group_ready(g, 2), TRIB_ERR_INVALID, WORDS("\"t2\"", "no step"));
    misuse_buffers(self, &net);
    ranks_ok(self, trib_group_start(g));
    said(self, trib_group_start(g), TRIB_ERR_BUSY, WORDS("in a step"));
    said(self, trib_group_free(g), TRIB_ERR_BUSY, WORDS("in a step"));
    said(self, trib_group_state_save(g, NULL, 0, &bytes), TRIB_ERR_BUSY,
         WORDS("in a step"));
    said(self, trib_group_ready(g, N), TRIB_ERR_INVALID,
         WORDS("tensor 11 does not exist"));
    said(self, trib_group_test_tensor(g, SIZE_MAX), TRIB_ERR_INVALID,
         WORDS("does not exist"));
    ranks_ok(self, trib_group_ready(g, 2));
    said(self, trib_group_ready(g, 2), TRIB_ERR_INVALID, WORDS("\"t2\"", "already"));
    ranks_ok(self, trib_group_wait_tensor(g, 2));
    said(self, trib_group_wait_tensor(g, 3), TRIB_ERR_INVALID,
         WORDS("\"t3\"", "ready"));
    said(self, trib_group_wait(g), TRIB_ERR_INVALID, WORDS("\"t0\"", "9 more"));
    for (size_t i = 0; i < N; i++)
        if (i != 2)
            ranks_ok(self, trib_group_ready(g, i));
    ranks_ok(self, trib_group_wait(g));
    ranks_assert(self, net.told.n == N && net.told.order[0] == 2);
    ranks_ok(self, trib_group_free(g));
    ranks_ok(self, trib_group_free(NULL));
    return 0;
}

/* Another operation is started on the communicator during a step. */
static int disturbed(struct ranks_self *self)
{
    static struct net net;

    describe(&net);
    create(self, &net);
    ranks_ok(self, trib_group_start(net.group));
    ranks_ok(self, trib_group_ready(net.group, 0));
    ranks_ok(self, trib_barrier(self->comm));
    said(self, trib_group_ready(net.group, 1), TRIB_ERR_INVALID,
         WORDS("another operation", "trib_split"));
    ranks_expect(self, trib_group_wait(net.group), TRIB_ERR_INVALID, "wait");
    ranks_expect(self, trib_group_start(net.group), TRIB_ERR_INVALID, "start");
    ranks_assert(self, net.told.n == N && net.told.status[N - 1] == TRIB_ERR_INVALID);
    ranks_ok(self, trib_group_free(net.group));
    return 0;
}

static int waits_for_different(struct ranks_self *self)
{
    static struct net net;

    describe(&net);
    create(self, &net);
    ranks_ok(self, trib_group_start(net.group));
    ranks_ok(self, trib_group_ready(net.group, (size_t)self->rank));
    said(self, trib_group_wait_tensor(net.group, (size_t)self->rank), TRIB_ERR_INVALID,
         WORDS("none of which is ready on all ranks"));
    ranks_ok(self, trib_group_free(net.group));
    return 0;
}

/* A rank waits for a tensor that another one marks much later. */
static int waits_for_late(struct ranks_self *self)
{
    static struct net net;

    describe(&net);
    create(self, &net);
    ranks_ok(self, trib_group_start(net.group));
    for (size_t i = 0; i < N; i++) {
        const size_t tensor = self->rank == 0 ? i : N - 1 - i;
        usleep(self->rank ? 2000 : 0);
        ranks_ok(self, trib_group_ready(net.group, tensor));
        if (self->rank == 0)
            ranks_ok(self, i == 0 ? trib_group_wait_tensor(net.group, 0) : TRIB_OK);
    }
    ranks_ok(self, trib_group_wait(net.group));
    ranks_ok(self, trib_group_free(net.group));
    return 0;
}

/* Ranks wait for a tensor that is being summed, and have different tensors ready. */
static int waits_for_started(struct ranks_self *self)
{
    static float large[1 << 20];
    static struct net net;

    describe(&net);
    net.of[0].recv = large;
    net.of[0].count = sizeof(large) / sizeof(large[0]);
    create(self, &net);
    for (int step = 0; step < 20; step++) {
        const size_t mine = 1 + (size_t)self->rank;
        ranks_ok(self, trib_group_start(net.group));
        ranks_ok(self, trib_group_ready(net.group, 0));
        while (step % 2 && net.group->step.n_started == 0)
            ranks_expect(self, trib_group_test(net.group), TRIB_INPROGRESS, "test");
        ranks_ok(self, trib_group_ready(net.group, mine));
        ranks_ok(self, trib_group_wait_tensor(net.group, 0));
        for (size_t i = 1; i < N; i++)
            if (i != mine)
                ranks_ok(self, trib_group_ready(net.group, i));
        ranks_ok(self, trib_group_wait(net.group));
        net.told.n = 0;
    }
    ranks_ok(self, trib_group_free(net.group));
    return 0;
}

static int loses(struct ranks_self *self)
{
    static struct net net;

    describe(&net);
    create(self, &net);
    ranks_ok(self, trib_group_start(net.group));
    for (size_t i = 0; i < N; i++) {
        if (self->rank == 1 && i == N / 2)
            raise(SIGKILL);
        const trib_status_t st = trib_group_ready(net.group, i);
        ranks_assert(self, st == TRIB_OK || st == TRIB_ERR_PEER_LOST);
    }
    ranks_expect(self, trib_group_wait(net.group), TRIB_ERR_PEER_LOST, "wait");
    ranks_assert(self, net.told.n == N && net.told.status[N - 1] == TRIB_ERR_PEER_LOST);
    ranks_ok(self, trib_group_free(net.group));
    return 0;
}

TEST_ON(test_order, "shm", "tcp")
{
    ranks_pass(.size = 2, .fn = overtakes, .config = *state);
    ranks_pass(.size = 2, .fn = waits_for_late, .config = *state);
    ranks_pass(.size = 2, .fn = waits_for_started, .config = *state);
    ranks_pass(.size = 3, .fn = waits_for_different, .config = *state);
}

TEST(test_mistakes)
{
    ranks_pass(.size = 2, .fn = misuse);
    ranks_pass(.size = 1, .fn = misuse, .config = "progress=caller");
    ranks_pass(.size = 1, .fn = disturbed);
}

TEST_ON(test_loss, "shm", "tcp")
{
    const struct ranks_job job = {
        .size = 3, .fn = loses, .config = *state, .noisy = true};

    assert_int_equal(ranks_run(&job), 1);
}
