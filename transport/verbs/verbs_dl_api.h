/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of libibverbs and librdmacm that the verbs transport calls.
 *
 * The libraries are loaded at run time, so a program built with verbs also starts on
 * hosts without them. Posting and polling (ibv_post_send, ibv_poll_cq, ...) are inline
 * functions that call through struct ibv_context and need no row here.
 */
#ifndef TRANSPORT_VERBS_VERBS_DL_API_H
#define TRANSPORT_VERBS_VERBS_DL_API_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>

/* Remove macros that redirect to newer calls: the original functions are wanted. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define TRIB_VERBS_CALLS(X) \
    X(ibv_get_device_list) \
    X(ibv_free_device_list) \
    X(ibv_open_device) \
    X(ibv_close_device) \
    X(ibv_query_device) \
    X(ibv_query_port) \
    X(ibv_query_pkey) \
    X(ibv_alloc_pd) \
    X(ibv_dealloc_pd) \
    X(ibv_reg_mr) \
    X(ibv_dereg_mr) \
    X(ibv_create_comp_channel) \
    X(ibv_destroy_comp_channel) \
    X(ibv_create_cq) \
    X(ibv_destroy_cq) \
    X(ibv_get_cq_event) \
    X(ibv_ack_cq_events) \
    X(ibv_create_srq) \
    X(ibv_destroy_srq) \
    X(ibv_create_qp) \
    X(ibv_modify_qp) \
    X(ibv_destroy_qp) \
    X(ibv_get_async_event) \
    X(ibv_ack_async_event) \
    X(ibv_fork_init)

#define TRIB_RDMACM_CALLS(X) \
    X(rdma_create_event_channel) \
    X(rdma_destroy_event_channel) \
    X(rdma_create_id) \
    X(rdma_destroy_id) \
    X(rdma_bind_addr) \
    X(rdma_listen) \
    X(rdma_set_option) \
    X(rdma_get_src_port) \
    X(rdma_resolve_addr) \
    X(rdma_resolve_route) \
    X(rdma_init_qp_attr) \
    X(rdma_connect) \
    X(rdma_accept) \
    X(rdma_reject) \
    X(rdma_establish) \
    X(rdma_disconnect) \
    X(rdma_migrate_id) \
    X(rdma_get_cm_event) \
    X(rdma_ack_cm_event)

struct trib_memlock;
struct trib_rdma_counters;

struct trib_verbs_api {
#define TRIB_VERBS_CALL(name) __typeof__(&name) name;
    TRIB_VERBS_CALLS(TRIB_VERBS_CALL)
    TRIB_RDMACM_CALLS(TRIB_VERBS_CALL)
#undef TRIB_VERBS_CALL
    /* NULL before rdma-core 25 */
    struct ibv_mr *(*ibv_reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length,
                                      uint64_t iova, int access);
    /* NULL before rdma-core 28. Ignores optional access flags that the kernel does not
     * know. */
    struct ibv_mr *(*ibv_reg_mr_iova2)(struct ibv_pd *pd, void *addr, size_t length,
                                       uint64_t iova, unsigned access);
    /* NULL before rdma-core 34 */
    struct ibv_mr *(*ibv_reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset,
                                        size_t length, uint64_t iova, int fd,
                                        int access);
    enum ibv_fork_status (*ibv_is_fork_initialized)(void); /* NULL before rdma-core
                                                            * 35 */
    __typeof__(&_ibv_query_gid_table) _ibv_query_gid_table; /* NULL before rdma-core
                                                             * 33 */
    char no_rdmacm[200]; /* why librdmacm cannot be used; "": it can */
    void (*memlock)(struct trib_memlock *out); /* trib_memlock_read */
    int (*own_addresses)(uint8_t (*ip_out)[16], int max); /* trib_net_own */
    /* trib_rdma_counters_read, of this host */
    bool (*counters)(const char *device, int port, struct trib_rdma_counters *out);
    /* the default traffic class of a RoCE port; -1: unknown */
    int (*default_tos)(const char *device, int port);
    /* from this thread's CPUs, as trib_numa_distance */
    int (*distance)(const struct ibv_device *device);
};

/**
 * trib_verbs_present - return true if this host may have a device. Reads /sys, which
 * takes microseconds; loading and asking the libraries takes a millisecond.
 *
 * The test harness replaces this function.
 *
 * thread   any
 */
bool trib_verbs_present(void);

/**
 * trib_verbs_load - open both libraries. Without librdmacm its functions are NULL.
 *
 * The test harness replaces this function with one for a device in memory.
 *
 * why      receives a clause that names the missing part of libibverbs
 * thread   any
 */
bool trib_verbs_load(struct trib_verbs_api *api, char *why, size_t bytes);

#endif
