/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For backends: operations for slots that a backend does not support, and declarations
 * of those that every backend has.
 */
#ifndef TRANSPORT_OP_DEFAULTS_H
#define TRANSPORT_OP_DEFAULTS_H

#include "transport/ops.h"

void trib_no_devices(const char *params, char *text, size_t bytes);
void trib_no_pinned_limit(struct trib_transport *t, bool near,
                          struct trib_pinned_limit *out);
trib_status_t trib_no_caps(struct trib_transport *t,
                           const struct trib_address *addresses, uint32_t *caps_out);
void trib_no_agree(struct trib_transport *t, const uint32_t *caps);
void trib_only_route(struct trib_transport *t, int peer, struct trib_route *out);
void trib_no_connect_many(struct trib_transport *t, struct trib_target *dials, int n);
trib_status_t trib_mapped_reg_dmabuf(struct trib_transport *t,
                                     const struct trib_dmabuf *d,
                                     struct trib_region **out);
void trib_no_release_pages(struct trib_transport *t, struct trib_region *region);
bool trib_no_stale(struct trib_transport *t, const struct trib_remote *remote);
void *trib_no_map(struct trib_transport *t, const struct trib_remote *remote,
                  size_t *len_out);
bool trib_no_reads(struct trib_transport *t, int peer);
trib_status_t trib_no_read(struct trib_transport *t, int peer, uint64_t from, void *to,
                           size_t len);
bool trib_no_detach(struct trib_transport *t, int peer);
int trib_no_event_fd(struct trib_transport *t);
uint64_t trib_no_away(struct trib_transport *t, bool maybe);
void trib_no_trouble(struct trib_transport *t, char *text, size_t bytes);
void trib_no_arm(struct trib_transport *t);

/* Slots of a backend that reaches peers by writes only: it neither maps nor reads peer
 * memory, and no region becomes stale. */
#define TRIB_OPS_WITHOUT_MAPS \
    .caps = trib_no_caps, .agree = trib_no_agree, \
    .release_pages = trib_no_release_pages, .stale = trib_no_stale, \
    .map = trib_no_map, .reads = trib_no_reads, .read = trib_no_read

/* Declare a backend's functions, prefix_address and so on, for the peer and memory
 * slots of these names. */
#define TRIB_TRANSPORT_PEERS(prefix) \
    trib_status_t prefix##_address(struct trib_transport *t, \
                                   struct trib_address *out); \
    trib_status_t prefix##_reach(struct trib_transport *t, int peer, \
                                 const struct trib_address *address); \
    trib_status_t prefix##_connect(struct trib_transport *t, int peer, \
                                   const struct trib_address *address)
#define TRIB_TRANSPORT_MEMORY(prefix) \
    trib_status_t prefix##_alloc(struct trib_transport *t, size_t len, void **ptr_out, \
                                 struct trib_region **region_out); \
    trib_status_t prefix##_reg(struct trib_transport *t, void *ptr, size_t len, \
                               struct trib_region **out); \
    void prefix##_dereg(struct trib_transport *t, struct trib_region *region); \
    trib_status_t prefix##_export(struct trib_transport *t, \
                                  const struct trib_region *region, \
                                  struct trib_blob *out); \
    trib_status_t prefix##_import(struct trib_transport *t, int peer, \
                                  const struct trib_blob *blob, \
                                  struct trib_remote **out)

#endif
