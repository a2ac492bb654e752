/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hundreds of random jobs of users whose queues are never empty; their holdings are
 * counted independently of the table.
 */
#include "tests/harness/tribtest.h"

#include "agg/jobs/jobs.h"
#include "base/rng.h"

#define S 1000000000ull
#define USERS_MAX 16
#define JOBS_MAX 512 /* at one time */
#define SLOTS 512
#define BACKFILL_S 20
#define HOLD_MAX_S 300

/* The kind of jobs of a user. */
struct kind {
    uint32_t weight;
    uint32_t slots_most; /* requested: 1 to this */
    uint32_t hold_most_s;
    uint32_t waiting; /* number of its jobs always in the queue */
    uint64_t slot_bytes;
};

struct sim_job {
    uint64_t id;
    uint32_t user;
    uint32_t slots;
    uint64_t asked_ns;
    uint64_t began_ns; /* 0: it waits */
    uint64_t ends_ns;
    uint32_t position; /* place in the queue at its request */
};

struct sim {
    struct trib_jobs *jobs;
    struct trib_jobs_limits service;
    struct trib_jobs_limits per_user;
    const struct kind *kinds;
    uint32_t users;
    struct sim_job running[JOBS_MAX];
    uint32_t n;
    double held[USERS_MAX]; /* dominant share × seconds */
    uint32_t admitted[USERS_MAX];
    double longest_s[USERS_MAX]; /* longest wait */
    uint64_t draws;
    uint64_t now_ns;
    uint64_t seed;
};

static uint32_t draw(struct sim *sim, uint32_t most) /* 1 … most */
{
    struct trib_rng rng = {.seed = sim->seed};

    return 1 + trib_rng_draw4(rng, sim->draws++).word[0] % most;
}

static double dominant(const struct sim *sim, uint32_t user, uint32_t slots)
{
    double of_slots = (double)slots / sim->service.slots;
    double of_bytes = sim->service.bytes
                          ? (double)slots * (double)sim->kinds[user].slot_bytes /
                                (double)sim->service.bytes
                          : 0;

    return of_slots > of_bytes ? of_slots : of_bytes;
}

/* The oracle: holdings computed from the books of the test. */
static void check_limits(const struct sim *sim)
{
    struct trib_jobs_view view = trib_jobs_view(sim->jobs);
    uint64_t slots = 0, bytes = 0, jobs = 0, of_user[USERS_MAX] = {0};

    for (uint32_t i = 0; i < sim->n; i++) {
        const struct sim_job *job = &sim->running[i];
        slots += job->slots;
        bytes += job->slots * sim->kinds[job->user].slot_bytes;
        jobs += job->slots > 0;
        of_user[job->user] += job->slots;
    }
    assert_true(slots <= sim->service.slots);
    assert_true(!sim->service.bytes || bytes <= sim->service.bytes);
    assert_true(jobs <= sim->service.jobs);
    for (uint32_t u = 0; u < sim->users; u++)
        assert_true(!sim->per_user.slots || of_user[u] <= sim->per_user.slots);
    assert_int_equal(view.held.slots, slots);
    assert_int_equal(view.held.bytes, bytes);
    assert_int_equal(view.held.jobs, jobs);
    assert_int_equal(view.n, sim->n);
}

static void begin(struct sim *sim, struct sim_job *job, uint32_t slots)
{
    double wait_s = (double)(sim->now_ns - job->asked_ns) * 1e-9;

    assert_true(slots > 0);
    job->slots = slots;
    job->began_ns = sim->now_ns;
    job->ends_ns = sim->now_ns + draw(sim, sim->kinds[job->user].hold_most_s) * S -
                   draw(sim, 900000000);
    sim->admitted[job->user]++;
    if (wait_s > sim->longest_s[job->user])
        sim->longest_s[job->user] = wait_s;
}

