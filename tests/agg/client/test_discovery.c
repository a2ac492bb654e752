/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A search for aggregators where none exist: it finds none, and closing it does not
 * block.
 */
#include "tests/harness/tribtest.h"

#include "agg/client/control_link.h"
#include "base/time.h"

static void make_job(struct trib_control_link_job *job)
{
    struct trib_error err = {0};

    memset(job, 0, sizeof(*job));
    assert_status(trib_config_load(&job->cfg, "service_auth=none", NULL, &err),
                  TRIB_OK);
    job->ranks = 2;
    job->n = 1;
    snprintf(job->addresses[0], sizeof(job->addresses[0]), "127.0.0.1:1");
}

TEST(test_none)
{
    static struct trib_control_link_job job;

    make_job(&job);
    for (int check_only = 0; check_only < 2; check_only++) {
        const struct trib_discovery_opts opts = {
            .job = &job, .check_only = check_only, .pause_ms = 1};
        struct trib_discovery *d;
        assert_status(trib_discovery_open(&opts, &d), TRIB_OK);
        usleep(100000);
        assert_false(trib_discovery_found(d));
        assert_null(trib_discovery_take(d, NULL));
        trib_discovery_close(d);
    }
    trib_discovery_close(NULL);
}

/* A search in a long pause ends at once. */
TEST(test_close)
{
    static struct trib_control_link_job job;
    struct trib_discovery *d;

    make_job(&job);
    const struct trib_discovery_opts opts = {.job = &job, .pause_ms = 60000};
    const uint64_t begin = trib_now_ns();
    for (int i = 0; i < 20; i++) {
        assert_status(trib_discovery_open(&opts, &d), TRIB_OK);
        assert_false(trib_discovery_found(d));
        trib_discovery_close(d);
    }
    assert_true(trib_now_ns() - begin <
                10 * tribtest_slowness() * UINT64_C(1000000000));
}
