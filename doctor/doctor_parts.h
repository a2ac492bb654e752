/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside trib_doctor: what doctor.c, doctor_consistency.c, doctor_host.c and
 * doctor_pairs.c share.
 */
#ifndef DOCTOR_DOCTOR_PARTS_H
#define DOCTOR_DOCTOR_PARTS_H

#include <sched.h>
#include <stdint.h>

#include "base/host.h"
#include "comm/communicator.h"
#include "doctor/doctor_report.h"
#include "topo/cpus.h"

/* Each rank tells the others this about itself. */
struct trib_card {
    uint64_t machine; /* trib_wireup_machine */
    uint64_t boot;    /* of the running kernel */
    uint64_t network; /* name space; 0: not known */
    uint64_t settings;
    struct trib_cpus cpus; /* on which it may run, and how much */
    int32_t pid;
    char library[12];
    char host[TRIB_HOST_BYTES];
    char links[96]; /* "eth0 1500, eth1 9000": names and MTUs */
    char settings_text[400];
};

struct trib_doctor {
    struct trib_comm comm; /* cfg, log and err only */
    const char *folder;
    struct trib_report report;
    const struct trib_exchange *x;
    int rank;
    int size;
    struct trib_card *cards; /* by rank; [1] while alone */
};

/** trib_doctor_first - the first rank on the same host as `rank`: it speaks for its
 * host. */
int trib_doctor_first(const struct trib_doctor *d, int rank);

/** trib_doctor_compare - hosts, versions, settings, containers, CPUs, by the cards. */
void trib_doctor_compare(struct trib_doctor *d);

/** trib_doctor_judge_clocks - by the seconds that each rank's is ahead of rank 0's. */
void trib_doctor_judge_clocks(struct trib_doctor *d, const double *apart);

/** trib_doctor_host - this host: devices, links, libraries, limits. */
void trib_doctor_host(struct trib_doctor *d);

/** trib_doctor_links - "eth0 1500, eth1 9000": links that are up, with their MTUs. */
void trib_doctor_links(const char *folder, char *text, size_t bytes);

/**
 * trib_doctor_reach - each pair of ranks writes to each other, over each transport.
 *
 * errors   those of the exchange; the sentence is in comm.err
 */
trib_status_t trib_doctor_reach(struct trib_doctor *d);

/** trib_doctor_partner - with whom a rank is paired in a round; itself: with nobody.
 *
 * In the rounds from 0 to trib_doctor_rounds - 1 every rank meets every other once. */
int trib_doctor_partner(int rank, int size, int round);
int trib_doctor_rounds(int size);

#endif
