/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test comm/core/communicator.c: error messages, ranks and sizes; a forked child may
 * only free its copy.
 */
#include "comm/core/comm_setup.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "tests/harness/ranks.h"

static int sentences(struct ranks_self *self)
{
    trib_comm_t *comm = self->comm;

    ranks_assert(self, trib_rank(comm) == self->rank && trib_size(comm) == self->size);
    ranks_assert(self,
                 trib_comm_fail(comm, TRIB_ERR_BUSY, "number %d", 7) == TRIB_ERR_BUSY);
    ranks_assert(self, strcmp(trib_last_error(comm), "number 7") == 0);
    ranks_ok(self, trib_progress(comm));
    ranks_ok(self, trib_barrier(comm));
    /* Once the engine has failed, its message and status override any other. */
    trib_comm_fail_all(comm, TRIB_ERR_ABORTED, "the test has failed it");
    ranks_assert(self,
                 trib_comm_fail(comm, TRIB_ERR_BUSY, "not this") == TRIB_ERR_ABORTED);
    ranks_assert(self, strstr(trib_last_error(comm), "the test has failed it"));
    ranks_assert(self, trib_progress(comm) == TRIB_ERR_ABORTED);
    return 0;
}

TEST(test_sentences)
{
    assert_int_equal(trib_rank(NULL), -1);
    assert_int_equal(trib_size(NULL), 0);
    assert_status(trib_progress(NULL), TRIB_ERR_INVALID);
    trib_say_error("without a communicator");
    assert_string_equal(trib_last_error(NULL), "without a communicator");
    ranks_pass(.size = 2, .fn = sentences, .config = "transport=shm", .noisy = true);
}

TEST(test_options)
{
    trib_opts_t small = TRIB_OPTS_INIT, out;
    struct trib_error err = {0};

    assert_status(trib_opts_take(NULL, &out, &err), TRIB_OK);
    small.ranks = 3;
    assert_status(trib_opts_take(&small, &out, &err), TRIB_OK);
    assert_int_equal(out.ranks, 3);
    small.size = 1; /* no version of the struct is this small */
    assert_status(trib_opts_take(&small, &out, &err), TRIB_ERR_INVALID);
    assert_non_null(strstr(trib_error_text(&err), "TRIB_OPTS_INIT"));
}

struct copy {
    void *memory;
    trib_plan_t *plan[2]; /* one done, one running */
};

/* A forked child may only free its copy; its parent continues. */
static int use_copy(const struct ranks_self *self, struct copy *copy)
{
    static const char *const words[] = {"is a forked child",
                                        "call trib_init in the child", NULL};
    trib_comm_t *comm = self->comm, *half = NULL;
    trib_reach_t reach = {.size = sizeof(reach)};
    trib_stats_t stats = {.size = sizeof(stats)};
    trib_plan_t *plan;
    float x[1000] = {0};
    void *ptr;
    int call = 0;
    trib_desc_t desc = sized(trib_desc_t, .count = 4);

    desc.send = desc.recv = x;
    const trib_status_t refused[] = {
        trib_alloc(comm, 4096, &ptr),
        trib_register(comm, x, sizeof(x)),
        trib_free(comm, copy->memory),
        trib_deregister(comm, x),
        trib_plan_allreduce(comm, &desc, &plan),
        trib_allreduce(comm, NULL, x, 1000, TRIB_F32, TRIB_SUM), /* its plan is
                                                                  * cached */
        trib_barrier(comm),
        trib_plan_start(copy->plan[0]),
        trib_plan_ready(copy->plan[1], 0, 4),
        trib_plan_test(copy->plan[1]),
        trib_plan_wait(copy->plan[1]),
        trib_progress(comm),
        trib_reach(comm, (self->rank + 1) % self->size, &reach),
        trib_stats(comm, &stats),
        trib_split(comm, 0, 0, &half),
    };

    for (; call < (int)(sizeof(refused) / sizeof(refused[0])); call++)
        if (refused[call] != TRIB_ERR_INVALID)
            return 10 + call;
    if (!ranks_has(trib_last_error(comm), words))
        return 1;
    for (int i = 0; i < 2; i++)
        if (trib_plan_free(copy->plan[i]) != TRIB_OK)
            return 2;
    return trib_free_comm(comm) == TRIB_OK ? 0 : 3;
}

static int fork_between(struct ranks_self *self)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    float x[1000], y[4] = {1, 1, 1, 1}, ones[1000];
    struct copy copy;
    int status = -1;

    for (int i = 0; i < 1000; i++)
        ones[i] = 1;
    desc.count = 4;
    desc.recv = y;
    ranks_ok(self, trib_alloc(self->comm, 100000, &copy.memory));
    ranks_ok(self, trib_allreduce(self->comm, ones, x, 1000, TRIB_F32, TRIB_SUM));
    for (int i = 0; i < 2; i++) {
        desc.feed = i ? TRIB_FEED_FORWARD : TRIB_FEED_WHOLE;
        ranks_ok(self, trib_plan_allreduce(self->comm, &desc, &copy.plan[i]));
    }
    ranks_step(self, copy.plan[0]);
    ranks_ok(self, trib_plan_start(copy.plan[1]));
    if (self->rank == 0) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(use_copy(self, &copy));
        ranks_assert(self, pid > 0 && waitpid(pid, &status, 0) == pid);
        if (status != 0)
            ranks_die(self, "the child's status is 0x%x", (unsigned)status);
    }
    ranks_ok(self, trib_plan_ready(copy.plan[1], 0, 4));
    ranks_ok(self, trib_plan_wait(copy.plan[1]));
    ranks_assert(self, y[0] == 9 && y[3] == 9);
    for (int i = 0; i < 2; i++)
        ranks_ok(self, trib_plan_free(copy.plan[i]));
    for (int round = 0; round < 3; round++) {
        ranks_ok(self, trib_allreduce(self->comm, ones, x, 1000, TRIB_F32, TRIB_SUM));
        ranks_assert(self, x[0] == 3 && x[999] == 3);
    }
    return 0;
}

TEST(test_forked_child)
{
    static const char *const configs[] = {"transport=shm", "transport=tcp"};

    for (int i = 0; i < 2; i++) {
        ranks_pass(.size = 3, .fn = fork_between, .config = configs[i]);
    }
}
