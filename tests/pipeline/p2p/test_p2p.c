/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between two engines: to a rank itself, how many unexpected ones are kept,
 * and the writes of a peer that are rejected.
 */
#include "tests/pipeline/p2p/talk.h"

TEST(test_self)
{
    struct talk *k = open_talk("shm", NULL);
    static uint8_t x[9000], y[9000];

    memset(x, 7, sizeof(x));
    begin(k, 0, 0, true, 0, 1, x, 9000);
    begin(k, 1, 0, true, 0, 1, x, 10);
    assert_false(is_done(k, 0));
    assert_true(is_done(k, 1));
    begin(k, 2, 0, false, 0, 1, y, 9000);
    assert_true(is_done(k, 0) && is_done(k, 2) && y[8999] == 7);
    begin(k, 3, 0, false, 0, 1, y, 10);
    assert_true(is_done(k, 3));
    begin(k, 4, 0, false, 0, 1, y, 0);
    begin(k, 5, 0, true, 0, 1, NULL, 0);
    assert_true(is_done(k, 4) && is_done(k, 5));
    begin(k, 6, 0, false, 0, 1, y, 11);
    begin(k, 7, 0, true, 0, 1, x, 12);
    drive(k, 1);
    assert_status(k->runs[6].now.status, TRIB_ERR_MISMATCH);
    assert_status(k->runs[7].now.status, TRIB_ERR_MISMATCH);
    close_talk(k);
}

/* Side 1 writes entries that no rank would write, up to one without a kind. */
static void expect_refused(const struct trib_message *m, const char *config,
                           const char *word)
{
    struct talk *k = open_talk("shm", config);
    struct trib_engine *e = &k->t->side[0].engine;
    struct trib_mailbox box;
    uint8_t x[9000];

    begin(k, 0, 0, false, 1, 1, x, 9000); /* its number is 1 */
    drive(k, 10);
    open_box(k, &box);
    do {
        write_entry(&box, m, NULL);
        drive(k, 3);
    } while (m++->kind);
    assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
    if (!strstr(trib_error_text(&e->failure), word))
        fail_msg("\"%s\" does not have \"%s\"", trib_error_text(&e->failure), word);
    assert_true(is_done(k, 0));
    trib_mailbox_close(&box);
    close_talk(k);
}

#define HEAD .magic = TRIB_MESSAGE_MAGIC, .dtype = TRIB_U8
#define refused(config, word, ...) \
    do { \
        const struct trib_message m[4] = {__VA_ARGS__}; \
        expect_refused(m, config, word); \
    } while (0)

TEST(test_hostile)
{
    refused(NULL, "kind or version", {.magic = 1});
    refused(NULL, "unknown message", {HEAD, .kind = TRIB_MESSAGE_GRANT, .send_id = 7});
    refused(NULL, "elements without a receive",
            {HEAD, .kind = TRIB_MESSAGE_DATA, .recv_id = 1, .bytes = 1});
    refused("check=sum", "damaged",
            {HEAD, .kind = TRIB_MESSAGE_IS_EAGER, .tag = 1, .count = 1, .bytes = 1});
    refused(NULL, "elements out of order",
            {HEAD, .kind = TRIB_MESSAGE_ANNOUNCE, .tag = 1, .count = 9000},
            {HEAD, .kind = TRIB_MESSAGE_DATA, .recv_id = 1, .count = 8999, .bytes = 1});
    refused(NULL, "elements out of order",
            {HEAD, .kind = TRIB_MESSAGE_ANNOUNCE, .tag = 1, .count = 9000},
            {HEAD, .kind = TRIB_MESSAGE_DATA, .recv_id = 1, .bytes = 9001});
}

/* More short messages than the sender may hand over without a receive. */
TEST(test_flood)
{
    struct talk *k = open_talk("shm", NULL);
    struct trib_engine *e = &k->t->side[0].engine;
    struct trib_mailbox box;

    drive(k, 10);
    open_box(k, &box);
    for (int i = 0; i <= TRIB_P2P_EAGER_MOST; i++) {
        const struct trib_message m = {HEAD, .kind = TRIB_MESSAGE_IS_EAGER, .tag = i};
        assert_false(e->failed);
        write_entry(&box, &m, NULL);
        ((struct trib_mailbox_credits *)box.base)->released = box.sent;
        drive(k, 1);
    }
    assert_status((trib_status_t)e->failed, TRIB_ERR_PROTOCOL);
    assert_non_null(strstr(trib_error_text(&e->failure), "too many messages"));
    trib_mailbox_close(&box);
    close_talk(k);
}
