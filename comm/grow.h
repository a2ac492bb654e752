/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator grows: its members and newcomers wire up a bigger one, by exchanges
 * of the members over the old communicator and of the newcomers with the member that
 * listens (boot/newcomers.h). It has no effect on the old communicator whether this
 * succeeds, until the members commit: comm/survivors.h.
 */
#ifndef COMM_GROW_H
#define COMM_GROW_H

#include <tributary/elastic.h>

#include "boot/newcomers.h"
#include "comm/communicator.h"

struct trib_listener {
    struct trib_root *root; /* keeps the port */
    struct trib_listen *listen;
};

/* A newcomer describes itself by this structure, and the listener its job. */
struct trib_knock {
    uint32_t magic; /* TRIB_KNOCK_MAGIC */
    uint32_t version; /* TRIB_GROW_VERSION */
    uint64_t settings; /* digest of those that must agree */
    char settings_text[400];
};

/* The members answer the knock of a newcomer that they take in by this structure. */
struct trib_admission {
    uint32_t magic; /* TRIB_ADMISSION_MAGIC */
    uint32_t version;
    uint32_t members;
    uint32_t size; /* members and newcomers */
    uint32_t rank; /* of this newcomer */
    uint32_t window; /* settings as they have become, and as they were asked for */
    uint32_t window_asked;
    uint32_t has_secret; /* the job has one, that of the listener */
    uint64_t chunk;
    uint64_t chunk_asked;
    uint64_t identity;
};

#define TRIB_KNOCK_MAGIC UINT32_C(0x6b4e7274)
#define TRIB_ADMISSION_MAGIC UINT32_C(0x6d4e7274)
enum { TRIB_GROW_VERSION = 1 };

/** trib_knock_fill - what a rank or a newcomer with these settings says of itself. */
void trib_knock_fill(const struct trib_config *cfg, struct trib_knock *out);

/** trib_knock_fits - as trib_knock_fits_fn, of two struct trib_knock. */
bool trib_knock_fits(const void *ours, const void *theirs, char *why, size_t bytes);

/** trib_admission_is_sound - true if the numbers can be right. */
bool trib_admission_is_sound(const struct trib_admission *a);

/** trib_settings_as_asked - the settings of a communicator before it has fitted slots
 * and chunks to its transport. */
void trib_settings_as_asked(const struct trib_comm *comm, struct trib_config *out);

/* The call of trib_comm_grow of one member. */
struct trib_grow {
    struct trib_comm *comm;
    struct trib_listen *listen; /* NULL: no newcomer of the round is at this rank */
    int host; /* the member that listens */
    int n; /* newcomers of the round */
    int members;
    int exchanges;
    bool withholds; /* the results of an exchange are not told to the newcomers */
    bool newcomer_failed; /* one of them was named as the cause */
    char *theirs; /* a head and what the newcomers give to an exchange */
    struct trib_comm *bigger;
    struct trib_error why;
};

/**
 * trib_comm_wire_bigger - trib_comm_grow up to the commit.
 *
 * g        has comm; g->bigger stays NULL where no newcomer has come, or one could not
 *          join
 * listener NULL: this rank does not listen
 * errors   the communicator has failed
 */
trib_status_t trib_comm_wire_bigger(struct trib_grow *g, struct trib_listener *listener,
                                    int most, struct trib_error *err);

/** trib_grow_end - the round is over: the newcomers hear how it went. */
void trib_grow_end(struct trib_grow *g, trib_status_t st, const char *text);

/** trib_comm_knock - become a rank of the job that listens at opts->root; the part of
 * trib_join that knows of no service. */
trib_status_t trib_comm_knock(struct trib_comm *comm, const trib_opts_t *opts);

#endif
