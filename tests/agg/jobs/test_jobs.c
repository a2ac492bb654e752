/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/agg/jobs/jobs_rig.h"

#include "base/minmax.h"
#include "base/quota.h"
#include "tests/harness/growth.h"

TEST(test_admits_what_fits)
{
    struct trib_jobs *jobs = table(&plain);

    struct trib_job_answer a = ask_for(jobs, T0, "train-7", "ana", 384, 0);
    assert_int_equal(a.verdict, TRIB_JOB_ADMIT);
    assert_int_equal(a.slots, 384);
    struct trib_job_answer b = ask_for(jobs, T0, "train-8", "bob", 129, 0);
    assert_int_equal(b.verdict, TRIB_JOB_REFUSE); /* none, rather than fewer than it
                                                   * requested */
    b = ask_for(jobs, T0, "train-8", "bob", 128, 0);
    assert_int_equal(b.verdict, TRIB_JOB_ADMIT);
    assert_int_equal(b.slots, 128);
    assert_int_not_equal(a.id, b.id);

    struct trib_jobs_view view = trib_jobs_view(jobs);
    assert_int_equal(view.n, 2);
    assert_int_equal(view.held.slots, 512);
    assert_int_equal(view.held.bytes, 512 * 1024);
    assert_string_equal(trib_jobs_at(&view, 1)->name, "train-8");
    assert_string_equal(trib_job_state_name(trib_jobs_at(&view, 1)->state), "admitted");
    trib_jobs_destroy(jobs);
}

/* Ranks that a job only declares are charged as memory of the job, of its user and of
 * the total. */
TEST(test_ranks_are_charged)
{
    struct trib_jobs_opts limits = plain;
    struct trib_quota quota = {0};
    struct trib_job_answer a;

    limits.service.bytes = 1 << 20;
    limits.user.bytes = 768 << 10;
    limits.job.bytes = 512 << 10;
    struct trib_jobs *jobs = table(&limits);
    struct trib_job_request r = {.name = "liar",
                                 .user = "eve",
                                 .weight = 1,
                                 .ranks = 400,
                                 .slots = 1,
                                 .slot_bytes = 1024,
                                 .rank_bytes = 1024};
    trib_jobs_submit(jobs, T0, &r, &a);
    assert_int_equal(a.verdict, TRIB_JOB_ADMIT);
    struct trib_jobs_view view = trib_jobs_view(jobs);
    assert_int_equal(view.held.bytes, 401 << 10);
    trib_jobs_quota(jobs, a.id, &quota);
    assert_int_equal(trib_quota_held_mt(&quota), 401 << 10);
    assert_non_null(trib_quota_take_mt(&quota, 112 << 10)); /* a plan has 111K left */
    const uint64_t first = a.id;
    r.ranks = 512;
    trib_jobs_submit(jobs, T0, &r, &a);
    assert_int_equal(a.verdict, TRIB_JOB_REFUSE);
    assert_string_equal(
        a.text,
        "job liar needs 513K bytes, but the limit of a job is 512K bytes: its 512 "
        "ranks need 512K bytes of that; use fewer ranks, or raise the limit");
    r.ranks = 400;
    trib_jobs_submit(jobs, T0, &r, &a);
    assert_int_equal(a.verdict, TRIB_JOB_REFUSE);
    assert_says(
        a.text,
        "within the limits of user eve, it needs 401K bytes and 367K bytes of 768K "
        "bytes are free");
    assert_true(trib_jobs_remove(jobs, T0 + S, first));
    view = trib_jobs_view(jobs);
    assert_int_equal(view.held.bytes, 0);
    trib_jobs_destroy(jobs);
}

