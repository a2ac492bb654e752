/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conformance suite: what every backend must do, decorated or not. A backend is
 * tried by each of its own texts (struct trib_transport_text).
 *
 * Every case is a function that all ranks run. Each rank has a transport that is
 * connected with all others and one region of RIG_LEN bytes, which all have imported.
 */
#ifndef TESTS_TRANSPORT_CONFORMANCE_H
#define TESTS_TRANSPORT_CONFORMANCE_H

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/secret.h"
#include "tests/harness/spawn.h"
#include "transport/open.h"

#define RIG_RANKS_MAX 4
#define RIG_LEN ((size_t)64 << 10)

/* stop_timeout_ms, where a check does not want another: of transports that look into
 * /proc, and of others, for which a thread of a busy machine must answer. */
#define RIG_STOP_MS 300
#define RIG_SILENT_MS 2000
#define RIG_PATIENT_MS 30000

enum {
    ROW_THREADS = TRIB_TEXT_THREADS,
    ROW_MAPS = TRIB_TEXT_MAPS,
    ROW_CMA = TRIB_TEXT_CMA,
    ROW_REMOTE = TRIB_TEXT_REMOTE,
    ROW_SEALED = TRIB_TEXT_SEALED,
    ROW_DECORATED = 256,
    ROW_FOREIGN = 1024, /* of checks: memory that is not the transport's is imported,
                         * which every row can do where the kernel lets it */
    ROW_PATIENT = 2048, /* RIG_PATIENT_MS: the fabric has its own time */
    ROW_DEVICE = 512, /* to register memory takes milliseconds, at least an emulated
                       * one */
};

struct row {
    const char *text;
    unsigned flags;
};

struct check {
    const char *name;
    void (*fn)(struct spawn *s, const struct row *row);
    int ranks;
    unsigned needs; /* flags that the row must have … */
    unsigned without; /* … and must not have */
    bool kills; /* the last rank ends by SIGKILL; others never by a signal */
    bool sleeps; /* almost all of its time: it runs on all rows at once */
};

extern const struct check data_checks[];
extern const struct check life_checks[];
void check_detach(struct spawn *s, const struct row *row);

/* The suite of a test program. */
struct suite {
    const struct row *rows;
    size_t n;
    void (*after)(void); /* each case; may be NULL */
    bool only_data; /* omit life_checks, most of which wait for limits in real time */
};

/** conformance_main - run all checks on all rows; returns what main returns. */
int conformance_main(const struct suite *suite);

struct rig {
    struct spawn *s;
    const struct row *row;
    struct trib_secret secret;
    struct trib_config cfg;
    struct trib_log log;
    struct trib_error err;
    struct trib_transport *t;
    uint8_t *mem;
    struct trib_region *region;
    struct trib_remote *remote[RIG_RANKS_MAX];
};

/** rig_open - open, exchange addresses, connect, allocate, import; false: give up. */
bool rig_open(struct rig *rig, struct spawn *s, const struct row *row);

/** rig_open_len - the same with a region of `len` bytes. */
bool rig_open_len(struct rig *rig, struct spawn *s, const struct row *row, size_t len);

/** rig_open_patient - the same with another stop_timeout_ms. */
bool rig_open_patient(struct rig *rig, struct spawn *s, const struct row *row,
                      int stop_ms);

/** rig_close - wait for all ranks, then close. */
void rig_close(struct rig *rig);

/** rig_drop - close without waiting for anybody. */
void rig_drop(struct rig *rig);

/** rig_swap - export a region, import the same of all others into remote[]. */
bool rig_swap(struct rig *rig, const struct trib_region *region,
              struct trib_remote *remote[RIG_RANKS_MAX]);

/** rig_next - return the next event, of any kind; false after the deadline. */
bool rig_next(struct rig *rig, struct trib_event *event);

/** rig_expect - the next event, which must be of this kind and peer. */
bool rig_expect(struct rig *rig, enum trib_event_kind kind, int peer,
                struct trib_event *event);

/**
 * rig_write - post a write; polls for events while there is no room.
 *
 * Other events are passed to `seen`; NULL: there must be none.
 */
bool rig_write(struct rig *rig, int peer, const struct trib_write *write,
               void (*seen)(void *arg, const struct trib_event *event), void *arg);

/** rig_note - a zero-length write: only the event. */
bool rig_note(struct rig *rig, int peer, uint32_t imm);

/** fill, filled - a pattern that depends on seed and place. */
void fill(uint8_t *bytes, size_t len, uint32_t seed);
bool filled(const uint8_t *bytes, size_t len, uint32_t seed);

#endif
