/* SPDX-License-Identifier: BSD-3-Clause */
/* In which order waiting jobs are admitted, and what idle jobs lend. */
#include "tests/agg/jobs/jobs_rig.h"

#include "base/rng.h"

/* The job that is next lets others pass for 10 s, and none after that. */
TEST(test_a_large_job_is_not_passed_for_ever)
{
    struct trib_jobs *jobs = table(&plain);
    struct trib_job_answer change;

    struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 400, 0);
    struct trib_job_answer big = ask_for(jobs, T0 + S, "big", "bob", 512, 1000 * S);
    struct trib_job_answer c = ask_for(jobs, T0 + 5 * S, "c", "cy", 50, 0);
    assert_int_equal(c.verdict, TRIB_JOB_ADMIT);
    struct trib_job_answer d = ask_for(jobs, T0 + 11 * S, "d", "dan", 50, 60 * S);
    assert_int_equal(d.verdict, TRIB_JOB_QUEUE); /* 62 are free */
    assert_says(d.text, "other jobs come first");
    trib_jobs_remove(jobs, T0 + 20 * S, a.id);
    assert_false(trib_jobs_next(jobs, T0 + 20 * S, &change));
    trib_jobs_remove(jobs, T0 + 21 * S, c.id);
    assert_true(trib_jobs_next(jobs, T0 + 21 * S, &change));
    assert_int_equal(change.id, big.id);
    assert_false(trib_jobs_next(jobs, T0 + 21 * S, &change));
    trib_jobs_remove(jobs, T0 + 30 * S, big.id);
    assert_true(trib_jobs_next(jobs, T0 + 30 * S, &change));
    assert_int_equal(change.id, d.id);
    trib_jobs_destroy(jobs);
}

/* A full queue refuses jobs that would wait: jobs that fit are admitted. */
TEST(test_a_full_queue_keeps_nobody_who_fits)
{
    struct trib_jobs_opts opts = plain;

    opts.user.slots = 100;
    struct trib_jobs *jobs = table(&opts);
    assert_int_equal(ask_for(jobs, T0, "a", "ana", 100, 60 * S).verdict,
                     TRIB_JOB_ADMIT);
    for (uint32_t i = 0; i < opts.service.queued; i++)
        assert_int_equal(ask_for(jobs, T0, "w", "ana", 100, 60 * S).verdict,
                         TRIB_JOB_QUEUE);
    struct trib_job_answer b = ask_for(jobs, T0, "b", "bob", 100, 60 * S);
    assert_int_equal(b.verdict, TRIB_JOB_ADMIT); /* 412 are free */
    b = ask_for(jobs, T0, "b", "bob", 1, 60 * S);
    assert_int_equal(b.verdict, TRIB_JOB_REFUSE); /* its user has 100 */
    assert_int_equal(b.id, 0);
    assert_says(
        b.text,
        "the queue is full, with 8 of 8 jobs: retry later, or use another service");
    assert_says(ask_for(jobs, T0, "b", "bob", 1, 0).text,
                "job b of user bob holds 100 of 100");
    assert_int_equal(trib_jobs_view(jobs).held.queued, 8);
    assert_int_equal(trib_jobs_view(jobs).n, 10);
    trib_jobs_destroy(jobs);
}

/* Jobs of one user wait for each other and leave the rest of the queue to others. */
TEST(test_queues_of_users)
{
    struct trib_jobs_opts opts = plain;
    struct trib_job_answer change;

    opts.user = (struct trib_jobs_limits){.jobs = 3, .queued = 2};
    struct trib_jobs *jobs = table(&opts);
    const uint64_t all = ask_for(jobs, T0, "all", "dan", 512, 0).id;
    struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 256, 60 * S);
    assert_int_equal(ask_for(jobs, T0, "b", "ana", 256, 60 * S).verdict,
                     TRIB_JOB_QUEUE);
    assert_says(ask_for(jobs, T0, "c", "ana", 256, 60 * S).text,
                "the queue of user ana is full, with 2 of 2 jobs: retry later");
    struct trib_job_answer d = ask_for(jobs, T0, "d", "bob", 256, 60 * S);
    assert_int_equal(d.position, 2); /* between the two of ana */
    assert_true(trib_jobs_remove(jobs, T0 + S, all));
    assert_true(trib_jobs_next(jobs, T0 + S, &change));
    assert_int_equal(change.id, a.id);
    assert_true(trib_jobs_next(jobs, T0 + S, &change));
    assert_int_equal(change.id, d.id);
    assert_false(trib_jobs_next(jobs, T0 + S, &change));
    trib_jobs_destroy(jobs);
}

