/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission of stores: only one store uses a snapshot key, though stores that have
 * ended may still wait for the disk, before or after it in the list of clients. A rank
 * that returns to such a store learns that it has ended. The next run of a job gets the
 * place of the earlier one, whose ranks are lost.
 */
#include "tests/harness/tribtest.h"

#include "agg/daemon/server_parts.h"
#include "base/log.h"

/* Stands for a store. */
struct store_job {
    uint32_t present;
    bool ended;
    bool empty;
};

enum { THREADS = 5 }; /* of a new store */

static struct trib_control answer; /* to the client */

static trib_status_t send_control(struct trib_session *session,
                                  const struct trib_control *m)
{
    (void)session;
    answer = *m;
    return TRIB_OK;
}

#define trib_session_send(session, m) send_control(session, m)
#define trib_session_job(session) ((void)(session), "job")
#include "agg/daemon/store_admit.c"

trib_status_t store_job_open(const struct store_job_opts *opts, struct trib_error *err,
                             struct store_job **out)
{
    static struct store_job made;

    assert_int_equal(opts->threads, THREADS);
    (void)err;
    made = (struct store_job){.present = 0};
    *out = &made;
    return TRIB_OK;
}

trib_status_t store_job_add(struct store_job *job, struct trib_session *session,
                            uint32_t rank, struct credentials *credentials)
{
    (void)session;
    (void)rank;
    (void)credentials;
    job->present += !job->ended;
    return job->ended ? TRIB_ERR_PEER_LOST : TRIB_OK;
}

void store_job_replace(struct store_job *job)
{
    job->ended = true;
}

bool store_job_is_deserted(const struct store_job *job)
{
    return job->present == 0;
}

bool store_job_reap(struct store_job *job)
{
    (void)job;
    return false;
}

bool store_job_is_empty(const struct store_job *job)
{
    return job->empty;
}

uint32_t store_job_files(const struct store_job *job)
{
    return job->empty ? 1 : 2;
}

const char *store_job_why(const struct store_job *job)
{
    (void)job;
    return "";
}

void store_job_free(struct store_job *job)
{
    (void)job;
}

void admit_name_user(const struct client *c, char out[TRIB_JOB_NAME_BYTES])
{
    (void)c;
    snprintf(out, TRIB_JOB_NAME_BYTES, "ana");
}

uint64_t *admit_join_bucket(struct server *s, const struct client *c)
{
    (void)c;
    return &s->join_buckets[0];
}

bool admit_waiting(struct server *s)
{
    (void)s;
    return false;
}

static uint32_t files_taken; /* that a new store lacks */

bool store_share_allows(const struct server *s, const struct store_share *asked,
                        char *why, size_t bytes)
{
    (void)s;
    snprintf(why, bytes, "no files");
    return asked->freed >= files_taken;
}

uint32_t store_share_threads(const struct server *s, const struct store_share *asked)
{
    assert_string_equal(asked->user, "ana");
    (void)s;
    return THREADS;
}

void archive_describe(struct archive *archive, const struct archive_key *key,
                      char *text, size_t bytes)
{
    (void)archive;
    (void)key;
    (void)text;
    (void)bytes;
}

const char *server_from(struct client *c)
{
    (void)c;
    return "here";
}

void server_event(struct server *s, enum trib_service_counter c)
{
    (void)s;
    (void)c;
}

void server_publish(struct server *s)
{
    (void)s;
}

void server_free_slots(struct server *s, struct client *c)
{
    (void)trib_jobs_remove(s->jobs, 1, c->job);
    c->freed = true;
}

void server_hang_up(struct server *s, struct client *c)
{
    (void)s;
    c->session = NULL;
}

void ready_forget(struct server *s, struct client *c)
{
    (void)s;
    (void)c;
}

struct credentials *credentials_hold(struct credentials *credentials)
{
    return credentials;
}

void credentials_release(struct credentials *credentials)
{
    (void)credentials;
}

void trib_metrics_reason_mt(struct trib_metrics *m, enum trib_service_reason reason)
{
    (void)m;
    (void)reason;
}

enum { CLIENTS = 3, RUN = 7, NEXT = 8 };

struct rig {
    struct server s;
    struct client clients[CLIENTS];
    struct client *list[CLIENTS];
    struct store_job stores[CLIENTS - 1];
};

static struct trib_control_store_join join_of(uint8_t token)
{
    return (struct trib_control_store_join){
        .ranks = 1, .token = {token}, .owner = {1}, .again = token != NEXT};
}

/* Two stores with one key: of client 0, with token 0, and of client 1, with token 1. A
 * third client sends a request. */
