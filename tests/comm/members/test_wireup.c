/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wireup: its messages fit boot blobs, differences of settings are named, and ranks
 * know their peers.
 */
#include "base/error.h"
#include "boot/boot.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/members/split.h"
#include "comm/members/wireup.h"
#include "comm/plan/exchange.h"
#include "tests/harness/ranks.h"

TEST(test_messages)
{
    int n = 0;

    for (; trib_wireup_bytes(n) > 0; n++)
        assert_in_range(trib_wireup_bytes(n), 1, TRIB_BOOT_BLOB_MAX);
    assert_int_equal(n, 2);
    assert_true(trib_wireup_machine() == trib_wireup_machine());
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

TEST(test_peers)
{
    ranks_pass(.size = 3, .fn = peers, .config = "transport=shm");
    ranks_pass(.size = 3, .fn = peers, .config = "transport=tcp");
}

enum { FAR = 1000000 }; /* elements, in several rounds of agreements */

/* Note the settings that determine how ranks cut a vector, and how much is in
 * flight. */
static void note_cut(struct ranks_self *self, trib_comm_t *comm, uint64_t *cut)
{
    static float x[FAR];
    trib_plan_t *plan;
    trib_desc_t d = sized(trib_desc_t, .recv = x, .count = FAR, .codec = "int8");

    for (int i = 0; i < FAR; i++)
        x[i] = (float)(self->rank + 1);
    ranks_ok(self, trib_plan_allreduce(comm, &d, &plan));
    cut[0] = (uint64_t)comm->cfg.window;
    cut[1] = comm->cfg.chunk;
    cut[2] = comm->engine.arena.raw_window;
    cut[3] = plan->run.desc.piece;
    cut[4] = plan->run.desc.rounds;
    cut[5] = plan->run.desc.share_lead;
    ranks_step(self, plan);
    for (int i = 0; i < FAR; i++)
        ranks_assert(self, x[i] > 5.9f && x[i] < 6.1f);
    ranks_ok(self, trib_plan_free(plan));
}

/* Forward the messages of a rank as if it were on a separate host. */
static trib_status_t from_afar(void *arg, const char *phase, const void *in,
                               size_t bytes, void *out)
{
    struct trib_comm *parent = arg;
    const uint64_t here = trib_wireup_machine();
    const uint64_t there = here + (uint64_t)parent->engine.rank;
    uint8_t *sent = malloc(bytes);

    (void)phase;
    if (!sent)
        return TRIB_ERR_NO_MEMORY;
    memcpy(sent, in, bytes);
    uint8_t *at = memmem(sent, bytes, &here, sizeof(here));
    if (at)
        memcpy(at, &there, sizeof(there));
    const trib_status_t st =
        trib_comm_exchange(parent, TRIB_ALLGATHER, sent, bytes, out);
    free(sent);
    return st;
}

/* Each rank has measured another round trip: all ranks use the longest. */
static int far(struct ranks_self *self)
{
    static const uint32_t measured[] = {0, 20000, 700};
    const struct trib_child c = {
        .cfg = &self->comm->cfg, .rank = self->rank, .size = self->size, .made = "far"};
    struct trib_exchange x = {from_afar, self->comm};
    uint64_t usual[6], cut[6], all[3][6];
    struct trib_error err = {0};
    trib_comm_t *child;

    note_cut(self, self->comm, usual);
    self->comm->met.round_trip_us = measured[self->rank];
    if (trib_comm_make_child(self->comm, &c, &x, &err, &child) != TRIB_OK)
        ranks_die(self, "%s", trib_error_text(&err));
    ranks_assert(self, child->round_trip_us == 20000);
    note_cut(self, child, cut);
    ranks_assert(self, cut[0] > usual[0] && cut[2] > 0 && cut[5] > usual[5]);
    ranks_ok(self, trib_allgather(child, cut, all, 6, TRIB_U64));
    for (int r = 0; r < 3; r++)
        ranks_assert(self, memcmp(all[r], cut, sizeof(cut)) == 0);
    ranks_ok(self, trib_free_comm(child));
    return 0;
}

TEST(test_far)
{
    ranks_pass(.size = 3, .fn = far, .config = "transport=tcp");
}