/* A job that can run only when all others have ended, while one runs for ever: it keeps
 * slots free for at most half of the time, whether it stays or leaves and returns. */
TEST(test_the_gate_opens)
{
    struct trib_jobs_opts opts = plain;

    opts.gate_ns = 60 * S; /* after 10 s of patience */
    struct trib_jobs *jobs = table(&opts);
    ask_for(jobs, T0, "ever", "dan", 12, 0);
    struct trib_job_answer big = ask_for(jobs, T0, "big", "bob", 512, 100000 * S);
    uint64_t shut_s = 0;
    for (uint64_t s = 1; s <= 1000; s++) {
        struct trib_job_answer change, a;
        assert_false(trib_jobs_next(jobs, T0 + s * S, &change));
        a = ask_for(jobs, T0 + s * S, "small", "cy", 1, 0);
        shut_s += a.verdict != TRIB_JOB_ADMIT;
        if (s == 5 || s == 75 || s == 400) /* 10 + 60 + 60 + 120 + 120 = 370 */
            assert_int_equal(a.verdict, s == 400 ? TRIB_JOB_REFUSE : TRIB_JOB_ADMIT);
        if (a.verdict == TRIB_JOB_ADMIT)
            assert_true(trib_jobs_remove(jobs, T0 + s * S, a.id));
    }
    assert_in_range(shut_s, 400, 620);
    assert_true(trib_jobs_end(jobs, T0 + 1001 * S, big.id, T0));
    shut_s = 0;
    for (uint64_t s = 2000; s <= 4000; s++) {
        struct trib_job_answer change, a;
        if (s % 50 == 0) /* it releases the gate before it must */
            big = ask_for(jobs, T0 + s * S, "big", "bob", 512, 45 * S);
        while (trib_jobs_next(jobs, T0 + s * S, &change))
            continue;
        a = ask_for(jobs, T0 + s * S, "small", "cy", 1, 0);
        shut_s += a.verdict != TRIB_JOB_ADMIT;
        if (a.verdict == TRIB_JOB_ADMIT)
            assert_true(trib_jobs_remove(jobs, T0 + s * S, a.id));
    }
    assert_in_range(shut_s, 1, 1010);
    trib_jobs_destroy(jobs);
}

/* It is admitted in the end, however long the others run. */
TEST(test_a_large_job_comes_in)
{
    enum { LASTS_S = 500, MANY = 8 };
    struct trib_jobs_opts opts = plain;
    uint64_t ids[MANY] = {0}, began[MANY] = {0};

    opts.gate_ns = 60 * S;
    struct trib_jobs *jobs = table(&opts);
    uint64_t big = 0, came_s = 0;
    for (uint64_t s = 1; s <= 10000 && !came_s; s++) {
        struct trib_job_answer change;
        if (s == 100)
            big = ask_for(jobs, T0 + s * S, "big", "bob", 512, 100000 * S).id;
        for (int i = 0; i < MANY; i++) {
            if (ids[i] && s - began[i] >= LASTS_S) {
                assert_true(trib_jobs_remove(jobs, T0 + s * S, ids[i]));
                ids[i] = 0;
            }
        }
        while (trib_jobs_next(jobs, T0 + s * S, &change))
            came_s = change.verdict == TRIB_JOB_ADMIT && change.id == big ? s : came_s;
        for (int i = 0; i < MANY && !came_s; i++) { /* they end one after the other */
            struct trib_job_answer a = {.verdict = TRIB_JOB_REFUSE};
            if (!ids[i] && (s + 61 * (uint64_t)i) % 488 < 61)
                a = ask_for(jobs, T0 + s * S, "small", "cy", 64, 0);
            if (a.verdict == TRIB_JOB_ADMIT) {
                ids[i] = a.id;
                began[i] = s;
            }
        }
    }
    assert_in_range(came_s, 100, 100 + 5 * LASTS_S);
    trib_jobs_destroy(jobs);
}

