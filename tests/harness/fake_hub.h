/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internal declarations of the fake's files: fake_verbs.c is the device,
 * fake_memory.c its memory, fake_cq.c its completion queues, fake_queues.c its queue
 * pairs, fake_rdmacm.c the connection manager. One lock
 * guards all.
 */
#ifndef TESTS_HARNESS_FAKE_HUB_H
#define TESTS_HARNESS_FAKE_HUB_H

#include "tests/harness/fake_verbs.h"
#include "transport/verbs/verbs_dl_api.h"

#define FAKE_DEVICES_MAX 4
#define FAKE_PORTS_MAX 4

extern struct fake_verbs_opts fake_opts;

void fake_lock(void);
void fake_unlock(void);

/* Release the lock until the state changes; false after some seconds. */
bool fake_wait(void);
void fake_changed(void);

/* Called with the lock held. */
void fake_mistake(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_count(int objects);

/* Descriptors that count: fake_ring makes one readable once more, fake_unring less. */
int fake_bell(void);
void fake_ring(int fd);
void fake_unring(int fd);

/* Return the connection manager's context of a device. */
struct ibv_context *fake_shared_context(int device);

/* fake_memory.c: return the region that contains these bytes, or NULL. */
struct ibv_mr *fake_region(const struct ibv_pd *pd, uint32_t key, uint64_t address,
                           uint64_t len);
/** fake_memory - return a pointer to an address of a region. */
void *fake_memory(const struct ibv_mr *mr, uint64_t address);
bool fake_writable(const struct ibv_mr *mr);
void fake_memory_table(struct trib_verbs_api *api);
void fake_memory_reset(void);

/* fake_verbs.c: paths, ports and device events. */
bool fake_path_is_right(const struct ibv_context *context,
                        const struct ibv_ah_attr *path);
int fake_device_of(const struct ibv_context *context);
int fake_mtu_of(const struct ibv_context *context);
bool fake_port_is_up(const struct ibv_context *context, int port);
void fake_raise(struct ibv_context *context, struct ibv_async_event event);

/* fake_cq.c: a completion, and the room that polling it frees in a send queue. */
struct fake_entry {
    struct ibv_wc wc;
    int *outstanding; /* of this send queue, or NULL */
    int covers;
};
void fake_complete(struct ibv_cq *base, const struct fake_entry *entry);
/* Detach the completions of a destroyed send queue; they stay in the queue. */
void fake_cq_forget(struct ibv_cq *base, const int *outstanding);
void fake_cq_ops(struct ibv_context_ops *ops);
void fake_cq_table(struct trib_verbs_api *api);

/* fake_queues.c: return a queue pair of a context, or NULL. */
struct ibv_qp *fake_queue_pair(const struct ibv_context *context);
void fake_queues_run(void);
void fake_queues_ops(struct ibv_context_ops *ops);
void fake_queues_table(struct trib_verbs_api *api);
void fake_queues_reset(void);

void fake_rdmacm_reset(void);
void fake_rdmacm_table(struct trib_verbs_api *api);

#endif
