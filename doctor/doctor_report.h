/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The findings of trib_doctor, as bytes that travel between ranks unchanged.
 */
#ifndef DOCTOR_DOCTOR_REPORT_H
#define DOCTOR_DOCTOR_REPORT_H

#include <pthread.h>
#include <stdbool.h>

#include <tributary/doctor.h>

struct trib_exchange;

/* Findings one after the other: a byte of verdict, then where, topic, text and cure,
 * each with its zero. */
struct trib_report {
    pthread_mutex_t lock; /* threads of boot and transports warn, too */
    const char *where;    /* what trib_report_say gives: "", this host; "*", all
                           * ranks */
    char *bytes;
    size_t len;
    size_t room;
    bool lacks_memory; /* findings have been lost */
};

void trib_report_init(struct trib_report *r);
void trib_report_free(struct trib_report *r);

/** trib_report_add - copies all of it; any thread. */
void trib_report_add(struct trib_report *r, const trib_finding_t *finding);

/**
 * trib_report_say - the same with a printf text.
 *
 * cure     "" where there is none
 */
void trib_report_say(struct trib_report *r, trib_verdict_t verdict, const char *topic,
                     const char *cure, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/**
 * trib_report_next - the finding at *at, which moves behind it; begin with 0.
 *
 * out      points into r
 * returns  false at the end, and at bytes that are none
 */
bool trib_report_next(const struct trib_report *r, size_t *at, trib_finding_t *out);

/** trib_report_worst - the greatest verdict. */
trib_verdict_t trib_report_worst(const struct trib_report *r);

/**
 * trib_report_gather - the reports of all ranks, on all ranks.
 *
 * all      `size` reports that have been initialised
 */
trib_status_t trib_report_gather(const struct trib_report *mine,
                                 const struct trib_exchange *x, int size,
                                 struct trib_report *all);

/* The ranks of one place. */
struct trib_report_place {
    const char *host;
    int first; /* the first rank of that host */
};

/**
 * trib_report_merge - what several hosts found alike, once; places as readers know
 * them.
 *
 * all, places   by rank
 */
void trib_report_merge(const struct trib_report *all,
                       const struct trib_report_place *places, int size,
                       struct trib_report *out);

#endif