TEST(test_refusal_says_who_holds_what)
{
    struct trib_jobs *jobs = table(&plain);

    ask_for(jobs, T0, "small", "bob", 28, 0);
    ask_for(jobs, T0, "train-7", "ana", 384, 0);
    struct trib_job_answer c = ask_for(jobs, T0 + 750 * S, "late", "cy", 200, 0);
    assert_int_equal(c.verdict, TRIB_JOB_REFUSE);
    assert_string_equal(
        c.text, "job late of user cy cannot get slots now: it needs 200 slots and 100 "
                "of 512 are free: job train-7 of user ana holds 384 of 512 slots since "
                "12 min, job small of user bob holds 28 of 512 slots since 12 min");
    assert_int_equal(trib_jobs_view(jobs).n, 2);
    assert_int_equal(trib_jobs_view(jobs).held.queued, 0);
    trib_jobs_destroy(jobs);
}

static uint32_t position(struct trib_jobs *jobs, uint64_t now_ns, uint64_t id)
{
    struct trib_jobs_view view = trib_jobs_view(jobs);
    uint32_t i = 0;

    trib_jobs_positions(jobs, now_ns);
    while (trib_jobs_at(&view, i)->id != id)
        assert_true(++i < view.n);
    return trib_jobs_at(&view, i)->position;
}

TEST(test_waits_and_is_admitted)
{
    struct trib_jobs *jobs = table(&plain);
    struct trib_job_answer change;

    struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 512, 0);
    struct trib_job_answer b = ask_for(jobs, T0, "b", "bob", 100, 60 * S);
    struct trib_job_answer c = ask_for(jobs, T0, "c", "cy", 512, 30 * S);
    assert_int_equal(b.verdict, TRIB_JOB_QUEUE);
    assert_int_equal(b.position, 1);
    assert_int_equal(b.deadline_ns, T0 + 60 * S);
    assert_says(b.text, "job b of user bob waits at position 1: ");
    assert_says(b.text, "job a of user ana holds 512 of 512 slots since 0 s");
    assert_int_equal(c.position, 2);
    assert_int_equal(position(jobs, T0, b.id), 1);
    assert_int_equal(position(jobs, T0, c.id), 2);
    assert_false(trib_jobs_next(jobs, T0, &change));
    assert_int_equal(trib_jobs_wake_ns(jobs), T0 + 30 * S);

    assert_false(trib_jobs_next(jobs, T0 + 30 * S - 1, &change));
    assert_true(trib_jobs_next(jobs, T0 + 30 * S, &change));
    assert_int_equal(change.verdict, TRIB_JOB_REFUSE);
    assert_int_equal(change.id, c.id);
    assert_says(change.text, "has reached its wait limit");
    assert_false(trib_jobs_next(jobs, T0 + 30 * S, &change));

    assert_true(trib_jobs_remove(jobs, T0 + 40 * S, a.id));
    assert_false(trib_jobs_remove(jobs, T0 + 40 * S, a.id));
    assert_true(trib_jobs_next(jobs, T0 + 40 * S, &change));
    assert_int_equal(change.verdict, TRIB_JOB_ADMIT);
    assert_int_equal(change.id, b.id);
    assert_int_equal(change.slots, 100);
    assert_int_equal(position(jobs, T0, b.id), 0);
    assert_int_equal(trib_jobs_wake_ns(jobs), 0);
    trib_jobs_destroy(jobs);
}

/* Users take turns: the first job of a user comes before the second job of another. */
TEST(test_positions)
{
    struct trib_jobs *jobs = table(&plain);

    ask_for(jobs, T0, "all", "dan", 512, 0);
    struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 100, 60 * S);
    struct trib_job_answer b = ask_for(jobs, T0, "b", "ana", 100, 60 * S);
    assert_int_equal(b.position, 2);
    struct trib_job_answer c = ask_for(jobs, T0, "c", "cy", 100, 60 * S);
    assert_int_equal(c.position, 2);
    assert_int_equal(position(jobs, T0, a.id), 1);
    assert_int_equal(position(jobs, T0, b.id), 3);
    trib_jobs_destroy(jobs);
}

