/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks refuse a first message that does not match theirs, each with a specific
 * message.
 */
#include "tests/harness/tribtest.h"

#include "comm/members/wireup_check.h"

TEST(test_difference)
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

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        trib_wireup_difference(rows[i].a, rows[i].b, x, y, sizeof(x));
        assert_string_equal(x, rows[i].x);
        assert_string_equal(y, rows[i].y);
    }
    trib_wireup_difference("name=a-long-value", "name=b", x, y, 8); /* truncated, with a
                                                                     * terminator */
    assert_string_equal(x, "name=a-");
}

static const struct wireup_msg1 sound = {.magic = 0x254,
                                         .version = TRIB_WIREUP_VERSION,
                                         .release = "1.2.3",
                                         .host = "a",
                                         .settings = 7};

/* Check the message of three ranks if the last one has another wireup message; those
 * from number `ranks` on are aggregators. */
static void says(struct wireup_msg1 last, int ranks, trib_status_t status,
                 const char *words)
{
    struct trib_comm *comm = calloc(1, sizeof(*comm));
    struct wireup_msg1 all[3] = {sound, sound, last};

    assert_non_null(comm);
    comm->engine.size = 3;
    comm->engine.ranks = ranks;
    assert_status(trib_wireup_check(comm, all), status);
    if (words && strcmp(trib_error_text(&comm->err), words) != 0)
        fail_msg("\"%s\" is not \"%s\"", trib_error_text(&comm->err), words);
    free(comm);
}

TEST(test_check)
{
    struct wireup_msg1 last = sound;

    says(last, 3, TRIB_OK, NULL);
    memcpy(last.release, "1.2.2\n", 6);
    memcpy(last.host, "b", 2);
    says(last, 3, TRIB_ERR_MISMATCH,
         "rank 2 (host b) has Tributary 1.2.2\\x0a, rank 0 (host a) has 1.2.3: install "
         "the same version");
    memset(last.release, 'x', sizeof(last.release)); /* without a terminator */
    says(last, 2, TRIB_ERR_MISMATCH,
         "tribd (host b) has Tributary xxxxxxxxxxxxxxxxxxxxxxx, rank 0 (host a) has "
         "1.2.3: install the same version");
    last = sound;
    last.version++;
    last.settings = 8; /* with another layout, nothing else is compared */
    says(last, 3, TRIB_ERR_MISMATCH,
         "rank 2 (host a) and rank 0 (host a) have builds of Tributary 1.2.3 with "
         "different wireup messages, versions 17 and 16: install the same build");
    last = sound;
    last.magic = 0;
    says(last, 3, TRIB_ERR_BOOT,
         "rank 2 could not join; its own trib_last_error gives the reason");
    last = sound;
    last.secret_mark[0] = 1;
    says(last, 3, TRIB_ERR_MISMATCH, NULL);
}
