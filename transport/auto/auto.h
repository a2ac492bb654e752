/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of the auto transport, shared by its .c files. The order is bottom to
 * top: each file calls only auto_peer.h and the files listed before it.
 */
#ifndef TRANSPORT_AUTO_AUTO_H
#define TRANSPORT_AUTO_AUTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/auto/auto_peer.h"
#include "transport/op_defaults.h"
#include "transport/open.h"

/* auto_mem.c */
void trib_auto_pinned_limit(struct trib_transport *t, bool near,
                            struct trib_pinned_limit *out);
TRIB_TRANSPORT_MEMORY(trib_auto);
trib_status_t trib_auto_alloc_user(struct trib_transport *t, size_t len, void **ptr_out,
                                   struct trib_region **region_out);
trib_status_t trib_auto_reg_dmabuf(struct trib_transport *t,
                                   const struct trib_dmabuf *d,
                                   struct trib_region **out);
trib_status_t trib_auto_borrow(struct trib_transport *t, void *ptr, size_t len,
                               bool written, struct trib_region **out);
void trib_auto_give_back(struct trib_transport *t, struct trib_region *region,
                         bool broken);
void trib_auto_release_pages(struct trib_transport *t, struct trib_region *region);
void trib_auto_release(struct trib_transport *t, struct trib_remote *remote);
size_t trib_auto_length(struct trib_transport *t, const struct trib_remote *remote);
bool trib_auto_stale(struct trib_transport *t, const struct trib_remote *remote);
void *trib_auto_map(struct trib_transport *t, const struct trib_remote *remote,
                    size_t *len_out);

/** trib_auto_local_region - return an inner's registration of a region. Register the
 * region there if needed. */
struct trib_region *trib_auto_local_region(struct auto_transport *c,
                                           const struct trib_region *region, int inner);

/** trib_auto_move - trib_auto_connect_next, then import the peer's regions
 * again. */
trib_status_t trib_auto_move(struct auto_transport *c, int peer, trib_status_t reason,
                             const char *why);

/** trib_auto_fix_choice - the peer was written to: fix its choice of inner. */
void trib_auto_fix_choice(struct auto_transport *c, int peer);

/** trib_auto_close_inner - close an unneeded inner, unless it owns memory in use. */
void trib_auto_close_inner(struct auto_transport *c, int inner, const char *why);

/** trib_auto_free_memory - free this transport's records; the inners free their own. */
void trib_auto_free_memory(struct auto_transport *c);

/* auto_select.c */
TRIB_TRANSPORT_PEERS(trib_auto);
void trib_auto_connect_many(struct trib_transport *t, struct trib_target *dials, int n);
trib_status_t trib_auto_caps(struct trib_transport *t,
                             const struct trib_address *addresses, uint32_t *caps_out);
void trib_auto_agree(struct trib_transport *t, const uint32_t *caps);
void trib_auto_route(struct trib_transport *t, int peer, struct trib_route *out);

/* auto.c */
/** trib_auto_make - open with the caller's candidates, which outlive the transport. For
 * tests, which bring their own. */
trib_status_t trib_auto_make(const struct trib_candidate *rows,
                             const struct trib_transport_opts *opts,
                             struct trib_transport **out);

#endif