TEST(test_a_dead_job_holds_until_its_deadline)
{
    struct trib_jobs *jobs = table(&plain);
    struct trib_job_answer change;

    struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 512, 0);
    struct trib_job_answer b = ask_for(jobs, T0, "b", "bob", 512, 60 * S);
    assert_true(trib_jobs_end(jobs, T0 + S, a.id, T0 + 6 * S));
    assert_true(trib_jobs_end(jobs, T0 + S, a.id, T0 + 9 * S)); /* not later than
                                                                 * before */
    assert_int_equal(trib_jobs_wake_ns(jobs), T0 + 6 * S);
    assert_false(trib_jobs_next(jobs, T0 + 6 * S - 1, &change));
    assert_int_equal(trib_jobs_view(jobs).held.slots, 512);
    struct trib_job_answer c = ask_for(jobs, T0 + 4 * S, "c", "cy", 1, 0);
    assert_says(c.text,
                "job a of user ana is ending and holds 512 of 512 slots since 3 s");
    assert_true(trib_jobs_next(jobs, T0 + 6 * S, &change));
    assert_int_equal(change.verdict, TRIB_JOB_FREED);
    assert_int_equal(change.id, a.id);
    assert_true(trib_jobs_next(jobs, T0 + 6 * S, &change));
    assert_int_equal(change.verdict, TRIB_JOB_ADMIT);
    assert_int_equal(change.id, b.id);
    trib_jobs_destroy(jobs);
}

TEST(test_kicked_while_it_waits)
{
    struct trib_jobs *jobs = table(&plain);
    struct trib_job_answer change;

    ask_for(jobs, T0, "a", "ana", 512, 0);
    struct trib_job_answer b = ask_for(jobs, T0, "b", "bob", 512, 60 * S);
    assert_true(trib_jobs_end(jobs, T0, b.id, T0 + 5 * S));
    assert_int_equal(trib_jobs_view(jobs).n, 1);
    assert_int_equal(trib_jobs_view(jobs).held.queued, 0);
    assert_false(trib_jobs_end(jobs, T0, b.id, T0 + 5 * S));
    assert_false(trib_jobs_next(jobs, T0 + 100 * S, &change));
    trib_jobs_destroy(jobs);
}

TEST(test_draining_takes_no_new_jobs)
{
    struct trib_jobs *jobs = table(&plain);
    struct trib_job_answer change;

    struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 512, 0);
    struct trib_job_answer b = ask_for(jobs, T0, "b", "bob", 512, 60 * S);
    trib_jobs_drain(jobs, true);
    assert_true(trib_jobs_view(jobs).draining);
    assert_true(trib_jobs_next(jobs, T0, &change));
    assert_int_equal(change.id, b.id);
    assert_int_equal(change.verdict, TRIB_JOB_REFUSE);
    assert_says(change.text, "the service is draining");
    struct trib_job_answer c = ask_for(jobs, T0, "c", "cy", 1, 60 * S);
    assert_int_equal(c.verdict, TRIB_JOB_REFUSE);
    assert_int_equal(c.id, 0);
    assert_says(c.text, "draining");
    assert_int_equal(trib_jobs_view(jobs).n, 1); /* running jobs continue */
    assert_true(trib_jobs_remove(jobs, T0, a.id));
    trib_jobs_drain(jobs, false);
    assert_int_equal(ask_for(jobs, T0, "c", "cy", 1, 0).verdict, TRIB_JOB_ADMIT);
    trib_jobs_destroy(jobs);
}

/* A job keeps its holdings; names and their own limits are forgotten. */
TEST(test_limits_change)
{
    struct trib_jobs_opts opts = plain;
    const struct trib_jobs_limits user = {.slots = 100}, job = {.slots = 60},
                                  none = {0};
    struct trib_error err = {0};

    struct trib_jobs *jobs = table(&opts);
    assert_ok(
        trib_jobs_user(jobs, "eve", 3, &(struct trib_jobs_limits){.jobs = 1}, &err));
    struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 90, 0);
    assert_int_equal(a.slots, 90);
    trib_jobs_limit(jobs, &user, &job);
    struct trib_job_answer b = ask_for(jobs, T0, "b", "ana", 61, 0);
    assert_says(b.text, "job b needs 61 slots, but the limit of a job is 60");
    b = ask_for(jobs, T0, "b", "ana", 20, 0);
    assert_says(b.text, "it needs 20 slots and 10 of 100 are free");
    assert_int_equal(ask_for(jobs, T0, "c", "ana", 10, 0).verdict, TRIB_JOB_ADMIT);
    struct trib_job_answer e = ask_for(jobs, T0, "e", "eve", 50, 0);
    assert_int_equal(ask_for(jobs, T0, "f", "eve", 50, 0).verdict, TRIB_JOB_ADMIT);
    assert_int_equal(trib_jobs_weight(jobs, e.id), trib_jobs_weight(jobs, e.id + 1));
    trib_jobs_limit(jobs, &none, &none);
    assert_int_equal(ask_for(jobs, T0, "g", "ana", 100, 0).slots, 100);
    trib_jobs_destroy(jobs);
}