static void take_changes(struct sim *sim)
{
    struct trib_job_answer change;

    while (trib_jobs_next(sim->jobs, sim->now_ns, &change)) {
        assert_int_equal(change.verdict, TRIB_JOB_ADMIT);
        uint32_t i = 0;
        while (sim->running[i].id != change.id)
            assert_true(++i < sim->n);
        begin(sim, &sim->running[i], change.slots);
    }
}

static void ask(struct sim *sim, uint32_t user)
{
    const struct kind *kind = &sim->kinds[user];
    char name[16];
    struct trib_job_request r = {.name = "x",
                                 .user = name,
                                 .weight = 1,
                                 .ranks = 2,
                                 .slots = draw(sim, kind->slots_most),
                                 .slot_bytes = kind->slot_bytes,
                                 .wait_ns = UINT64_MAX};
    struct trib_job_answer answer;

    snprintf(name, sizeof(name), "user-%u", user);
    assert_true(sim->n < JOBS_MAX);
    take_changes(sim);
    trib_jobs_submit(sim->jobs, sim->now_ns, &r, &answer);
    if (answer.verdict == TRIB_JOB_REFUSE)
        fail_msg("%s", answer.text);
    struct sim_job *job = &sim->running[sim->n++];
    *job = (struct sim_job){.id = answer.id,
                            .user = user,
                            .asked_ns = sim->now_ns,
                            .position = answer.position};
    if (answer.verdict == TRIB_JOB_ADMIT)
        begin(sim, job, answer.slots);
}

static void refill(struct sim *sim)
{
    for (uint32_t u = 0; u < sim->users; u++) {
        uint32_t waiting = 0;
        for (uint32_t i = 0; i < sim->n; i++)
            waiting += sim->running[i].user == u && !sim->running[i].began_ns;
        for (; waiting < sim->kinds[u].waiting; waiting++)
            ask(sim, u);
    }
}

/* End the next job that is due; some of them die. */
static void end_one(struct sim *sim)
{
    uint32_t first = UINT32_MAX;

    for (uint32_t i = 0; i < sim->n; i++)
        if (sim->running[i].began_ns &&
            (first == UINT32_MAX ||
             sim->running[i].ends_ns < sim->running[first].ends_ns))
            first = i;
    assert_true(first < sim->n); /* some job runs while jobs wait */
    struct sim_job job = sim->running[first];
    if (job.ends_ns > sim->now_ns)
        sim->now_ns = job.ends_ns;
    sim->held[job.user] += dominant(sim, job.user, job.slots) *
                           (double)(sim->now_ns - job.began_ns) * 1e-9;
    if (draw(sim, 4) == 1) {
        struct trib_job_answer freed;
        assert_true(trib_jobs_end(sim->jobs, sim->now_ns, job.id, sim->now_ns));
        assert_true(trib_jobs_next(sim->jobs, sim->now_ns, &freed));
        assert_int_equal(freed.verdict, TRIB_JOB_FREED);
        assert_int_equal(freed.id, job.id);
    } else {
        assert_true(trib_jobs_remove(sim->jobs, sim->now_ns, job.id));
    }
    sim->running[first] = sim->running[--sim->n];
}

static void simulate(struct sim *sim, uint32_t ends)
{
    struct trib_jobs_opts opts = {
        .service = sim->service, .user = sim->per_user, .backfill_ns = BACKFILL_S * S};
    char name[16];

    assert_ok(trib_jobs_create(&opts, NULL, &sim->jobs));
    for (uint32_t u = 0; u < sim->users; u++) {
        snprintf(name, sizeof(name), "user-%u", u);
        assert_ok(trib_jobs_user(sim->jobs, name, sim->kinds[u].weight, &sim->per_user,
                                 NULL));
    }
    sim->now_ns = S;
    for (uint32_t i = 0; i < ends; i++) {
        refill(sim);
        take_changes(sim);
        check_limits(sim);
        end_one(sim);
        take_changes(sim);
    }
    trib_jobs_destroy(sim->jobs);
}

/* (Σ x)² / (n Σ x²): 1 if all have the same. */
static double jain(const struct sim *sim)
{
    double sum = 0, squares = 0;

    for (uint32_t u = 0; u < sim->users; u++) {
        double x = sim->held[u] / sim->kinds[u].weight;
        sum += x;
        squares += x * x;
    }
    return sum * sum / (sim->users * squares);
}

