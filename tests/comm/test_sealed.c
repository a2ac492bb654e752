/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation over sealed connections (TRIB_SEAL), one record of which is changed in
 * transit: it fails on all ranks with a message that names the rank at the other end,
 * and none hangs.
 */
#include <sys/socket.h>
#include <sys/syscall.h>

#include "tests/harness/ranks.h"
#include "transport/common/sealed_record.h"

#define COUNT 50000
#define LIMIT_SECONDS (10.0 * tribtest_slowness())

static _Atomic bool spoils; /* corrupt the next record that this process sends */
static _Atomic int spoilt;

/* Replaces the send of libc: all data of a rank passes through here. */
ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    struct trib_record_head head = {0};

    memcpy(&head, bytes, n < sizeof(head) ? n : sizeof(head));
    if (spoils && head.magic == TRIB_RECORD_MAGIC && n > TRIB_RECORD_MORE) {
        uint8_t *copy = malloc(n);
        memcpy(copy, bytes, n);
        copy[n / 2] ^= 1;
        spoils = false;
        spoilt = 1;
        ssize_t sent = syscall(SYS_sendto, fd, copy, n, flags, NULL, 0);
        free(copy);
        return sent;
    }
    return syscall(SYS_sendto, fd, bytes, n, flags, NULL, 0);
}

static float from[COUNT], to[COUNT];

static int sum_spoilt(struct ranks_self *self)
{
    const char *algorithm = self->arg;
    trib_plan_t *plan;
    trib_desc_t desc = sized(trib_desc_t, .send = from, .recv = to, .count = COUNT,
                             .algorithm = algorithm);

    for (size_t i = 0; i < COUNT; i++)
        from[i] = (float)(self->rank + 1);
    ranks_ok(self, trib_plan_create(self->comm, TRIB_ALLREDUCE, &desc, &plan));
    ranks_step(self, plan);
    for (size_t i = 0; i < COUNT; i++)
        ranks_assert(self, to[i] == (float)(self->size * (self->size + 1) / 2));
    /* Others may still be in this barrier when rank 0 starts. */
    trib_status_t st = trib_barrier(self->comm);
    spoils = self->rank == 0;
    const double begin = ranks_seconds();
    if (st == TRIB_OK)
        st = trib_plan_start(plan);
    if (st == TRIB_OK)
        st = trib_plan_wait(plan);
    if (st == TRIB_OK) /* a rank may have all its data before the others fail */
        st = trib_barrier(self->comm);
    const double seconds = ranks_seconds() - begin;
    const char *text = trib_last_error(self->comm);
    if (st == TRIB_OK || !strstr(text, "rank "))
        ranks_die(self, "%s: %s: %s", algorithm, trib_status_name(st), text);
    if (seconds > LIMIT_SECONDS)
        ranks_die(self, "%s: took %.1f s: %s", algorithm, seconds, text);
    ranks_say(self, "%s", text);
    ranks_ok(self, trib_plan_free(plan));
    return self->rank == 0 && !spoilt;
}

TEST(test_changed_on_the_way)
{
    static const char *const algorithms[] = {"ring", "direct", "tree"};
    static const char *const rank_0[] = {"rank 0", "was changed, repeated, dropped",
                                         NULL};

    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
        struct ranks_job job = {.size = 3,
                                .fn = sum_spoilt,
                                .arg = (void *)(uintptr_t)algorithms[i],
                                .config = "transport=tcp;seal=1",
                                .noisy = true};
        struct ranks r;
        int saw = 0;
        assert_true(ranks_start(&r, &job));
        ranks_wait(&r);
        const int failed = ranks_failed(&r);
        for (int k = 1; k < job.size; k++)
            saw += ranks_has(r.slots[k].text, rank_0);
        for (int k = 0; k < job.size; k++)
            printf("# %s, rank %d: %s\n", algorithms[i], k, r.slots[k].text);
        ranks_close(&r);
        assert_int_equal(failed, 0);
        assert_true(saw >= 1);
    }
}

int main(void)
{
    struct trib_sodium sodium;
    char why[160];

    if (!trib_sodium_open(&sodium, why, sizeof(why))) {
        printf("# skipped: %s\n", why);
        return TRIBTEST_SKIPPED;
    }
    return tribtest_run();
}
