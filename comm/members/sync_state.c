/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Synchronize state that all ranks should share: a rank with the majority's state sends
 * it to the ranks that differ.
 */
#include <assert.h>
#include <stdlib.h>

#include <tributary/elastic.h>

#include "comm/core/communicator.h"
#include "comm/core/gate.h"
#include "comm/core/usual_hash.h"
#include "comm/members/leave.h"
#include "comm/plan/exchange.h"

struct sync {
    struct trib_comm *comm;
    void *state;
    size_t bytes;
    uint64_t usual; /* hash that all ranks should have */
    int source; /* the rank that sends its state */
    int n; /* ranks that receive it */
};

static trib_status_t compare_all(struct sync *s, uint64_t hash)
{
    const int size = s->comm->engine.ranks, members = trib_comm_members(s->comm);
    const uint64_t mine[2] = {hash, s->bytes};
    uint64_t(*all)[2] = calloc((size_t)size, sizeof(*all));
    uint64_t *hashes = calloc((size_t)size, sizeof(*hashes));
    trib_status_t st = TRIB_ERR_NO_MEMORY;

    if (all && hashes)
        st = trib_comm_exchange(s->comm, TRIB_ALLGATHER, mine, sizeof(mine), all);
    for (int r = 0; st == TRIB_OK && r < size; r++) {
        hashes[r] = all[r][0];
        if (all[r][1] != all[0][1])
            st = trib_comm_fail(
                s->comm, TRIB_ERR_PROTOCOL,
                "trib_comm_sync: rank %d passes %llu bytes, rank 0 %llu: pass the same "
                "number on all ranks",
                r, (unsigned long long)all[r][1], (unsigned long long)all[0][1]);
    }
    assert(members > 0 && members <= size);
    if (st == TRIB_OK)
        st = trib_usual_hash(hashes, members, &s->usual);
    s->n = 0;
    for (int r = size - 1; st == TRIB_OK && r >= 0; r--) {
        s->n += hashes[r] != s->usual;
        if (hashes[r] == s->usual && r < members)
            s->source = r;
    }
    free(all);
    free(hashes);
    return st;
}

/* Send the state from the source to the ranks that need it; the others only take part
 * in trib_split. */
static trib_status_t hand_over(struct sync *s, bool gets)
{
    const bool gives = s->source == s->comm->engine.rank;
    struct trib_comm *among;

    assert(!(gives && gets) && s->source < trib_comm_members(s->comm));
    trib_status_t st = trib_split(s->comm, gets || gives ? 0 : -1, gets, &among);

    if (st != TRIB_OK || !among)
        return st;
    st = trib_comm_broadcast(among, 0, s->bytes, s->state);
    if (st == TRIB_OK)
        return trib_free_comm(among);
    st = trib_comm_fail(s->comm, st, "trib_comm_sync: %s", trib_last_error(among));
    trib_comm_dispose(among);
    return st;
}

static trib_status_t sync_state(struct sync *s)
{
    uint64_t hash = trib_hash(s->state, s->bytes, 0);
    trib_status_t st = compare_all(s, hash);

    if (st != TRIB_OK || s->n == 0)
        return st;
    const int n = s->n;
    const uint64_t usual = s->usual;
    st = hand_over(s, hash != usual);
    if (s->comm->engine.failed)
        return st;
    if (hash != usual)
        hash = trib_hash(s->state, s->bytes, 0);
    /* A rank that failed passes a wrong hash, so all ranks are notified. */
    const trib_status_t again = compare_all(s, st == TRIB_OK ? hash : ~usual);
    if (again != TRIB_OK || st != TRIB_OK)
        return st != TRIB_OK ? st : again;
    if (s->n)
        return trib_comm_fail(s->comm, TRIB_ERR_PROTOCOL,
                              "trib_comm_sync: %d rank%s not the state sent by rank %d",
                              s->n, s->n == 1 ? " has" : "s have", s->source);
    s->n = n;
    return TRIB_OK;
}

trib_status_t trib_comm_sync(trib_comm_t *comm, void *state, size_t bytes, int *n_out)
{
    struct sync s = {.comm = comm, .state = state, .bytes = bytes};

    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(comm, "trib_comm_sync");
    if (st != TRIB_OK)
        return st;
    if (!state || !bytes)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "trib_comm_sync: state is NULL or has no bytes");
    trib_gate_enter(comm);
    st = sync_state(&s);
    trib_gate_leave(comm);
    if (st == TRIB_ERR_NO_MEMORY)
        (void)trib_comm_fail(comm, st, "trib_comm_sync: no memory for %d ranks",
                             comm->engine.ranks);
    if (st == TRIB_OK && n_out)
        *n_out = s.n;
    return st;
}