static void report(const struct sim *sim, const char *what)
{
    double time_s = (double)sim->now_ns * 1e-9, sum = 0;

    for (uint32_t u = 0; u < sim->users; u++)
        sum += sim->held[u];
    printf("# %s: %.0f s, %.0f %% in use, Jain's index %.4f\n", what, time_s,
           100 * sum / time_s, jain(sim));
    for (uint32_t u = 0; u < sim->users; u++)
        printf("#   user %u: weight %u, %u jobs, share × s %.1f, longest wait %.0f s\n",
               u, sim->kinds[u].weight, sim->admitted[u], sim->held[u],
               sim->longest_s[u]);
}

/* Large and small jobs, long and short. */
static const struct kind equal[] = {
    {1, 512, 300, 3, 1024}, {1, 512, 100, 3, 1024}, {1, 16, 20, 8, 1024},
    {1, 64, 200, 3, 1024},  {1, 64, 60, 3, 1024},   {1, 256, 300, 3, 1024},
    {1, 128, 30, 3, 1024},  {1, 1, 300, 120, 1024}, {1, 400, 50, 3, 1024},
    {1, 200, 150, 3, 1024},
};

TEST(test_equal_users)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct sim sim = {.service = {.slots = SLOTS, .jobs = 256, .queued = 512},
                          .kinds = equal,
                          .users = 10,
                          .seed = seed};
        simulate(&sim, 6000);
        report(&sim, "equal users");
        assert_true(jain(&sim) >= 0.95);
    }
}

TEST(test_weights)
{
    static const struct kind kinds[] = {
        {1, 40, 100, 6, 1024},
        {2, 60, 60, 6, 1024},
        {4, 40, 100, 12, 1024},
        {8, 50, 80, 16, 1024},
    };

    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct sim sim = {.service = {.slots = SLOTS, .jobs = 256, .queued = 512},
                          .kinds = kinds,
                          .users = 4,
                          .seed = seed};
        double sum = 0;
        simulate(&sim, 8000);
        report(&sim, "weights 1 2 4 8");
        for (uint32_t u = 0; u < sim.users; u++)
            sum += sim.held[u];
        for (uint32_t u = 0; u < sim.users; u++) {
            double share = sim.held[u] / sum, due = kinds[u].weight / 15.0;
            assert_true(share > 0.95 * due && share < 1.05 * due);
        }
    }
}

/* Memory counts if a job uses a larger share of it than of the slots. */
TEST(test_dominant_share)
{
    static const struct kind kinds[] = {
        {1, 20, 100, 8, 1024},
        {1, 20, 100, 8, 8192},
        {1, 20, 100, 8, 256},
    };
    struct sim sim = {
        .service = {.slots = SLOTS, .jobs = 256, .queued = 512, .bytes = 1024 * 1024},
        .kinds = kinds,
        .users = 3,
        .seed = 7};

    simulate(&sim, 8000);
    report(&sim, "slots and memory");
    assert_true(jain(&sim) >= 0.95);
}

TEST(test_limits_hold)
{
    struct sim sim = {
        .service = {.slots = SLOTS, .jobs = 20, .queued = 512, .bytes = 300 * 1024},
        .per_user = {.slots = 100, .jobs = 4},
        .users = 3,
        .seed = 11};
    static const struct kind kinds[] = {
        {1, 100, 100, 4, 1024}, {1, 50, 100, 6, 2048}, {1, 5, 100, 12, 512}};

    sim.kinds = kinds;
    simulate(&sim, 4000);
    report(&sim, "limits of users");
    for (uint32_t u = 0; u < 3; u++)
        assert_true(sim.admitted[u] > 100);
}

/*
 * A user of the whole service at a time, among many who always have small jobs that
 * fit. The next user waits until all running jobs have ended, at most HOLD_MAX_S after
 * the patience of others has ended. A user is next once the others have had as much:
 * with n users, it gets an n-th of the time.
 */