/* The slots of an idle job are lent to others until it sums again; its memory is not
 * lent. */
TEST(test_idle_jobs_lend)
{
    struct trib_jobs_opts opts = plain;
    struct trib_job_answer change;

    opts.service.bytes = 1000 * 1024;
    struct trib_jobs *jobs = table(&opts);
    struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 512, 0);
    struct trib_job_answer b = ask_for(jobs, T0, "b", "bob", 300, 60 * S);
    assert_int_equal(b.verdict, TRIB_JOB_QUEUE);
    trib_jobs_lend(jobs, a.id, true);
    trib_jobs_lend(jobs, a.id, true); /* no effect */
    assert_int_equal(trib_jobs_view(jobs).lent, 512);
    assert_true(
        trib_jobs_at(&(struct trib_jobs_view){.jobs = trib_jobs_view(jobs).jobs}, 0)
            ->lends);
    assert_true(trib_jobs_next(jobs, T0 + S, &change));
    assert_int_equal(change.id, b.id);
    assert_int_equal(trib_jobs_view(jobs).held.slots, 812);
    assert_int_equal(trib_jobs_view(jobs).held.bytes, 812 * 1024);
    struct trib_job_answer c = ask_for(jobs, T0 + S, "c", "cy", 200, 0);
    assert_says(c.text, "it needs 200K bytes and 188K bytes of 1000K bytes are free");
    c = ask_for(jobs, T0 + S, "c", "cy", 100, 0);
    assert_int_equal(c.verdict, TRIB_JOB_ADMIT);
    trib_jobs_lend(jobs, a.id, false); /* all continue, and no job is admitted until it
                                        * fits again */
    assert_int_equal(trib_jobs_view(jobs).held.slots, 912);
    assert_int_equal(trib_jobs_view(jobs).lent, 0);
    assert_says(ask_for(jobs, T0 + S, "d", "dan", 1, 0).text, "0 of 512 are free");
    trib_jobs_lend(jobs, a.id, true);
    assert_true(trib_jobs_remove(jobs, T0 + 2 * S, a.id)); /* its loans end with it */
    assert_int_equal(trib_jobs_view(jobs).lent, 0);
    assert_int_equal(ask_for(jobs, T0 + 2 * S, "d", "dan", 113, 0).verdict,
                     TRIB_JOB_REFUSE);
    assert_int_equal(ask_for(jobs, T0 + 2 * S, "d", "dan", 112, 0).verdict,
                     TRIB_JOB_ADMIT);
    trib_jobs_lend(jobs, 12345, true); /* no such job */
    trib_jobs_destroy(jobs);
}

/* Lend at most as many slots as there are, once. */
TEST(test_lent_once)
{
    struct trib_jobs *jobs = table(&plain);

    for (int i = 0; i < 2; i++) {
        struct trib_job_answer a = ask_for(jobs, T0, "a", "ana", 512, 0);
        assert_int_equal(a.verdict, TRIB_JOB_ADMIT);
        trib_jobs_lend(jobs, a.id, true);
    }
    assert_int_equal(ask_for(jobs, T0, "a", "ana", 1, 0).verdict, TRIB_JOB_REFUSE);
    trib_jobs_destroy(jobs);
}

static uint64_t draws;

static uint32_t draw(uint64_t seed, uint32_t below)
{
    struct trib_rng rng = {.seed = seed};

    return trib_rng_draw4(rng, draws++).word[0] % below;
}

