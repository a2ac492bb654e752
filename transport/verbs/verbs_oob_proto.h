/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How ranks ask each other for a connection without the connection manager: a request
 * over a TCP connection, and the reply. See docs/wire-format.md.
 *
 * A request comes from anybody who finds the port.
 */
#ifndef TRANSPORT_VERBS_VERBS_OOB_PROTO_H
#define TRANSPORT_VERBS_VERBS_OOB_PROTO_H

#include <stddef.h>

#include "transport/verbs/verbs_gid_select.h"
#include "transport/verbs/verbs_wire.h"

/* The request; on the wire it ends behind the used entries of the table. */
struct verbs_oob_request {
    struct verbs_hello hello;
    uint32_t qp_num;
    uint32_t psn; /* of the first packet; 24 bits */
    struct verbs_gid_table table;
};
#define VERBS_OOB_REQUEST_BYTES \
    offsetof(struct verbs_oob_request, table.gid) /* without \
                                                   * GIDs */
static_assert(VERBS_OOB_REQUEST_BYTES == 80, "no padding");

struct verbs_oob_reply {
    struct verbs_answer answer; /* stays in its place in every version */
    uint32_t qp_num;
    uint32_t psn;
    uint8_t gid[16]; /* of who replies */
    uint16_t lid;
    uint8_t way; /* enum verbs_way, as who replies sees it */
    uint8_t mtu;
    uint8_t position; /* of the caller's GID in its request */
    uint8_t global;
    uint16_t unused;
};
static_assert(sizeof(struct verbs_oob_reply) == 96, "no padding");

/* The caller's last word: packets get through, the connection is in use. From here on
 * the TCP connection is silent, and its end is the end of a process. */
struct verbs_ready {
    uint32_t magic;
    uint32_t version;
};

enum verbs_parsed {
    VERBS_PARSED_PART, /* more is to come */
    VERBS_PARSED_ALL,
    VERBS_PARSED_STRANGER, /* it does not speak this protocol */
    VERBS_PARSED_VERSION, /* another version of it */
    VERBS_PARSED_NONSENSE, /* values that cannot be */
};

/** trib_verbs_oob_request_bytes - bytes of a request on the wire. */
size_t trib_verbs_oob_request_bytes(const struct verbs_oob_request *request);

/**
 * trib_verbs_oob_request_parse - parse the first `have` bytes of a request, or of
 * anything.
 *
 * out the request, with PART and VERSION as far as it goes; else zero
 * thread   any; pure
 */
enum verbs_parsed trib_verbs_oob_request_parse(const uint8_t *bytes, size_t have,
                                               struct verbs_oob_request *out);

#endif
