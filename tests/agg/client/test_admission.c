/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that wait for admission: the warnings of rank 0 if no tribd admits it, sums of
 * the ranks without aggregators, and a real tribd that runs from the start or later.
 */
#include "agg/client/fallback.h"
#include "comm/core/communicator.h"
#include "tests/agg/client/fake_tribd.h"
#include "tests/harness/daemon.h"

static const struct {
    const char *service; /* NULL: the fake tribd, which refuses */
    int retry_ms;
    const char *says; /* text before "; the ranks sum without aggregators" */
} rows[] = {
    {NULL, 0, " refuses: all slots are taken"},
    {NULL, 60000, " refuses: all slots are taken"},
    {"127.0.0.1:1", 0, ": is tribd running there?"},
    {"nonsense", 60000, "TRIB_SERVICE: \"nonsense\" is not host:port"},
};

static void hear(void *arg, trib_log_level_t level, const char *line)
{
    if (level == TRIB_LOG_WARN)
        snprintf(arg, 400, "%s", line);
}

static void sum(struct ranks_self *self, trib_comm_t *comm)
{
    float x = (float)(self->rank + 1);

    ranks_ok(self, trib_allreduce(comm, NULL, &x, 1, TRIB_F32, TRIB_SUM));
    ranks_assert(self, x == (float)(self->size * (self->size + 1) / 2));
}

static void refuse(struct ranks_self *self, size_t row)
{
    struct fake_tribd f = {.answer = FAKE_REFUSES};
    char line[400] = "", says[120];
    trib_comm_t *comm;

    ranks_ok(self, trib_split(self->comm, 0, 0, &comm));
    trib_log_init(&comm->log, TRIB_LOG_WARN, hear, line);
    comm->cfg.service_retry_ms = rows[row].retry_ms;
    if (self->rank == 0 && !rows[row].service)
        fake_start(self, &f);
    ranks_ok(self, trib_broadcast(comm, &f.port, sizeof(f.port), TRIB_I8, 0));
    snprintf(comm->cfg.service, sizeof(comm->cfg.service), "127.0.0.1:%d", f.port);
    if (rows[row].service)
        snprintf(comm->cfg.service, sizeof(comm->cfg.service), "%s", rows[row].service);
    ranks_ok(self, trib_offload_join(comm));
    snprintf(says, sizeof(says), "%s; the ranks sum without aggregators",
             rows[row].says);
    if (self->rank == 0 ? !strstr(line, says) : line[0])
        ranks_die(self, "row %zu: \"%s\" does not say \"%s\"", row, line, says);
    /* A wrong text stays wrong, so there is no search. */
    const bool searches = rows[row].retry_ms && !rows[row].service;
    ranks_assert(self, !comm->offload == !searches);
    ranks_assert(self, !searches || (!comm->offload->agg_comm &&
                                     comm->offload->next_poll_seq == 1));
    for (int i = 0; i < 5; i++)
        sum(self, comm);
    ranks_ok(self, trib_free_comm(comm));
    if (self->rank == 0 && f.port)
        fake_join(&f);
}

static int refused(struct ranks_self *self)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refuse(self, i);
    return 0;
}

TEST(test_refused)
{
    assert_int_equal(ranks_run(&(struct ranks_job){
                         .size = 3,
                         .fn = refused,
                         .config = "transport=shm;service_auth=none"}),
                     0);
}

/* Sum until tribd has done some of the sums. */
static int offloads(struct ranks_self *self)
{
    const double end = ranks_seconds() + 40 * tribtest_slowness();
    trib_stats_t stats = {.size = sizeof(stats)};

    while (stats.served < 5) {
        sum(self, self->comm);
        ranks_ok(self, trib_stats(self->comm, &stats));
        ranks_assert(self, ranks_seconds() < end);
        self->slot->count++;
    }
    ranks_assert(self, self->arg || stats.served == self->slot->count);
    return 0;
}

static void await_up(struct daemon_process *d)
{
    const double end = ranks_seconds() + 30;

    while (!daemon_up(d)) {
        if (daemon_said(d, "no HTTP server"))
            tribtest_skip("built without libmicrohttpd");
        assert_true(ranks_seconds() < end);
        usleep(10000);
    }
}

TEST(test_admitted)
{
    struct daemon_process d = {.threads = 1};
    struct ranks later;
    char config[120];
    int status;

    assert_true(daemon_folder(d.folder));
    assert_true(daemon_start(&d));
    await_up(&d);
    snprintf(config, sizeof(config), "service=127.0.0.1:%d;service_retry_ms=50",
             d.port);
    assert_int_equal(
        ranks_run(&(struct ranks_job){.size = 2, .fn = offloads, .config = config}), 0);
    daemon_signal(&d, SIGTERM);
    while (!daemon_ended(&d, &status))
        usleep(10000);
    assert_true(ranks_start(&later, &(struct ranks_job){.size = 2,
                                                        .fn = offloads,
                                                        .arg = &later,
                                                        .config = config,
                                                        .noisy = true}));
    while (later.slots[0].count == 0 && !ranks_poll(&later))
        usleep(1000); /* the job starts without tribd */
    assert_true(daemon_start(&d));
    await_up(&d);
    ranks_wait(&later);
    const int failed = ranks_failed(&later);
    ranks_close(&later);
    if (failed)
        daemon_show(&d);
    daemon_signal(&d, SIGTERM);
    while (!daemon_ended(&d, &status))
        usleep(10000);
    daemon_remove(d.folder);
    assert_int_equal(failed, 0);
}
