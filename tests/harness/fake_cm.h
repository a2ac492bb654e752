/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids of the fake's connection manager and their events: fake_cm_id.c has them,
 * fake_rdmacm.c connects them.
 */
#ifndef TESTS_HARNESS_FAKE_CM_H
#define TESTS_HARNESS_FAKE_CM_H

#include "tests/harness/fake_hub.h"

enum { FAKE_PRIVATE_MAX = 196 };

enum fake_cm_state { IDLE, LISTENING, CALLING, CALLED, ANSWERED, CONNECTED, ENDED };

struct fake_cm_id {
    struct rdma_cm_id base;
    uint32_t number;
    enum fake_cm_state state;
    uint16_t port;
    int to_host, to_device; /* of the resolved address */
    uint8_t to_port;
    int other_process; /* -1: none */
    uint32_t other; /* its number; 0: not known yet */
    uint32_t qp_num, other_qp_num;
    int tos; /* -1: the port's */
    int reported, acked; /* events */
    struct fake_cm_id *next, **at;
    struct fake_cm_id *next_same; /* in its hash bucket, by number */
    struct fake_cm_id *next_child; /* likewise, by caller */
    bool is_child; /* made by a request … */
    uint32_t caller; /* … of the id with this number */
};

struct fake_cm_event {
    struct rdma_cm_event base;
    struct fake_cm_id *counts; /* its destruction waits for the acknowledgement */
    uint8_t bytes[FAKE_PRIVATE_MAX];
    struct fake_cm_event *next;
};

extern struct fake_cm_id *fake_cm_ids;

static inline struct fake_cm_id *fake_cm_id_of(struct rdma_cm_id *id)
{
    return (struct fake_cm_id *)id;
}

/* All functions below are called with the lock held. */

int fake_cm_host(const struct fake_cm_id *id);
struct fake_cm_id *fake_cm_new_id(struct rdma_event_channel *channel, void *context);
/* Disconnect an id from its other side. */
void fake_cm_part(struct fake_cm_id *id);
/* Send a message to the other side of an id. */
void fake_cm_send(struct fake_cm_id *id, struct fake_cm_message cm, const void *data,
                  size_t len);
/* Report an event on the channel of an id. */
struct fake_cm_event *fake_cm_tell(struct fake_cm_id *id, enum rdma_cm_event_type type,
                                   int status);

#endif
