/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Findings of trib_doctor, serialized in the form sent between ranks.
 */
#ifndef INSPECT_DOCTOR_DOCTOR_REPORT_H
#define INSPECT_DOCTOR_DOCTOR_REPORT_H

#include <pthread.h>
#include <stdbool.h>

#include <tributary/doctor.h>

struct trib_exchange;

/* Consecutive findings: a byte for the verdict, then where, topic, text and cure, each
 * NUL-terminated. */
struct trib_report {
    pthread_mutex_t lock; /* threads of boot and transports also add warnings */
    const char *where;    /* of trib_report_say: "", this host; "*", all ranks */
    char *bytes;
    size_t len;
    size_t room;
    bool lacks_memory; /* findings were lost */
};

void trib_report_init(struct trib_report *r);
void trib_report_free(struct trib_report *r);

/** trib_report_add - append a copy of the finding; any thread. */
void trib_report_add(struct trib_report *r, const trib_finding_t *finding);

/**
 * trib_report_say - append a finding with a printf text.
 *
 * cure     "" if there is none
 */
void trib_report_say(struct trib_report *r, trib_verdict_t verdict, const char *topic,
                     const char *cure, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/**
 * trib_report_next - return the finding at *at and advance *at; begin with 0.
 *
 * out      points into r
 * returns  false at the end or at invalid bytes
 */
bool trib_report_next(const struct trib_report *r, size_t *at, trib_finding_t *out);

/** trib_report_worst - return the worst verdict. */
trib_verdict_t trib_report_worst(const struct trib_report *r);

/**
 * trib_report_gather - all-gather the reports of all ranks.
 *
 * all      `size` initialised reports
 */
trib_status_t trib_report_gather(const struct trib_report *mine,
                                 const struct trib_exchange *x, int size,
                                 struct trib_report *all);

/* The host of a rank. */
struct trib_report_place {
    const char *host;
    int first; /* the first rank of that host */
};

/**
 * trib_report_merge - merge the reports: findings shared by several hosts appear once,
 * with readable places.
 *
 * all, places  by rank
 */
void trib_report_merge(const struct trib_report *all,
                       const struct trib_report_place *places, int size,
                       struct trib_report *out);

#endif
