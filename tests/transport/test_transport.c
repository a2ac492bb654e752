/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/transport/pair.h"

#include <dirent.h>

#include "transport/decorators/decorators.h"
#include "transport/loop/loop.h"

/* Opening fails, and a check alone gives the same answer. */
static void fails(const char *text, trib_status_t expected, const char *sentence)
{
    struct trib_error err = {0};

    assert_status(trib_transport_check(text, &err), expected);
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\" gives \"%s\", not \"%s\"", text, err.text, sentence);
    pair_refuses(text, expected, err.text);
}

/* A build has a backend, or its error message names what is missing. */
TEST(test_absent)
{
    static const char *const optional[] = {"verbs", "ucx"};

    for (int i = 0; i < 2; i++) {
        bool has = false;
        for (int k = 0; trib_transports[k]; k++)
            has |= strcmp(trib_transports[k]->name, optional[i]) == 0;
        const char *cure = trib_transport_absent(optional[i]);
        assert_int_equal(has, cure == NULL);
        if (cure)
            fails(optional[i], TRIB_ERR_UNSUPPORTED, cure);
    }
    assert_null(trib_transport_absent("shm"));
    assert_null(trib_transport_absent("infiniband"));
}

TEST(test_wrong_texts)
{
    static const struct {
        const char *text, *sentence;
    } wrong[] = {
        {"", "no transport is called \"\""},
        {"shn", "no transport is called \"shn\"; did you mean \"shm\"?"},
        {"infiniband", "\"infiniband\"; available: auto, shm, tcp, "},
        {"shm+trce", "decorator is called \"trce\"; did you mean \"trace\"?"},
        {"shm+", "no transport decorator is called \"\""},
        {"shm:rings=8", "shm has no parameter \"rings\"; did you mean \"ring\"?"},
        {"shm:ring", "shm: ring needs a value, as in ring=256"},
        {"shm:ring=", "ring= is not a whole number from 8 to 65536"},
        {"shm:ring=7", "ring=7 is not a whole number from 8 to 65536"},
        {"shm:ring=8x", "ring=8x is not a whole number"},
        {"shm:ring=99999999999999999999", "is not a whole number"},
        {"shm:ring=16,cm=0", "did you mean \"cma\"?"},
        {"loop:group=a", "loop has no parameter \"group\""},
        {"shm+nomap:x=1", "nomap takes no parameters, not \"x\""},
        {"auto:x=1", "auto has no parameter \"x\""},
        {"shm+delay:us=-1", "us=-1 is not a whole number from 0"},
        {"shm+nomap+drop:nth=0", "nth=0 is not a whole number from 1"},
        {"tcp:port=70000", "port=70000 is not a whole number from 0 to 65535"},
        {"shm:\1ring=8", "control character \\001"},
        {"shm+kill:signal=65", "signal=65 is not a whole number from 1 to 64"},
    };
    char endless[600];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        fails(wrong[i].text, TRIB_ERR_CONFIG, wrong[i].sentence);
    memset(endless, 'x', sizeof(endless));
    endless[sizeof(endless) - 1] = '\0';
    fails(endless, TRIB_ERR_CONFIG, "has 599 characters");
}

