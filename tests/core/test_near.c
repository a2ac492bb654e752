/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks know who is of their host, and sum by it. */
#include "tests/harness/tribtest.h"

#include <stdio.h>

#include "core/comm.h"
#include "core/near.h"
#include "tests/harness/ranks.h"
#include "tests/topo/data.h"
#include "topo/layout.h"

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

static void check_said(struct ranks_self *self, const struct expected *x)
{
    trib_desc_t d = TRIB_DESC_INIT;
    trib_plan_t *plan;
    char text[1000], expected[80];
    int v[COUNT];

    d.recv = v;
    d.count = COUNT;
    d.dtype = TRIB_I32;
    ranks_ok(self, trib_plan_allreduce(self->comm, &d, &plan));
    ranks_ok(self, trib_plan_explain(plan, text, sizeof(text)));
    snprintf(expected, sizeof(expected), "; leaders of a host: %d\n", x->leaders);
    if (!strstr(text, expected))
        ranks_die(self, "explained is: %s", text);
    ranks_ok(self, trib_plan_free(plan));
}

static int sum(struct ranks_self *self)
{
    const struct expected *x = self->arg;
    int size = trib_size(self->comm), v[COUNT];

    check_groups(self, x);
    check_said(self, x);
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

/* Two hosts of two packages with four devices each; ranks are bound to blocks of 8 cores, those of
 * the second host the other way round. Leaders are near to as many devices. */
static void test_devices(void **state)
{
    enum { PER_HOST = 8, SIZE = 2 * PER_HOST };
    struct trib_comm *comm = calloc(1, sizeof(*comm));
    struct trib_near_fact facts[SIZE] = {0};
    struct trib_near_groups near;
    struct trib_shape shape = {0};
    struct trib_layout layout;

    (void)state;
    const trib_status_t st = trib_layout_read(data_path("octo.xml").text, NULL, &layout);
    if (st == TRIB_ERR_UNSUPPORTED)
        tribtest_skip("built without hwloc");
    assert_status(st, TRIB_OK);
    for (int r = 0; r < SIZE; r++) {
        const int block = r < PER_HOST ? r : SIZE - 1 - r;
        struct trib_rank_place place;
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        for (int i = 0; i < 8; i++)
            CPU_SET(8 * block + i, &cpus);
        trib_layout_bound(&layout, &cpus, &place);
        facts[r] = (struct trib_near_fact){.first = r / PER_HOST * PER_HOST, .cores = 64,
                                           .package = place.package, .numa = place.numa,
                                           .l3 = place.l3};
        memcpy(facts[r].nic, place.nic, sizeof(place.nic));
    }
    trib_layout_free(&layout);
    comm->engine.ranks = comm->engine.size = SIZE;
    comm->cfg.leaders = 4;
    assert_status(trib_near_make(comm, facts), TRIB_OK);
    assert_status(trib_near_group(comm, 1 << 20, &near, &shape), TRIB_OK);
    assert_int_equal(shape.groups->n, 2);
    for (int l = 0; l < 4; l++) {
        const int a = shape.groups->leader[l], b = shape.groups->leader[4 + l];
        char device[16];
        snprintf(device, sizeof(device), "mlx5_%d", l);
        assert_string_equal(facts[a].nic, device);
        assert_string_equal(facts[b].nic, device);
        assert_int_equal(b, SIZE - 1 - a); /* the same cores of the other host */
    }
    trib_near_ungroup(&near);
    comm->cfg.leaders = 0; /* by itself it takes them all */
    assert_status(trib_near_group(comm, 64 << 20, &near, &shape), TRIB_OK);
    assert_int_equal(shape.groups->leaders, 8);
    trib_near_ungroup(&near);
    trib_near_free(comm->near);
    free(comm);
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
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_uneven),
        cmocka_unit_test(test_one_host),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