TEST(test_limits_of_users_and_jobs)
{
    struct trib_jobs_opts opts = plain;
    struct trib_job_answer change;
    struct trib_error err = {0};

    opts.user = (struct trib_jobs_limits){.slots = 256, .jobs = 2, .queued = 1};
    opts.job = (struct trib_jobs_limits){.slots = 200, .bytes = 150 * 1024};
    struct trib_jobs *jobs = table(&opts);
    assert_ok(
        trib_jobs_user(jobs, "eve", 1, &(struct trib_jobs_limits){.jobs = 1}, &err));

    struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 150, 0);
    assert_int_equal(a.slots, 150);
    struct trib_job_answer never = ask_for(jobs, T0, "big", "ana", 400, 60 * S);
    assert_int_equal(never.verdict, TRIB_JOB_REFUSE);
    assert_string_equal(
        never.text,
        "job big needs 400 slots, but the limit of a job is 200: request fewer");
    never = ask_for(jobs, T0, "big", "ana", 160, 60 * S);
    assert_string_equal(never.text,
                        "job big needs 160K bytes, but the limit of a job is 150K "
                        "bytes: request fewer or smaller slots");

    struct trib_job_answer b = ask_for(jobs, T0, "b", "ana", 120, 60 * S);
    assert_int_equal(b.verdict, TRIB_JOB_QUEUE); /* the limit of the user, while 362 are
                                                  * free */
    assert_says(b.text,
                "within the limits of user ana, it needs 120 slots and 106 of 256 are "
                "free: job a of user ana holds 150 of 256 slots");
    struct trib_job_answer many = ask_for(jobs, T0, "c", "ana", 1, 60 * S);
    assert_says(many.text,
                "the queue of user ana is full, with 1 of 1 jobs: retry later");
    /* Other users pass a job that is blocked by the limits of its own user. */
    assert_int_equal(ask_for(jobs, T0 + 50 * S, "d", "bob", 100, 0).verdict,
                     TRIB_JOB_ADMIT);

    assert_int_equal(ask_for(jobs, T0, "e", "eve", 10, 0).verdict, TRIB_JOB_ADMIT);
    assert_says(
        ask_for(jobs, T0, "f", "eve", 10, 0).text,
        "within the limits of user eve, 1 of 1 jobs run: job e of user eve holds 10 "
        "slots");
    assert_true(trib_jobs_remove(jobs, T0 + 50 * S, a.id));
    assert_true(trib_jobs_next(jobs, T0 + 50 * S, &change));
    assert_int_equal(change.id, b.id);
    trib_jobs_destroy(jobs);
}

/* Memory of plans counts against the limits of the job, of its user and of the total,
 * and reduces the memory for slots. */
