/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grow a communicator: members and newcomers wire up a bigger one. Members exchange
 * over the old communicator, newcomers with the listening member (boot/newcomers.h).
 * The old communicator is unaffected until the members commit
 * (comm/members/survivors.h).
 */
#ifndef COMM_MEMBERS_GROW_H
#define COMM_MEMBERS_GROW_H

#include <tributary/elastic.h>

#include "boot/newcomers.h"
#include "comm/core/communicator.h"

struct trib_listener {
    struct trib_root *root; /* keeps the port */
    struct trib_listen *listen;
};

/* Sent by a newcomer to describe itself, and by the listener to describe its job. */
struct trib_join_request {
    uint32_t magic; /* TRIB_JOIN_REQUEST_MAGIC */
    uint32_t version; /* TRIB_GROW_VERSION */
    uint64_t settings; /* digest of the settings that must agree */
    char settings_text[400];
};

/* The members' reply to a newcomer that they admit. */
struct trib_admission {
    uint32_t magic; /* TRIB_ADMISSION_MAGIC */
    uint32_t version;
    uint32_t members;
    uint32_t size; /* members and newcomers */
    uint32_t rank; /* of this newcomer */
    uint32_t window; /* effective settings, then requested ones */
    uint32_t window_asked;
    uint32_t has_secret; /* the job has a secret, the listener's */
    uint64_t chunk;
    uint64_t chunk_asked;
    uint64_t identity;
};

#define TRIB_JOIN_REQUEST_MAGIC UINT32_C(0x6b4e7274)
#define TRIB_ADMISSION_MAGIC UINT32_C(0x6d4e7274)
enum { TRIB_GROW_VERSION = 1 };

/** trib_join_request_fill - describe a rank or newcomer with these settings. */
void trib_join_request_fill(const struct trib_config *cfg,
                            struct trib_join_request *out);

/** trib_join_request_fits - trib_join_request_fits_fn for two struct
 * trib_join_request. */
bool trib_join_request_fits(const void *ours, const void *theirs, char *why,
                            size_t bytes);

/** trib_admission_is_sound - return true if the numbers are plausible. */
bool trib_admission_is_sound(const struct trib_admission *a);

/* State of one member's trib_comm_grow call. */
struct trib_grow {
    struct trib_comm *comm;
    struct trib_listen *listen; /* NULL: this rank has no newcomers in this round */
    int host; /* the listening member */
    int n; /* newcomers in this round */
    int members;
    int exchanges;
    bool withholds; /* newcomers do not receive the results of an exchange */
    bool newcomer_failed; /* a newcomer was reported as the cause */
    char *theirs; /* a header and the newcomers' contributions to an exchange */
    struct trib_comm *bigger;
    struct trib_error why;
};

/**
 * trib_comm_wire_bigger - run trib_comm_grow up to the commit.
 *
 * g        has comm; g->bigger stays NULL if no newcomer came or one could not join
 * listener NULL: this rank does not listen
 * errors   the communicator has failed
 */
trib_status_t trib_comm_wire_bigger(struct trib_grow *g, struct trib_listener *listener,
                                    int most, struct trib_error *err);

/** trib_grow_end - end the round and report its result to the newcomers. */
void trib_grow_end(struct trib_grow *g, trib_status_t st, const char *text);

/** trib_comm_join_running - join the job that listens at opts->root; the part of
 * trib_join that does not depend on a service. */
trib_status_t trib_comm_join_running(struct trib_comm *comm, const trib_opts_t *opts);

#endif