static int open_files(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");

    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* Every backend and decorator can be asked, and makes nothing. */
TEST(test_good_texts)
{
    static const char *const more[] = {
        "shm:ring=16,cma=0", "tcp:port=7100,ports=5", "auto:near=tcp", "loop:depth=8",
        "shm+trace+delay:us=1+drop:nth=9+corrupt:nth=9+kill:after=9,rank=1+nomap"};
    struct trib_error err = {0};
    int files = open_files();

    for (size_t i = 0; trib_transports[i]; i++)
        assert_ok(trib_transport_check(trib_transports[i]->name, &err));
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        assert_ok(trib_transport_check(more[i], &err));
    for (const struct trib_decorator *d = trib_decorators; d->name; d++) {
        char text[64];
        snprintf(text, sizeof(text), "shm+%s", d->name);
        assert_ok(trib_transport_check(text, &err));
    }
    assert_string_equal(err.text, "");
    assert_int_equal(open_files(), files);
}

TEST(test_wrong_numbers)
{
    struct pair pair = {0};
    struct trib_transport_opts opts = pair_opts(&pair, 2);
    struct trib_transport *t = NULL;

    assert_status(trib_transport_open("shm", &opts, &t), TRIB_ERR_INVALID);
    assert_string_equal(pair.err.text, "invalid peer number 2 of 2");
}

/* All slots are filled, in every backend and under every decorator. */
static void all_slots(const struct trib_transport_ops *ops)
{
    assert_non_null(ops->name);
    assert_non_null(ops->detail);
    assert_non_null(ops->devices);
    assert_true(ops->open && ops->close && ops->address && ops->reach && ops->caps);
    assert_true(ops->agree && ops->route && ops->connect && ops->disconnect &&
                ops->leave);
    assert_true(ops->pinned_limit && ops->alloc && ops->reg && ops->reg_dmabuf);
    assert_true(ops->release_pages && ops->dereg);
    assert_true(ops->export_region && ops->import_region && ops->release &&
                ops->length && ops->stale && ops->map && ops->write && ops->poll);
    assert_true(ops->event_fd && ops->arm && ops->wait && ops->wake);
}

/* A region is as long as it was exported; a region shorter than the requested range is
 * refused. */
static void check_lengths(const char *text)
{
    struct pair pair;

    pair_open(&pair, text, text);
    struct trib_transport *t = pair.t[0];
    struct trib_remote *remote = NULL;
    struct trib_blob blob, none = {.len = TRIB_BLOB_MAX + 1};
    assert_int_equal(t->ops->length(t, pair.remote[0]), PAIR_LEN);
    assert_ok(pair.t[1]->ops->export_region(pair.t[1], pair.region[1], &blob));
    assert_status(trib_transport_import(t, 1, &blob, PAIR_LEN + 1, &remote),
                  TRIB_ERR_RANGE);
    assert_null(remote);
    assert_string_equal(pair.err.text,
                        "rank 1 exported 4096 bytes of memory, but this rank must "
                        "address 4097: it runs another library, or its settings "
                        "differ from the ones that it announced");
    trib_error_clear(&pair.err);
    assert_status(trib_transport_import(t, 1, &none, 1, &remote), TRIB_ERR_INVALID);
    trib_error_clear(&pair.err);
    assert_ok(trib_transport_import(t, 1, &blob, PAIR_LEN, &remote));
    t->ops->release(t, remote);
    pair_close(&pair);
}

/* Each text opens its transport, and a row describes it. */
TEST(test_rows)
{
    for (size_t i = 0; trib_transports[i]; i++) {
        const struct trib_transport_ops *ops = trib_transports[i];
        assert_ptr_equal(trib_transport_find(ops->name), ops);
        assert_true(strlen(ops->detail) > 0);
        for (const struct trib_transport_text *t = ops->texts; t && t->text; t++) {
            struct trib_error err = {0};
            assert_int_equal(strncmp(t->text, ops->name, strlen(ops->name)), 0);
            assert_ok(trib_transport_check(t->text, &err));
            assert_true(!ops->one_process || t->flags & TRIB_TEXT_THREADS);
            assert_true(!ops->bare || !(t->flags & TRIB_TEXT_SEALED));
            check_lengths(t->text);
        }
    }
}

/* The receiver copies over loop: it asks its own region for its length. */
TEST(test_loop_is_bounded)
{
    struct pair pair;
    struct loop_export x;
    struct trib_blob blob;
    struct trib_remote *remote;
    struct trib_event e;

    pair_open(&pair, "loop", "loop");
    assert_ok(pair.t[1]->ops->export_region(pair.t[1], pair.region[1], &blob));
    memcpy(&x, blob.bytes, sizeof(x));
    x.len = UINT64_C(1) << 40;
    memcpy(blob.bytes, &x, sizeof(x));
    assert_ok(pair.t[0]->ops->import_region(pair.t[0], 1, &blob, &remote));
    struct trib_write w = {.local = pair.region[0],
                           .remote = remote,
                           .remote_off = UINT64_C(1) << 39,
                           .len = 8};
    assert_ok(pair.t[0]->ops->write(pair.t[0], 1, &w));
    assert_int_equal(pair_await(&pair, 1, &e), 1);
    assert_int_equal(e.kind, TRIB_EVENT_PEER_LOST);
    assert_non_null(strstr(e.why, "wrote to memory that is not registered"));
    pair_close(&pair);
}

TEST(test_slots)
{
    const char *text =
        "loop:depth=8+trace+delay:us=1+drop:nth=9+corrupt:nth=9+kill:after=9+nomap";
    struct pair pair;

    for (size_t i = 0; trib_transports[i]; i++)
        all_slots(trib_transports[i]);
    pair_open(&pair, text, "loop");
    all_slots(pair.t[0]->ops);
    assert_ok(pair_write(&pair, 8, 1));
    pair_close(&pair);
}

TEST(test_auto)
{
    struct pair pair;

    pair_open(&pair, "auto", "auto+nomap");
    assert_string_equal(pair.t[0]->ops->name, "auto");
    all_slots(pair.t[1]->ops);
    assert_non_null(pair.t[0]->ops->map(pair.t[0], pair.remote[0], NULL));
    assert_null(pair.t[1]->ops->map(pair.t[1], pair.remote[1], NULL));
    pair_close(&pair);
}