TEST(test_memory_of_plans)
{
    const struct trib_jobs_opts opts = {
        .service = {.slots = 512, .jobs = 8, .queued = 8, .bytes = 400 * 1024},
        .user = {.bytes = 300 * 1024}, .job = {.bytes = 250 * 1024}};
    struct trib_jobs *jobs = table(&opts);
    struct trib_quota a = {0};

    const uint64_t id = ask_for(jobs, T0, "a", "ana", 100, 0).id;
    trib_jobs_quota(jobs, id, &a);
    assert_ptr_equal(trib_quota_take_mt(&a, 151 * 1024), &a);
    assert_null(trib_quota_take_mt(&a, 150 * 1024));
    struct trib_job_answer b = ask_for(jobs, T0, "b", "ana", 100, 0);
    assert_int_equal(b.verdict, TRIB_JOB_REFUSE);
    assert_says(
        b.text,
        "it needs 100K bytes and 50K bytes of 300K bytes are free: job a of user "
        "ana holds 250K bytes of 300K bytes");
    assert_int_equal(ask_for(jobs, T0, "c", "bob", 151, 0).verdict, TRIB_JOB_REFUSE);
    assert_int_equal(trib_jobs_view(jobs).held.bytes, 250 * 1024);
    assert_int_equal(trib_job_bytes(trib_jobs_at(&(struct trib_jobs_view){
                         .jobs = trib_jobs_view(jobs).jobs}, 0)), 250 * 1024);

    const struct trib_jobs_limits less = {.bytes = 200 * 1024};
    trib_jobs_limit(jobs, &less, &less); /* holdings are kept */
    assert_says(ask_for(jobs, T0, "d", "ana", 100, 0).text,
                "and 0 bytes of 200K bytes are free");
    assert_true(trib_jobs_remove(jobs, T0, id));
    assert_int_equal(trib_jobs_view(jobs).held.bytes, 150 * 1024); /* its node has not
                                                                    * ended yet */
    trib_quota_give_mt(&a, 150 * 1024);
    assert_int_equal(trib_jobs_view(jobs).held.bytes, 0);
    assert_int_equal(ask_for(jobs, T0, "e", "ana", 100, 0).verdict, TRIB_JOB_ADMIT);
    trib_jobs_destroy(jobs);
}

TEST(test_limits_of_the_service)
{
    struct trib_jobs_opts opts = {
        .service = {.slots = 512, .jobs = 2, .queued = 1, .bytes = 100 * 1024}};
    struct trib_jobs *jobs = table(&opts);

    ask_for(jobs, T0, "a", "ana", 60, 0);
    struct trib_job_answer b = ask_for(jobs, T0, "b", "bob", 60, 0);
    assert_says(
        b.text,
        "it needs 60K bytes and 40K bytes of 100K bytes are free: job a of user "
        "ana holds 60K bytes of 100K bytes since 0 s");
    assert_says(ask_for(jobs, T0, "b", "bob", 101, 0).text,
                "the limit of all jobs together is 100K");
    ask_for(jobs, T0, "c", "cy", 10, 0);
    struct trib_job_answer d = ask_for(jobs, T0, "d", "dan", 10, 60 * S);
    assert_says(d.text, "2 of 2 jobs run: job a of user ana");
    struct trib_job_answer e = ask_for(jobs, T0, "e", "eve", 10, 60 * S);
    assert_string_equal(
        e.text,
        "the queue is full, with 1 of 1 jobs: retry later, or use another service");
    trib_jobs_destroy(jobs);
}

TEST(test_bad_requests)
{
    static const struct {
        struct trib_job_request request;
        const char *words;
    } cases[] = {
        {{"", "ana", 1, 4, 1, 1, 0, 0}, "the name of a job must be 1 to 64 printable"},
        {{"a\nb", "ana", 1, 4, 1, 1, 0, 0}, "the name of a job must be"},
        {{"caf\xc3\xa9", "ana", 1, 4, 1, 1, 0, 0}, "the name of a job must be"},
        {{"a", "", 1, 4, 1, 1, 0, 0}, "the name of a user must be"},
        {{"a", "12345678901234567890123456789012345678901234567890123456789012345", 1,
          4, 1, 1, 0, 0},
         "the name of a user must be"},
        {{"a", "ana", 1, 0, 1, 1, 0, 0}, "job a has 0 ranks"},
        {{"a", "ana", 1, 4, 0, 1, 0, 0}, "requests 0 slots"},
        {{"a", "ana", 0, 4, 1, 1, 0, 0}, "weight 0: it must be 1 to 100"},
        {{"a", "ana", 101, 4, 1, 1, 0, 0}, "weight 101"},
        {{"a", "ana", 1, 4, UINT32_MAX, UINT64_MAX, 0, 0}, "more than any host has"},
        {{"a", "ana", 1, 4, UINT32_MAX, 1, 0, 0}, "together is 512"},
    };
    struct trib_jobs *jobs = table(&plain);
    struct trib_job_answer a;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        trib_jobs_submit(jobs, T0, &cases[i].request, &a);
        assert_int_equal(a.verdict, TRIB_JOB_REFUSE);
        assert_int_equal(a.id, 0);
        assert_says(a.text, cases[i].words);
    }
    assert_int_equal(trib_jobs_view(jobs).n, 0);
    trib_jobs_destroy(jobs);
}

