/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start log: starts leave it in order, even if one is removed from the middle.
 */
#include "tests/harness/tribtest.h"

#include "agg/client/offload_plan.h"

enum { N = 5 };

struct rig {
    struct trib_offload offload;
    struct trib_offload_plan plans[N];
};

static void fill(struct rig *r)
{
    memset(r, 0, sizeof(*r));
    for (int i = 0; i < N; i++) {
        r->plans[i].offload = &r->offload;
        trib_start_log_push(&r->plans[i]);
        assert_int_equal(r->plans[i].seq, i + 1);
        assert_true(r->plans[i].pending && r->plans[i].open);
    }
    assert_int_equal(r->offload.started, N);
}

TEST(test_pop)
{
    struct rig r;

    fill(&r);
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(r.offload.oldest, &r.plans[i]);
        trib_start_log_pop(&r.offload, i == 2 ? TRIB_ERR_ABORTED : TRIB_OK);
        assert_false(r.plans[i].pending || r.plans[i].open);
        assert_status(r.plans[i].status, i == 2 ? TRIB_ERR_ABORTED : TRIB_OK);
    }
    assert_null(r.offload.oldest);
    assert_null(r.offload.newest);
    assert_int_equal(r.offload.offloaded, 0); /* no aggregator took part */
}

/* Whichever start is removed, the others stay in order, and the log remains usable. */
TEST(test_remove)
{
    for (int gone = 0; gone < N; gone++) {
        struct rig r;
        fill(&r);
        trib_start_log_remove(&r.plans[gone]);
        trib_start_log_remove(&r.plans[gone]); /* a second call does nothing */
        assert_true(r.plans[gone].open);
        trib_offload_plan_close(&r.plans[gone], TRIB_OK);
        trib_start_log_push(&r.plans[gone]);
        assert_int_equal(r.plans[gone].seq, N + 1);
        uint64_t before = 0;
        int n = 0;
        for (const struct trib_offload_plan *p = r.offload.oldest; p;
             p = p->newer, n++) {
            assert_true(p->seq > before);
            before = p->seq;
        }
        assert_int_equal(n, N);
        assert_ptr_equal(r.offload.newest, &r.plans[gone]);
    }
}

/* A user is notified once of an end. */
TEST(test_close)
{
    struct rig r;

    fill(&r);
    trib_offload_plan_close(&r.plans[0], TRIB_ERR_ABORTED);
    trib_offload_plan_close(&r.plans[0], TRIB_OK);
    assert_status(r.plans[0].status, TRIB_ERR_ABORTED);
    assert_true(r.plans[0].pending); /* it stays in the log */
}

TEST(test_lost)
{
    struct trib_offload o = {0};

    assert_false(trib_offload_lost(&o)); /* there is no agg_comm to lose */
}
