/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wireup with a tribd that admits the job and then answers wrongly or never: all ranks
 * get the same error and message, and can continue.
 */
#include "agg/client/agg_provider.h"
#include "comm/core/communicator.h"
#include "tests/agg/client/fake_tribd.h"

static const struct {
    enum fake_answer answer;
    trib_status_t st;
    const char *says; /* text after the address */
} rows[] = {
    {FAKE_SILENT, TRIB_ERR_TIMEOUT, " does not answer"},
    {FAKE_ODD, TRIB_ERR_PROTOCOL,
     " did not send its address"},
    {FAKE_SHORT, TRIB_ERR_MISMATCH,
     " runs a different build of Tributary, with messages of 1 and not "},
};

static void wire_up(struct ranks_self *self, size_t row)
{
    struct trib_comm *comm = self->comm, *out = comm;
    struct trib_agg_provider w = {.parent = comm};
    struct fake_tribd f = {.answer = rows[row].answer};
    const uint8_t salt[TRIB_SECRET_BYTES] = {(uint8_t)row};
    char why[TRIB_AGG_WHY_MAX] = "", says[160];
    struct trib_error err = {0};

    const double begin = ranks_seconds();

    comm->cfg.boot_timeout_ms = 1000;
    trib_agg_provider_make_secret(&w, salt);
    if (self->rank == 0) {
        fake_start(self, &f);
        snprintf(comm->cfg.service, sizeof(comm->cfg.service), "127.0.0.1:%d", f.port);
        if (trib_agg_provider_request(&w, &err) != TRIB_OK)
            ranks_die(self, "%s", trib_error_text(&err));
    }
    ranks_ok(self, trib_broadcast(comm, &f.port, sizeof(f.port), TRIB_I8, 0));
    const trib_status_t st = trib_agg_provider_wireup(&w, comm, 1, why, &out);
    snprintf(says, sizeof(says), "127.0.0.1:%d%s", f.port, rows[row].says);
    if (st != rows[row].st || strncmp(why, says, strlen(says)) != 0)
        ranks_die(self, "row %zu: %s: \"%s\", not \"%s\"", row, trib_status_name(st),
                  why, says);
    ranks_assert(self, !out);
    /* The rank waits for tribd at most once, although the wireup has several
     * exchanges. */
    if (ranks_seconds() - begin > 1.8 * tribtest_slowness())
        ranks_die(self, "row %zu took %.1f s", row, ranks_seconds() - begin);
    if (self->rank == 0) {
        trib_control_link_free(w.control_link);
        fake_join(&f);
    }
}

static int fails(struct ranks_self *self)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        float x = 1;
        wire_up(self, i);
        ranks_ok(self, trib_allreduce(self->comm, NULL, &x, 1, TRIB_F32, TRIB_SUM));
        ranks_assert(self, x == (float)self->size);
    }
    return 0;
}

static void test_fails(void **state)
{
    for (int size = 1; size < 4; size++)
        assert_int_equal(
            ranks_run(&(struct ranks_job){.size = size, .fn = fails, .config = *state}),
            0);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test_prestate(
        test_fails, (char *)(uintptr_t) "transport=shm;service_auth=none"),
    cmocka_unit_test_prestate(
        test_fails, (char *)(uintptr_t) "transport=tcp;service_auth=none"),
};

TEST_ROWS(cases)