TEST(test_bad_limits)
{
    static const struct trib_jobs_limits bad[] = {
        {.jobs = 1, .queued = 1},
        {.slots = 1, .queued = 1},
        {.slots = 1, .jobs = 1},
        {.slots = 1, .jobs = TRIB_JOBS_MAX, .queued = 1},
        {.slots = 1, .jobs = 1, .queued = UINT32_MAX},
    };
    struct trib_jobs *jobs;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct trib_error err = {0};
        struct trib_jobs_opts opts = {.service = bad[i]};
        assert_status(trib_jobs_create(&opts, &err, &jobs), TRIB_ERR_CONFIG);
        assert_null(jobs);
        assert_true(err.text[0]);
    }
    jobs = table(&plain);
    struct trib_error err = {0};
    assert_status(trib_jobs_user(jobs, "ana", 0, NULL, &err), TRIB_ERR_CONFIG);
    assert_says(err.text, "user \"ana\" has weight 0");
    trib_jobs_destroy(jobs);
    trib_jobs_destroy(NULL);
}

/* A user gets no larger share of a thread by splitting work. */
TEST(test_weights_on_a_thread)
{
    struct trib_jobs *jobs = table(&plain);
    struct trib_job_answer a;

    assert_ok(trib_jobs_user(jobs, "bob", 3, NULL, NULL));
    for (uint32_t i = 0; i < 4; i++)
        trib_jobs_submit(jobs, T0,
                      &(struct trib_job_request){.name = "x",
                                                 .user = i < 3 ? "ana" : "bob",
                                                 .weight = i == 2 ? 2 : 1,
                                                 .ranks = 2,
                                                 .slots = 10},
                      &a);
    assert_int_equal(trib_jobs_weight(jobs, 1), 256);
    assert_int_equal(trib_jobs_weight(jobs, 2), 256);
    assert_int_equal(trib_jobs_weight(jobs, 3), 512);
    assert_int_equal(trib_jobs_weight(jobs, 4), 3 * 1024);
    trib_jobs_end(jobs, T0, 3, T0 + S);
    assert_int_equal(trib_jobs_weight(jobs, 1), 512);
    assert_int_equal(trib_jobs_weight(jobs, 3), 0);
    assert_int_equal(trib_jobs_weight(jobs, 9), 0);
    trib_jobs_destroy(jobs);
}

/* Return the processor time for reading the weights of n jobs of one user. */
static uint64_t weigh(uint32_t n)
{
    const struct trib_jobs_opts opts = {
        .service = {.slots = n, .jobs = n, .queued = 1}};
    struct trib_jobs *jobs = table(&opts);
    uint64_t best_ns = UINT64_MAX;

    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(ask_for(jobs, T0, "x", "ana", 1, 0).verdict, TRIB_JOB_ADMIT);
    for (int tries = 0; tries < 5; tries++) {
        const uint64_t from = growth_now();
        for (uint64_t id = 1; id <= n; id++)
            assert_true(trib_jobs_weight(jobs, id) == (n > 1024 ? 1 : 1024 / n));
        best_ns = trib_min(best_ns, growth_now() - from);
    }
    trib_jobs_destroy(jobs);
    return best_ns;
}

/* The control thread reads all weights whenever a job starts or ends. With 4000 stores
 * that took 60 ms, during which it served no one. */
TEST(test_weights_of_many_jobs)
{
    growth_is_linear(weigh);
}
