/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: which ports of this host's devices a rank uses.
 *
 * A port takes part if the user's list has it, it is active, it has an address in the
 * user's networks, and its speed is at least a quarter of the fastest such port's. If
 * there are more ports than rails, a rank takes those nearest to its CPUs; ranks of a
 * host take equally near ones in turn.
 */
#ifndef TRANSPORT_VERBS_VERBS_SELECT_H
#define TRANSPORT_VERBS_VERBS_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/verbs.h"

#define VERBS_PORTS_MAX 256 /* of a host, with its virtual functions */

struct verbs_candidate {
    struct verbs_port at; /* number 0: the device cannot be opened */
    bool only; /* the device has no other active port: named without a number */
    uint32_t mbps; /* Mbit/s; 0: unknown */
    int distance; /* from the rank's CPUs, as trib_numa_distance; 0: unknown */
    bool taken;
    char why[240]; /* not taken: reason, a clause such as "not active" */
};

/* All ports of this host. */
struct verbs_ports {
    int n, n_taken;
    /* positions in `of`: the ports that may be used, the preferred ones first */
    int order[VERBS_PORTS_MAX], n_usable;
    struct verbs_candidate of[VERBS_PORTS_MAX];
};

/* What selects the ports of a rank. */
struct verbs_wish {
    const struct verbs_list *list;
    struct verbs *v; /* its library, and trib_verbs_set_choice; it has no device */
    int rails; /* at most */
    int place; /* number of this rank on its host */
};

/**
 * trib_verbs_read_list - parse "mlx5_0:1,mlx5_2", "mlx5_*" or "^mlx5_bond_0".
 *
 * errors   TRIB_ERR_CONFIG: neither a name nor a port; too many; an exact list has a
 *          port twice
 */
trib_status_t trib_verbs_read_list(const char *text, struct verbs_list *out,
                                   struct trib_error *err);

/**
 * trib_verbs_find_ports - list the ports of this host's devices, and choose.
 *
 * errors   TRIB_ERR_CONFIG: an item of a list matches no port; the message lists the
 *          ports. If an item of an excluding list matches none, `log` gets a warning
 */
trib_status_t trib_verbs_find_ports(const struct verbs_wish *wish,
                                    const struct trib_log *log, struct verbs_ports *out,
                                    struct trib_error *err);

/** trib_verbs_candidate_port - return the port as verbs:device= names it. */
struct verbs_port trib_verbs_candidate_port(const struct verbs_candidate *c);

/** trib_verbs_skipped_text - append "fake1:1 (not active), …" for all ports that are
 * not taken. */
void trib_verbs_skipped_text(const struct verbs_ports *ports, char *text, size_t bytes);

#endif
