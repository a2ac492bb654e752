/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wireup: its messages fit boot blobs, differences of settings are named, and ranks
 * know their peers.
 */
#include "tests/harness/tribtest.h"

#include "boot/boot.h"
#include "comm/communicator.h"
#include "tests/harness/ranks.h"

static void test_messages(void **state)
{
    int n = 0;

    (void)state;
    for (; trib_wireup_bytes(n) > 0; n++)
        assert_in_range(trib_wireup_bytes(n), 1, TRIB_BOOT_BLOB_MAX);
    assert_int_equal(n, 2);
    assert_true(trib_wireup_machine() == trib_wireup_machine());
}

static void test_difference(void **state)
{
    static const struct {
        const char *a, *b, *x, *y;
    } rows[] = {
        {"chunk=1 codec=none", "chunk=2 codec=none", "chunk=1", "chunk=2"},
        {"chunk=1 codec=none", "chunk=1 codec=bf16", "codec=none", "codec=bf16"},
        {"chunk=1", "chunk=12", "chunk=1", "chunk=12"},
        {"chunk=1", "chunk=1", "other settings", "these"},
        {"", "chunk=1", "other settings", "these"},
    };
    char x[40], y[40];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        trib_wireup_difference(rows[i].a, rows[i].b, x, y, sizeof(x));
        assert_string_equal(x, rows[i].x);
        assert_string_equal(y, rows[i].y);
    }
    trib_wireup_difference("name=a-long-value", "name=b", x, y, 8); /* cut, and ended */
    assert_string_equal(x, "name=a-");
}

static int peers(struct ranks_self *self)
{
    const struct trib_engine *e = &self->comm->engine;

    ranks_assert(self, e->size == self->size && e->ranks == self->size);
    ranks_assert(self, e->peers[self->rank].pid == getpid());
    for (int r = 0; r < self->size; r++)
        ranks_assert(self, e->peers[r].pid > 0 && e->peers[r].host[0]);
    ranks_assert(self, self->comm->one_host && self->comm->locality);
    ranks_assert(self, self->comm->load_store ==
                           (strcmp(self->comm->cfg.transport, "shm") == 0));
    return 0;
}

static void test_peers(void **state)
{
    (void)state;
    ranks_pass(.size = 3, .fn = peers, .config = "transport=shm");
    ranks_pass(.size = 3, .fn = peers, .config = "transport=tcp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_difference),
        cmocka_unit_test(test_peers),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