static void rig_open(struct rig *rig)
{
    const struct trib_jobs_limits most = {10, 10, 10, 1 << 30};
    const struct trib_jobs_opts jobs = {.service = most, .user = most, .job = most};
    struct trib_error err = {0};

    *rig = (struct rig){.s.n_clients = CLIENTS, .s.clients = rig->list};
    trib_log_init(&rig->s.log, TRIB_LOG_ERROR, NULL, NULL);
    assert_status(trib_jobs_create(&jobs, &err, &rig->s.jobs), TRIB_OK);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = rig->list[i] = &rig->clients[i];
        if (i == CLIENTS - 1)
            continue;
        c->store = &rig->stores[i];
        c->store_join = join_of((uint8_t)i);
        snprintf(c->join.user, sizeof(c->join.user), "ana");
        snprintf(c->join.job, sizeof(c->join.job), "job/store");
    }
    answer = (struct trib_control){.kind = 0};
}

static int tokens; /* used */

/* Send a request, and give it a token if it waits for one. */
static void ask(struct rig *rig, uint8_t token)
{
    static int session;
    const struct trib_control_store_join join = join_of(token);

    struct client *c = &rig->clients[CLIENTS - 1];

    c->session = (struct trib_session *)(void *)&session;
    store_admit_join(&rig->s, c, &join);
    if (!c->asked_ns)
        return;
    assert_ptr_equal(c->join_bucket, &rig->s.join_buckets[0]);
    tokens++;
    c->asked_ns = 0;
    store_admit_due(&rig->s, c);
}

static void refused(trib_status_t status, const char *words)
{
    assert_int_equal(answer.kind, TRIB_CONTROL_STORE_REFUSED);
    assert_int_equal(-(int)answer.store_refused.status, status);
    assert_non_null(strstr(answer.store_refused.text, words));
}

TEST(test_key_in_use)
{
    for (int used = 0; used < CLIENTS - 1; used++) {
        struct rig rig;
        rig_open(&rig);
        rig.stores[!used].ended = true;
        rig.stores[used].present = 1;
        ask(&rig, NEXT);
        refused(TRIB_ERR_BUSY, "a store with the same key is in use");
        assert_false(rig.stores[used].ended);
        trib_jobs_destroy(rig.s.jobs);
    }
}

TEST(test_deserted_key)
{
    struct rig rig;

    rig_open(&rig);
    rig.clients[0].left = true; /* kicked: its ranks do not matter */
    rig.stores[0].present = 1;
    ask(&rig, NEXT);
    assert_int_equal(answer.kind, 0);
    assert_true(rig.stores[0].ended && rig.stores[1].ended);
    assert_int_equal(rig.clients[CLIENTS - 1].store->present, 1);
    trib_jobs_destroy(rig.s.jobs);
}

/* A place for one job. The ranks of the earlier run are lost: its store holds the
 * place, or open files. */
static void is_full(struct rig *rig, uint32_t files)
{
    const struct trib_jobs_limits most = {1, 1, 1, 1 << 30};
    const struct trib_jobs_opts jobs = {.service = most, .user = most, .job = most};
    const struct trib_job_request request = {
        .name = "job/store", .user = "ana", .weight = 1, .ranks = 1, .slots = 1};
    struct trib_error err = {0};
    struct trib_job_answer a;

    rig_open(rig);
    trib_jobs_destroy(rig->s.jobs);
    assert_status(trib_jobs_create(&jobs, &err, &rig->s.jobs), TRIB_OK);
    rig->clients[0].left = rig->clients[0].freed = rig->stores[0].empty = true;
    if (!files)
        trib_jobs_submit(rig->s.jobs, 1, &request, &a);
    rig->clients[1].job = files ? 0 : a.id;
    files_taken = files;
}

/* The next run gets the place as soon as that store has ended. */
TEST(test_deserted_key_without_a_place)
{
    for (uint32_t files = 0; files <= 2; files += 2) {
        bool changed = false;
        struct rig rig;
        is_full(&rig, files);
        ask(&rig, NEXT);
        refused(TRIB_ERR_BUSY, files ? "no files" : "cannot get slots now");
        assert_true(rig.stores[1].ended);
        rig.stores[1].empty = true;
        files_taken = 0;
        if (!files) { /* the server thread has not noticed it */
            ask(&rig, NEXT);
            refused(TRIB_ERR_BUSY, "cannot get slots now");
        }
        assert_false(store_admit_sweep(&rig.s, &rig.clients[1], &changed));
        answer = (struct trib_control){.kind = 0};
        ask(&rig, NEXT);
        assert_int_equal(answer.kind, 0);
        assert_non_null(rig.clients[CLIENTS - 1].store);
        trib_jobs_destroy(rig.s.jobs);
    }
}

/* A store that is refused in any case does not end the earlier run, whose ranks may
 * come back. */
TEST(test_deserted_key_in_vain)
{
    for (uint32_t files = 0; files <= 3; files += 3) {
        struct rig rig;
        is_full(&rig, files);
        if (!files)
            trib_jobs_drain(rig.s.jobs, true);
        ask(&rig, NEXT);
        refused(TRIB_ERR_NO_RESOURCE, files ? "no files" : "draining");
        assert_false(rig.stores[1].ended);
        trib_jobs_destroy(rig.s.jobs);
    }
    files_taken = 0;
}

