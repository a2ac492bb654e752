/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes sent to the listener of the verbs transport, in two parts: a verdict, and a
 * connection request that is accepted only with valid values, for which a pair of GIDs
 * is found or not.
 */
#include "transport/verbs/verbs_oob_proto.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* complete connection requests */

static void check_pair(const struct verbs_gid_table *own,
                       const struct verbs_gid_table *peer)
{
    struct verbs_pair pair = trib_verbs_pair(own, peer);

    need(pair.way > VERBS_WAY_NONE && pair.way < VERBS_WAYS);
    need(strlen(trib_verbs_way_text(pair.way)) > 0);
    need(!pair.found || (pair.mtu >= 1 && pair.mtu <= 5));
    need(!pair.found || !pair.global || (pair.own < own->n && pair.peer < peer->n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct verbs_oob_request part, call;

    if (size > sizeof(call))
        size = sizeof(call);
    enum verbs_parsed all = trib_verbs_oob_request_parse(data, size, &call);
    for (size_t have = 0; have < size; have += 1 + size / 16) {
        enum verbs_parsed heard = trib_verbs_oob_request_parse(data, have, &part);
        need(heard != VERBS_PARSED_ALL || all == VERBS_PARSED_NONSENSE);
        need(heard != VERBS_PARSED_STRANGER || all == VERBS_PARSED_STRANGER);
    }
    if (all != VERBS_PARSED_ALL)
        return 0;
    need(trib_verbs_oob_request_bytes(&call) == size && call.table.n <= VERBS_GIDS);
    need(memcmp(&call, data, size) == 0);
    need(call.qp_num <= 0xffffff && call.psn <= 0xffffff);
    struct verbs_gid_table other = call.table;
    other.node++;
    for (int i = 0; i < other.n; i++)
        other.gid[i].bytes[15] ^= 0x55;
    check_pair(&other, &call.table);
    check_pair(&call.table, &call.table);
    fuzz_reached++;
    return 0;
}
