/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adapters: the devices that this process has open, each once.
 *
 * All communicators, rails and paths of a process share the context of a device: each
 * context takes doorbell pages and event queues of the device, and opening one takes
 * milliseconds. The last user closes it. One thread per adapter reads the asynchronous
 * events and passes each event to all users.
 *
 * Protection domains are shared by transports that trust the same peers. A peer that
 * guesses a 32-bit key can write to all memory of a domain, so a transport with a guard
 * or with another secret has another domain.
 *
 * An adapter whose device has failed keeps its users, but gets no new ones: the device
 * is opened again. So it is after a change of the process's user or group: soft-RoCE
 * posts requests by system calls, which the kernel then refuses on older descriptors.
 *
 * A forked child shares no adapter with its parent. It opens devices again; of its
 * parent's adapters it only frees its copy of the memory.
 *
 * Threads: any thread may call.
 */
#ifndef TRANSPORT_VERBS_VERBS_ADAPTER_H
#define TRANSPORT_VERBS_VERBS_ADAPTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "transport/verbs/verbs_dl_api.h"

/* Identifies the peers that a domain exposes its memory to. */
struct verbs_trust {
    const void *guard; /* of one communicator; or NULL */
    uint8_t secret[8]; /* trib_secret_mark */
};

struct verbs_domain {
    struct ibv_pd *pd;
    struct verbs_trust trust;
    unsigned users;
    LIST_ENTRY(verbs_domain) entry;
    /* private to verbs_cache.c */
    bool is_watched;
    const char *unwatched; /* why memory cannot be watched; or NULL */
};

/* A receiver of asynchronous events. */
struct verbs_event_sink {
    /* Called by the adapter's thread with events of all users' objects, which exist
     * until it returns. event NULL: the device has disappeared */
    void (*handle)(void *arg, const struct ibv_async_event *event);
    void *arg;
    bool listens;
    LIST_ENTRY(verbs_event_sink) entry;
};

struct verbs_adapter {
    struct ibv_context *ibv;
    /* all others: private to verbs_adapter.c */
    struct trib_verbs_api api;
    struct ibv_device *device;
    uid_t uid; /* effective, when it was opened */
    gid_t gid;
    /* guarded by the table's lock */
    unsigned users;
    bool is_opening;
    int error; /* of opening it */
    bool is_parents; /* in a forked child */
    LIST_ENTRY(verbs_adapter) entry;
    _Atomic bool failed; /* the device has; no new users */
    pthread_mutex_t lock; /* guards the fields below */
    LIST_HEAD(, verbs_domain) domains;
    LIST_HEAD(, verbs_event_sink) sinks;
    bool has_reader;
    struct verbs_event_sink *handling; /* has an event now, and must stay; or NULL */
    pthread_cond_t handled; /* `handling` is another one */
    pthread_t reader;
    int stop; /* eventfd */
};

/** trib_verbs_adapter_open - return this process's adapter of a device, which is opened
 * if necessary; NULL: errno has the reason. */
struct verbs_adapter *trib_verbs_adapter_open(const struct trib_verbs_api *api,
                                              struct ibv_device *device);

/** trib_verbs_adapter_close - end a use. */
void trib_verbs_adapter_close(struct verbs_adapter *a);

/** trib_verbs_domain_open - return a protection domain for memory that these peers may
 * write; NULL: errno has the reason. */
struct verbs_domain *trib_verbs_domain_open(struct verbs_adapter *a,
                                            const struct verbs_trust *trust);

/** trib_verbs_domain_close - end a use. The last one requires that the objects of the
 * domain are destroyed, and ends its cache of registrations. */
void trib_verbs_domain_close(struct verbs_adapter *a, struct verbs_domain *d);

/** trib_verbs_adapter_listen - pass all events from now on to a sink. Return an errno
 * if the thread cannot be started. */
int trib_verbs_adapter_listen(struct verbs_adapter *a, struct verbs_event_sink *sink);

/** trib_verbs_adapter_ignore - stop that; waits while this sink, but not while another
 * one, handles an event. Has no effect if the sink does not listen. */
void trib_verbs_adapter_ignore(struct verbs_adapter *a, struct verbs_event_sink *sink);

#endif