/* Nor does one whose place a queued job would get, even if files are missing, too; nor
 * one that must wait for a queued job of its user. */
TEST(test_deserted_key_before_a_queued_job)
{
    const struct trib_jobs_limits most = {3, 2, 1, 1 << 30};
    const struct trib_jobs_opts jobs = {
        .service = most, .user = most, .job = most, .backfill_ns = 60000000000};

    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t slots = 1 + i % 2; /* 2 would not be free */
        const uint32_t files = i / 2 % 2 * 2;
        const bool own = i >= 4, gets = slots == 2 && !own;
        struct trib_job_request request = {
            .name = "other", .user = "bob", .weight = 1, .ranks = 1, .slots = 2};
        struct trib_error err = {0};
        struct trib_job_answer a;
        struct rig rig;
        is_full(&rig, files);
        trib_jobs_destroy(rig.s.jobs);
        assert_status(trib_jobs_create(&jobs, &err, &rig.s.jobs), TRIB_OK);
        trib_jobs_submit(rig.s.jobs, trib_now_ns(), &request, &a);
        request.slots = 1;
        request.user = "ana";
        trib_jobs_submit(rig.s.jobs, trib_now_ns(), &request, &a);
        assert_int_equal(a.verdict, TRIB_JOB_ADMIT);
        rig.clients[1].job = a.id;
        request.user = own ? "ana" : "bob";
        request.slots = slots;
        request.wait_ns = UINT64_MAX;
        trib_jobs_submit(rig.s.jobs, trib_now_ns(), &request, &a);
        assert_int_equal(a.verdict, TRIB_JOB_QUEUE);
        ask(&rig, NEXT);
        refused(gets ? TRIB_ERR_BUSY : TRIB_ERR_NO_RESOURCE,
                files ? "no files" : "cannot get slots now");
        assert_int_equal(rig.stores[1].ended, gets);
        trib_jobs_destroy(rig.s.jobs);
    }
    files_taken = 0;
}

/* A rank that waits for its key uses no token of its user. */
TEST(test_tokens)
{
    struct rig rig;

    rig_open(&rig);
    rig.stores[1].present = 1;
    tokens = 0;
    ask(&rig, NEXT);
    refused(TRIB_ERR_BUSY, "a store with the same key is in use");
    assert_int_equal(tokens, 0);
    rig.stores[1].present = 0;
    answer = (struct trib_control){.kind = 0};
    ask(&rig, NEXT);
    assert_int_equal(answer.kind, 0);
    assert_int_equal(tokens, 1);
    trib_jobs_destroy(rig.s.jobs);
}

/* Another store takes the key while the request waits for its token. */
TEST(test_key_taken_meanwhile)
{
    static int session;
    const struct trib_control_store_join join = join_of(NEXT);
    struct rig rig;

    rig_open(&rig);
    struct client *c = &rig.clients[CLIENTS - 1];
    c->session = (struct trib_session *)(void *)&session;
    store_admit_join(&rig.s, c, &join);
    assert_int_equal(answer.kind, 0);
    rig.stores[1].present = 1;
    c->asked_ns = 0;
    store_admit_due(&rig.s, c);
    refused(TRIB_ERR_BUSY, "a store with the same key is in use");
    trib_jobs_destroy(rig.s.jobs);
}

TEST(test_return_to_an_ended_store)
{
    struct rig rig;

    rig_open(&rig);
    rig.stores[0].ended = true;
    ask(&rig, 0);
    refused(TRIB_ERR_PEER_LOST, "it has ended");
    assert_int_equal(rig.stores[0].present, 0);
    ask(&rig, 1);
    assert_int_equal(rig.stores[1].present, 1);
    trib_jobs_destroy(rig.s.jobs);
}

/* It waits for the disk, and holds no place for which other jobs wait. */
TEST(test_empty_store)
{
    bool changed = false;
    struct rig rig;

    rig_open(&rig);
    rig.clients[0].left = rig.clients[1].left = true;
    ask(&rig, NEXT);
    struct client *c = &rig.clients[CLIENTS - 1];
    assert_int_equal(trib_jobs_view(rig.s.jobs).held.jobs, 1);
    assert_false(store_admit_sweep(&rig.s, c, &changed));
    assert_int_equal(trib_jobs_view(rig.s.jobs).held.jobs, 1);
    assert_false(c->left);
    c->store->empty = true;
    assert_false(store_admit_sweep(&rig.s, c, &changed));
    assert_int_equal(trib_jobs_view(rig.s.jobs).held.jobs, 0);
    assert_true(c->left);
    trib_jobs_destroy(rig.s.jobs);
}
