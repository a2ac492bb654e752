/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks know who is of their host, and sum by it. */
#include "tests/harness/tribtest.h"

#include <stdio.h>

#include "core/comm.h"
#include "core/near.h"
#include "tests/harness/ranks.h"

enum { COUNT = 5000 };

/* What the job is to find. */
struct expected {
    int per_host;
    int leaders;
};

static void check_groups(struct ranks_self *self, const struct expected *x)
{
    struct trib_near_groups near;
    struct trib_shape shape = {0};
    int size = trib_size(self->comm), hosts = (size + x->per_host - 1) / x->per_host;

    ranks_ok(self, trib_near_group(self->comm, COUNT * sizeof(int), &near, &shape));
    if (!shape.groups || shape.groups->n != hosts || shape.groups->leaders != x->leaders)
        ranks_die(self, "%d hosts of %d leaders, not %d of %d",
                   shape.groups ? shape.groups->n : 0, shape.groups ? shape.groups->leaders : 0,
                   hosts, x->leaders);
    for (int r = 0; r < size; r++)
        if (shape.groups->of_rank[r] != r / x->per_host)
            ranks_die(self, "rank %d is of host %d", r, shape.groups->of_rank[r]);
    trib_near_ungroup(&near);
}

static int sum(struct ranks_self *self)
{
    const struct expected *x = self->arg;
    int size = trib_size(self->comm), v[COUNT];

    check_groups(self, x);
    for (int i = 0; i < COUNT; i++)
        v[i] = i * (self->rank + 1);
    ranks_ok(self, trib_allreduce(self->comm, v, v, COUNT, TRIB_I32, TRIB_SUM));
    for (int i = 0; i < COUNT; i++)
        if (v[i] != i * size * (size + 1) / 2)
            ranks_die(self, "element %d is %d", i, v[i]);
    return 0;
}

static void run(int size, const char *settings, struct expected x)
{
    char config[200];

    snprintf(config, sizeof(config), "algorithm=hierarchical;%s", settings);
    struct ranks_job job = {.size = size, .fn = sum, .arg = &x, .config = config};
    assert_int_equal(ranks_run(&job), 0);
}

static void test_two_hosts(void **state)
{
    (void)state;
    run(4, "transport=auto:near=shm,far=tcp,ranks_per_host=2;leaders=2",
        (struct expected){2, 2});
}

/* The last host has one rank: it leads alone, and so do others. */
static void test_uneven(void **state)
{
    (void)state;
    run(5, "transport=auto:near=shm,far=tcp,ranks_per_host=2;leaders=2",
        (struct expected){2, 1});
}

static void test_one_host(void **state)
{
    (void)state;
    run(3, "transport=shm;leaders=3", (struct expected){3, 3});
    run(3, "transport=tcp;leaders=2", (struct expected){3, 2});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_one_host),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
