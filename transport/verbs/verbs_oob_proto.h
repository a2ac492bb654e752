/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection requests over TCP, for ranks without librdmacm (out of band, OOB): a
 * request and its reply. See docs/wire-format.md.
 *
 * Requests are untrusted: any process that finds the port can send them.
 */
#ifndef TRANSPORT_VERBS_VERBS_OOB_PROTO_H
#define TRANSPORT_VERBS_VERBS_OOB_PROTO_H

#include <stddef.h>

#include "transport/verbs/verbs_gid_select.h"
#include "transport/verbs/verbs_wire.h"

/* The request. On the wire it ends after the used entries of `table`. */
struct verbs_oob_request {
    struct verbs_hello hello;
    uint32_t qp_num;
    uint32_t psn; /* of the first packet, 24 bits */
    uint16_t pkey; /* partition of the requester's queue pair */
    uint8_t has_class; /* 1: traffic_class is known */
    uint8_t traffic_class;
    uint32_t unused;
    struct verbs_gid_table table;
};
/* Size of a request without GIDs. */
#define VERBS_OOB_REQUEST_BYTES offsetof(struct verbs_oob_request, table.gid)
static_assert(VERBS_OOB_REQUEST_BYTES == 88, "no padding");

struct verbs_oob_reply {
    struct verbs_answer answer; /* at the same offset in every version */
    uint32_t qp_num;
    uint32_t psn;
    uint8_t gid[16]; /* of the replying side */
    uint16_t lid;
    uint8_t way; /* enum verbs_way, as seen by the replying side */
    uint8_t mtu;
    uint8_t position; /* index of the requester's GID in its request */
    uint8_t global;
    uint8_t has_class; /* as in the request */
    uint8_t traffic_class;
};
static_assert(sizeof(struct verbs_oob_reply) == 96, "no padding");

/* The requester's last message: packets get through and the connection is in use. After
 * it the TCP connection stays idle; its end means that the process has ended. */
struct verbs_ready {
    uint32_t magic;
    uint32_t version;
};

enum verbs_parsed {
    VERBS_PARSED_PART, /* incomplete */
    VERBS_PARSED_ALL,
    VERBS_PARSED_STRANGER, /* another protocol */
    VERBS_PARSED_VERSION, /* another version of the protocol */
    VERBS_PARSED_NONSENSE, /* invalid values */
};

/** trib_verbs_oob_request_bytes - return the size of a request on the wire. */
size_t trib_verbs_oob_request_bytes(const struct verbs_oob_request *request);

/**
 * trib_verbs_oob_request_parse - parse the first `have` bytes of a request. The bytes
 * are untrusted.
 *
 * out      the request; partial for PART and VERSION, zero if invalid
 * thread   any; pure
 */
enum verbs_parsed trib_verbs_oob_request_parse(const uint8_t *bytes, size_t have,
                                               struct verbs_oob_request *out);

#endif