/* Random tables with jobs that hold slots, wait, end and lend. */
static struct trib_jobs *random_table(uint64_t seed, uint64_t *now_ns)
{
    static const char *const users[] = {"ana", "bob", "cy"};
    draws = 0;
    struct trib_jobs_opts opts = {
        .service = {4 + draw(seed, 4), 2 + draw(seed, 3), 4, 8192 << draw(seed, 3)},
        .user = {draw(seed, 2) * 4, draw(seed, 2) * 2, 0, draw(seed, 2) * 8192},
        .backfill_ns = 2 * S,
        .gate_ns = 8 * S};
    struct trib_jobs *jobs = table(&opts);

    for (int i = 0; i < 12; i++) {
        const struct trib_jobs_view all = trib_jobs_view(jobs);
        const uint64_t id = all.n ? trib_jobs_at(&all, draw(seed, all.n))->id : 0;
        struct trib_job_answer a;
        *now_ns += draw(seed, 2) ? S / 3 : draw(seed, 7) * S;
        if (i < 4 || draw(seed, 3))
            a = ask_for(jobs, *now_ns, "j", users[draw(seed, 3)], 1 + draw(seed, 4),
                        draw(seed, 3) * 1000 * S);
        else if (draw(seed, 2))
            trib_jobs_lend(jobs, id, draw(seed, 2));
        else if (draw(seed, 2))
            trib_jobs_end(jobs, *now_ns, id, *now_ns + 5 * S);
        else
            trib_jobs_remove(jobs, *now_ns, id);
        while (trib_jobs_next(jobs, *now_ns, &a))
            ;
    }
    return jobs;
}

/* Return true if a request is admitted some time after the end of a job. */
static bool ends_well(uint64_t seed, uint64_t id, uint64_t after_ns,
                      const struct trib_job_request *next)
{
    uint64_t now_ns = T0;
    struct trib_jobs *jobs = random_table(seed, &now_ns);
    struct trib_job_answer a;

    trib_jobs_remove(jobs, now_ns, id);
    while (trib_jobs_next(jobs, now_ns, &a))
        ;
    now_ns += after_ns;
    while (trib_jobs_next(jobs, now_ns, &a))
        ;
    trib_jobs_submit(jobs, now_ns, next, &a);
    trib_jobs_destroy(jobs);
    return a.verdict == TRIB_JOB_ADMIT;
}

/* trib_jobs_follows says what happens when the job ends, at once or after the pauses of
 * the request, and changes nothing. */
TEST(test_what_follows)
{
    uint32_t said[2] = {0}, differs = 0;

    for (uint64_t seed = 1; seed < 3000; seed++) {
        uint64_t now_ns = T0;
        struct trib_jobs *jobs = random_table(seed, &now_ns);
        const struct trib_jobs_view all = trib_jobs_view(jobs);
        const struct trib_job *gone = trib_jobs_at(&all, draw(seed, all.n + !all.n));
        const uint64_t id = all.n ? gone->id : 1000;
        const struct trib_job_request next = {.name = "next",
                                              .user = draw(seed, 2) ? "ana" : "dan",
                                              .weight = 1,
                                              .ranks = 1,
                                              .slots = 1,
                                              .rank_bytes = 1024};
        const bool follows = trib_jobs_follows(jobs, now_ns, &next, id);
        const struct trib_jobs_view again = trib_jobs_view(jobs);
        assert_int_equal(again.n, all.n);
        assert_int_equal(again.lent, all.lent);
        assert_int_equal(again.held.jobs, all.held.jobs);
        assert_int_equal(again.held.queued, all.held.queued);
        assert_int_equal(again.held.slots, all.held.slots);
        assert_int_equal(again.held.bytes, all.held.bytes);
        trib_jobs_destroy(jobs);
        const bool at_once = ends_well(seed, id, 0, &next);
        const bool later = ends_well(seed, id, 2 * S, &next);
        assert_int_equal(follows, at_once && later);
        said[follows]++;
        differs += at_once != later;
    }
    assert_true(said[false] > 200 && said[true] > 200 && differs > 20);
}
