/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of one user: other users can still create stores.
 *
 * The disk of the snapshots hangs, and stores that have ended wait for it. At a limit
 * tribd refuses new stores, so that these do not occupy all places for jobs: 519 runs
 * of one user were enough when jobs was 4. One user has half of that limit.
 *
 * Stores also leave threads to other jobs: with 64 workers, 128 stores of 64 ranks had
 * 8192 threads, all that tribd.service allows.
 */
#include "tests/harness/tribtest.h"

#include "agg/daemon/server_parts.h"

/* Stands for a store. */
struct store_job {
    bool empty;
    uint32_t files, threads;
};

bool store_job_is_empty(const struct store_job *job)
{
    return job->empty;
}

uint32_t store_job_files(const struct store_job *job)
{
    return job->files;
}

uint32_t store_job_threads(const struct store_job *job)
{
    return job->threads;
}

void server_event(struct server *s, enum trib_service_counter c)
{
    (void)s;
    (void)c;
}

const char *server_from(struct client *c)
{
    (void)c;
    return "here";
}

static const struct client *refused; /* a JOIN that waited */

void admit_refuse_waiting(struct server *s, struct client *c)
{
    (void)s;
    refused = c;
}

void store_admit_refuse(struct server *s, struct client *c, const char *why)
{
    assert_string_equal(why, ADMIT_TOO_MANY);
    admit_refuse_waiting(s, c);
}

void server_hang_up(struct server *s, struct client *c)
{
    (void)s;
    (void)c;
}

void server_free_client(struct server *s, int i)
{
    s->clients[i] = s->clients[--s->n_clients];
}

struct credentials *credentials_hold(struct credentials *credentials)
{
    return credentials;
}

#define trib_session_end(session, ...) ((void)(session), TRIB_ERR_NO_RESOURCE)
#include "agg/daemon/listeners.c"
#undef trib_session_end
#include "agg/daemon/store_share.c"

enum { CLIENTS = ENDED_STORES_MAX + 1 };

struct rig {
    struct server s;
    struct client clients[CLIENTS];
    struct client *list[CLIENTS];
};

static struct store_job running, ended = {.empty = true};

static void add(struct rig *rig, const char *user, struct store_job *store, int n)
{
    for (int i = 0; i < n; i++) {
        struct client *c = &rig->clients[rig->s.n_clients];
        c->store = store;
        snprintf(c->join.user, sizeof(c->join.user), "%s", user);
        rig->list[rig->s.n_clients++] = c;
    }
}

static bool allows(const struct rig *rig, const char *user, bool exists)
{
    const struct store_share asked = {.user = user, .ranks = 1, .exists = exists};
    char why[TRIB_CONTROL_TEXT_MAX] = "";
    const bool well = store_share_allows(&rig->s, &asked, why, sizeof(why));

    assert_int_equal(!well, strstr(why, "wait for the disk") != NULL);
    return well;
}

TEST(test_one_user)
{
    static struct rig rig;

    rig.s.clients = rig.list;
    add(&rig, "ana", &ended, ENDED_STORES_MAX / 2 - 1);
    add(&rig, "ana", &running, 1);
    assert_true(allows(&rig, "ana", false));
    add(&rig, "ana", &ended, 1);
    assert_false(allows(&rig, "ana", false));
    assert_true(allows(&rig, "ana", true)); /* another rank of the running one */
    assert_true(allows(&rig, "bob", false));
    add(&rig, "bob", &ended, ENDED_STORES_MAX / 2);
    assert_false(allows(&rig, "cat", false));
    assert_true(allows(&rig, "cat", true));
}

/* All jobs belong to one user if they authenticate by key. */
TEST(test_unnamed_user)
{
    static struct rig rig;

    rig.s.clients = rig.list;
    add(&rig, "key", &ended, ENDED_STORES_MAX - 1);
    assert_true(allows(&rig, "key", false));
    add(&rig, "key", &ended, 1);
    assert_false(allows(&rig, "key", false));
}

/* Files of a store that the new one replaces are available to it. */
TEST(test_replaced_files)
{
    static struct rig rig;
    struct store_job large = {.files = (uint32_t)(files_of_others() / 2)};
    struct store_share asked = {.user = "ana", .ranks = 1};
    char why[TRIB_CONTROL_TEXT_MAX] = "";

    rig.s.clients = rig.list;
    add(&rig, "ana", &large, 1);
    assert_false(store_share_allows(&rig.s, &asked, why, sizeof(why)));
    assert_non_null(strstr(why, "use all connections"));
    asked.freed = large.files;
    assert_true(store_share_allows(&rig.s, &asked, why, sizeof(why)));
}

TEST(test_threads)
{
    static struct rig rig;
    struct store_job large = {.threads = 64};
    const struct store_share ana = {.user = "ana", .ranks = 64};
    const struct store_share small = {.user = "bob", .ranks = 3};
    const struct store_share key = {.user = "key", .ranks = 64};

    rig.s.clients = rig.list;
    rig.s.n_workers = 64;
    add(&rig, "ana", &large, THREADS_MAX / 64 / 2 - 1);
    assert_int_equal(store_share_threads(&rig.s, &ana), 64);
    assert_int_equal(store_share_threads(&rig.s, &small), 3);
    add(&rig, "ana", &large, 1);
    assert_int_equal(store_share_threads(&rig.s, &ana), 1);
    assert_int_equal(store_share_threads(&rig.s, &small), 3);
    add(&rig, "key", &large, THREADS_MAX / 64 / 2 - 1);
    assert_int_equal(store_share_threads(&rig.s, &key), 64);
    add(&rig, "key", &large, 1);
    assert_int_equal(store_share_threads(&rig.s, &key), 1);
    assert_int_equal(store_share_threads(&rig.s, &small), 1);
}

/* Add n connections of a user: authenticated ones, or JOINs that wait. */
static void connect_as(struct rig *rig, int bucket, bool waits, int n)
{
    static int session;
    static uint64_t now_ns = 1;

    for (int i = 0; i < n; i++) {
        struct client *c = &rig->clients[CLIENTS - now_ns];
        *c = (struct client){.session = (struct trib_session *)(void *)&session,
                             .proven = true,
                             .asked = waits,
                             .asked_ns = waits ? now_ns : 0,
                             .join_bucket = &rig->s.join_buckets[bucket],
                             .base = {.since = now_ns}};
        rig->list[rig->s.n_clients++] = c;
        now_ns++;
    }
}

/* All places are in use: 1536 requests of one user, which it may only send 20 times a
 * second, kept all others out. The user with most of them loses the newest. */
TEST(test_places)
{
    static struct rig rig;

    trib_log_init(&rig.s.log, TRIB_LOG_ERROR, NULL, NULL);
    rig.s.clients = rig.list;
    add(&rig, "ana", &running, 5);
    assert_false(evict_authenticated(&rig.s));
    connect_as(&rig, 1, true, 3);
    connect_as(&rig, 2, true, 2);
    connect_as(&rig, 3, false, 1);
    assert_true(evict_authenticated(&rig.s));
    assert_ptr_equal(refused,
                     &rig.clients[CLIENTS - 3]); /* the third of the first user */
    assert_int_equal(rig.s.n_clients, 10);
    refused = NULL;
    connect_as(&rig, 3, false, 2);
    assert_true(evict_authenticated(&rig.s)); /* the first of those without a request */
    assert_null(refused);
    for (int i = 0; i < rig.s.n_clients; i++)
        assert_ptr_not_equal(rig.list[i], &rig.clients[CLIENTS - 6]);
}
