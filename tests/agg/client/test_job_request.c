/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The description of a job that rank 0 sends to tribd: content of a JOIN, the secret
 * that ranks and aggregators share, and a tree too large for a JOIN.
 */
#include "agg/client/agg_provider.h"
#include "comm/core/communicator.h"
#include "tests/agg/client/fake_tribd.h"

static int joins(struct ranks_self *self)
{
    struct trib_comm *comm = self->comm;
    static struct trib_agg_provider w;
    static struct fake_tribd f = {.answer = FAKE_REFUSES};
    const uint8_t salt[TRIB_SECRET_BYTES] = {1, 2, 3};
    struct trib_error err = {0};
    char says[120];

    if (self->rank != 0)
        return 0;
    fake_start(self, &f);
    snprintf(comm->cfg.service, sizeof(comm->cfg.service), "127.0.0.1:%d", f.port);
    snprintf(comm->cfg.service_job, sizeof(comm->cfg.service_job), "train-7");
    w.parent = comm;
    trib_agg_provider_make_secret(&w, salt);
    ranks_assert(self, trib_agg_provider_request(&w, &err) == TRIB_ERR_NO_RESOURCE);
    snprintf(says, sizeof(says), "127.0.0.1:%d refuses: all slots are taken", f.port);
    ranks_assert(self, strcmp(trib_error_text(&err), says) == 0);
    trib_control_link_free(w.control_link);
    fake_join(&f);
    const struct trib_control_join *j = &f.join;
    ranks_assert(self, strcmp(j->job, "train-7") == 0 && j->user[0]);
    ranks_assert(self, j->ranks == 3 && j->aggregators == 1 && j->aggregator == 0);
    ranks_assert(self, j->slots == 3u * (uint32_t)comm->cfg.window * TRIB_LANES &&
                           j->bytes == (uint64_t)j->slots * comm->cfg.chunk);
    ranks_assert(self, j->tree.n == 0 && strstr(j->settings, "transport=shm "));
    return 0;
}

TEST(test_joins)
{
    assert_int_equal(ranks_run(&(struct ranks_job){
                         .size = 3,
                         .fn = joins,
                         .config = "transport=shm;service_auth=none"}),
                     0);
}

TEST(test_secret)
{
    static struct trib_comm parent;
    static struct trib_agg_provider w = {.parent = &parent},
                                    again = {.parent = &parent};
    const uint8_t salt[TRIB_SECRET_BYTES] = {7, 8, 9}, other[TRIB_SECRET_BYTES] = {1};
    struct trib_error err = {0};
    char why[160];

    trib_agg_provider_make_secret(&w, salt); /* the ranks have no secret */
    assert_memory_equal(w.secret.bytes, salt, sizeof(salt));
    assert_status(trib_secret_make(&parent.secret, &err), TRIB_OK);
    if (!trib_secret_arm(&parent.secret, why, sizeof(why)))
        return; /* built without libsodium */
    trib_agg_provider_make_secret(&w, salt);
    trib_agg_provider_make_secret(&again, salt);
    assert_memory_equal(w.secret.bytes, again.secret.bytes, TRIB_SECRET_BYTES);
    assert_memory_not_equal(w.secret.bytes, salt, TRIB_SECRET_BYTES);
    assert_memory_not_equal(w.secret.bytes, parent.secret.bytes, TRIB_SECRET_BYTES);
    trib_agg_provider_make_secret(&again, other);
    assert_memory_not_equal(w.secret.bytes, again.secret.bytes, TRIB_SECRET_BYTES);
}

/* Ranks that alternate between two racks: a tree has an entry for each change. */
TEST(test_tree_too_long)
{
    enum { RANKS = 6000 };
    static struct trib_comm parent;
    static struct trib_agg_provider w = {.parent = &parent};
    struct trib_error err = {0};

    parent.engine.ranks = RANKS;
    parent.engine.peers = calloc(RANKS, sizeof(*parent.engine.peers));
    trib_log_init(&parent.log, TRIB_LOG_ERROR, NULL, NULL);
    assert_status(trib_config_load(&parent.cfg, NULL, NULL, &err), TRIB_OK);
    snprintf(parent.cfg.service, sizeof(parent.cfg.service),
             "top:1+a:1=rack0+b:1=rack1");
    for (int r = 0; r < RANKS; r++)
        snprintf(parent.engine.peers[r].host, sizeof(parent.engine.peers[r].host),
                 "rack%d", r % 2);
    assert_status(trib_agg_provider_request(&w, &err), TRIB_ERR_OVERFLOW);
    assert_string_equal(trib_error_text(&err),
                        "the ranks alternate between racks too often for a tree of "
                        "aggregators: number the ranks rack by rack");
    assert_null(w.control_link);
    free(parent.engine.peers);
}
