/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the files of this room.
 */
#ifndef INSPECT_DOCTOR_DOCTOR_PARTS_H
#define INSPECT_DOCTOR_DOCTOR_PARTS_H

#include <sched.h>
#include <stdint.h>

#include "base/host.h"
#include "base/rdma_counters.h"
#include "comm/core/communicator.h"
#include "comm/members/wireup.h"
#include "inspect/doctor/doctor_report.h"
#include "topo/cpus.h"

/* Description of a rank, sent to all others. */
struct trib_card {
    uint64_t machine; /* trib_wireup_machine */
    uint64_t boot;    /* of the running kernel */
    uint64_t network; /* network namespace; 0: unknown */
    uint64_t settings;
    struct trib_cpus cpus; /* CPUs available to the rank, with its quota */
    int32_t pid;
    char library[12];
    char host[TRIB_HOST_BYTES];
    char links[96]; /* "eth0 1500, eth1 9000": names and MTUs */
    char settings_text[400];
};

#define TRIB_DOCTOR_COUNTED_PORTS 32

struct trib_doctor {
    struct trib_comm comm; /* cfg, log and err only */
    const char *folder;
    struct trib_report report;
    struct trib_rdma_counters counters[TRIB_DOCTOR_COUNTED_PORTS]; /* at the start */
    int n_counters;
    const struct trib_exchange *x;
    int rank;
    int size;
    struct trib_card *cards; /* by rank; [1] before the rendezvous */
};

/** trib_doctor_first - return the first rank on the same host, which reports for it. */
int trib_doctor_first(const struct trib_doctor *d, int rank);

/** trib_doctor_compare - compare hosts, versions, settings, containers and CPUs. */
void trib_doctor_compare(struct trib_doctor *d);

/** trib_doctor_judge_clocks - judge each rank's clock by its lead over rank 0, in s. */
void trib_doctor_judge_clocks(struct trib_doctor *d, const double *apart);

/** trib_doctor_host - examine this host: devices, links, libraries, limits. */
void trib_doctor_host(struct trib_doctor *d);

/** trib_doctor_counters_begin - report the counters of this host's RDMA ports. */
void trib_doctor_counters_begin(struct trib_doctor *d);

/** trib_doctor_counters_end - warn of counters that have grown since. */
void trib_doctor_counters_end(struct trib_doctor *d);

/** trib_doctor_links - list active links with their MTUs: "eth0 1500, eth1 9000". */
void trib_doctor_links(const char *folder, char *text, size_t bytes);

/**
 * trib_doctor_reach - write between each pair of ranks, over each transport.
 *
 * errors   as the exchange; the message is in comm.err
 */
trib_status_t trib_doctor_reach(struct trib_doctor *d);

/** trib_doctor_partner - return the partner of a rank in a round, or the rank itself if
 * it has none.
 *
 * In rounds 0 to trib_doctor_rounds - 1 each pair of ranks occurs once. */
int trib_doctor_partner(int rank, int size, int round);
int trib_doctor_rounds(int size);

#endif
