/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registering memory with an address that peers use for it, its iova.
 *
 * The iova is not an address of this process. The iova of the first byte is its offset
 * in its page, as kernel and adapters require. From 2 MiB on it is the offset in a
 * 2 MiB page, so that the adapter can use large pages. Libraries without
 * ibv_reg_mr_iova only accept addresses; the iova is the address then.
 */
#ifndef TRANSPORT_VERBS_VERBS_IOVA_H
#define TRANSPORT_VERBS_VERBS_IOVA_H

#include "transport/verbs/verbs_dl_api.h"

/* IBV_ACCESS_RELAXED_ORDERING, an optional flag since rdma-core 28. An adapter's writes
 * may then pass each other on their way to memory. The write of a completion passes
 * none of them, and data is read only after its event. */
#define VERBS_RELAXED_ORDERING (1 << 20)

/** trib_verbs_iova - return the iova for memory at ptr. */
uint64_t trib_verbs_iova(const void *ptr, size_t len);

/** trib_verbs_reg_mr - register memory; *iova_out receives the iova of its first byte.
 * Return NULL and set errno on failure. VERBS_RELAXED_ORDERING is ignored where it is
 * not known. */
struct ibv_mr *trib_verbs_reg_mr(const struct trib_verbs_api *api, struct ibv_pd *pd,
                                 void *ptr, size_t len, int access, uint64_t *iova_out);

#endif