TEST(test_nobody_starves)
{
    static const struct kind kinds[] = {
        {1, 16, HOLD_MAX_S, 20, 1024}, {1, 512, HOLD_MAX_S, 1, 1024},
        {1, 8, HOLD_MAX_S, 40, 1024},  {1, 4, HOLD_MAX_S, 60, 1024},
        {1, 512, HOLD_MAX_S, 1, 1024},
    };
    struct sim sim = {.service = {.slots = SLOTS, .jobs = 500, .queued = 512},
                      .kinds = kinds,
                      .users = 5,
                      .seed = 13};
    double bound_s = 5 * 2 * (HOLD_MAX_S + BACKFILL_S);

    simulate(&sim, 10000);
    report(&sim, "whole and small");
    for (uint32_t u = 0; u < sim.users; u += 1) {
        assert_true(sim.admitted[u] >= 10);
        if (kinds[u].waiting == 1)
            assert_true(sim.longest_s[u] <= bound_s);
    }
}

/* --- one slot after the other --- */

/* Jobs of ana and of bob that each use everything for 10 s. */
struct relay {
    struct trib_jobs *jobs;
    uint64_t now_ns;
    uint64_t runs; /* id of the running job */
};

static void queue_up(struct relay *relay, const char *user, int n)
{
    struct trib_job_request r = {.name = "x",
                                 .user = user,
                                 .weight = 1,
                                 .ranks = 2,
                                 .slots = 10,
                                 .wait_ns = UINT64_MAX};
    struct trib_job_answer a;

    for (int i = 0; i < n; i++) {
        trib_jobs_submit(relay->jobs, relay->now_ns, &r, &a);
        if (a.verdict == TRIB_JOB_ADMIT)
            relay->runs = a.id;
    }
}

/* Return how many of the next n jobs are ana's. */
static uint32_t of_ana(struct relay *relay, int n)
{
    uint32_t count = 0;

    for (int i = 0; i < n; i++) {
        struct trib_job_answer a;
        relay->now_ns += 10 * S;
        assert_true(trib_jobs_remove(relay->jobs, relay->now_ns, relay->runs));
        assert_true(trib_jobs_next(relay->jobs, relay->now_ns, &a));
        relay->runs = a.id;
        count += strstr(a.text, "user ana") != NULL;
    }
    return count;
}

static struct relay start_relay(void)
{
    struct trib_jobs_opts opts = {.service = {.slots = 10, .jobs = 10, .queued = 500}};
    struct relay relay = {.now_ns = S};

    assert_ok(trib_jobs_create(&opts, NULL, &relay.jobs));
    return relay;
}

/* A user who returns after a long time has no credit, and no debt. */
TEST(test_idleness_saves_nothing)
{
    struct relay relay = start_relay();

    queue_up(&relay, "ana", 120); /* alone for 1000 s */
    assert_int_equal(of_ana(&relay, 100), 100);
    queue_up(&relay, "bob", 20);
    assert_in_range(of_ana(&relay, 20), 9, 11);
    trib_jobs_destroy(relay.jobs);
}

/* A weight applies to the future: earlier use under another weight is not paid for. */
TEST(test_new_weights)
{
    struct relay relay = start_relay();

    assert_ok(trib_jobs_user(relay.jobs, "ana", 4, NULL, NULL));
    assert_ok(trib_jobs_user(relay.jobs, "bob", 4, NULL, NULL));
    queue_up(&relay, "ana", 200);
    queue_up(&relay, "bob", 200);
    assert_in_range(of_ana(&relay, 100), 49, 51);
    assert_ok(trib_jobs_user(relay.jobs, "ana", 1, NULL, NULL));
    assert_in_range(of_ana(&relay, 100), 18, 22);
    assert_ok(trib_jobs_user(relay.jobs, "ana", 12, NULL, NULL));
    assert_in_range(of_ana(&relay, 100), 73, 77);
    trib_jobs_destroy(relay.jobs);
}
