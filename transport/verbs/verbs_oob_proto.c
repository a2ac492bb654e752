/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_oob_proto.h"

#include <string.h>

#define NUMBER_MAX 0xffffffu /* of queue pairs and packet sequence numbers */
#define VERSION_AT offsetof(struct verbs_hello, version)

size_t trib_verbs_oob_request_bytes(const struct verbs_oob_request *request)
{
    return VERBS_OOB_REQUEST_BYTES + request->table.n * sizeof(request->table.gid[0]);
}

static bool head_is_sound(const struct verbs_oob_request *c)
{
    const struct verbs_gid_table *t = &c->table;

    return c->qp_num <= NUMBER_MAX && c->psn <= NUMBER_MAX && t->n <= VERBS_GIDS &&
           (t->layer == VERBS_INFINIBAND || t->layer == VERBS_ETHERNET) &&
           t->mtu >= 1 && t->mtu <= VERBS_MTU_MAX && t->grh <= 1 &&
           (c->pkey & 0x7fff) && c->has_class <= 1 && c->hello.step <= VERBS_BEGINS;
}

static bool gids_are_sound(const struct verbs_gid_table *t)
{
    for (int i = 0; i < t->n; i++) {
        if (t->gid[i].prefix > 128 ||
            !trib_verbs_gid_usable(&t->gid[i], (enum verbs_layer)t->layer))
            return false;
    }
    return true;
}

enum verbs_parsed trib_verbs_oob_request_parse(const uint8_t *bytes, size_t have,
                                               struct verbs_oob_request *out)
{
    const uint32_t magic = VERBS_MAGIC;
    size_t known = have < sizeof(magic) ? have : sizeof(magic);

    memset(out, 0, sizeof(*out));
    if (memcmp(bytes, &magic, known) != 0)
        return VERBS_PARSED_STRANGER;
    memcpy(out, bytes, have < VERBS_OOB_REQUEST_BYTES ? have : VERBS_OOB_REQUEST_BYTES);
    if (have < VERSION_AT + sizeof(out->hello.version))
        return VERBS_PARSED_PART;
    if (out->hello.version != VERBS_VERSION)
        return VERBS_PARSED_VERSION;
    if (have < VERBS_OOB_REQUEST_BYTES)
        return VERBS_PARSED_PART;
    if (!head_is_sound(out) || have > trib_verbs_oob_request_bytes(out)) {
        memset(out, 0, sizeof(*out));
        return VERBS_PARSED_NONSENSE;
    }
    memcpy(out, bytes, have);
    if (have < trib_verbs_oob_request_bytes(out))
        return VERBS_PARSED_PART;
    if (gids_are_sound(&out->table))
        return VERBS_PARSED_ALL;
    memset(out, 0, sizeof(*out));
    return VERBS_PARSED_NONSENSE;
}
