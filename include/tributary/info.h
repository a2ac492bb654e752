/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities of this build and this host, codecs, and the state of local ranks.
 */
#ifndef TRIBUTARY_INFO_H
#define TRIBUTARY_INFO_H

#include <tributary/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Release of these headers. trib_version returns the release of the library. */
#define TRIB_VERSION_MAJOR 0
#define TRIB_VERSION_MINOR 1
#define TRIB_VERSION_PATCH 0

/** trib_version - return the release of the library, such as "0.1.0". */
TRIB_API const char *trib_version(void);

/* One item of a list. Strings are valid during the callback. */
typedef struct trib_item {
    const char *name;
    const char *value;  /* a setting's value; a transport's devices; … */
    const char *detail; /* its purpose, one line */
    const char *origin; /* for a setting: default, file, environment or API; else "" */
    const char *unit;   /* unit of the value: "bytes", "KiB", …; "" for none */
    const char *fault;  /* reason why a setting or transport cannot be used; else "" */
} trib_item_t;

typedef void (*trib_item_fn)(void *arg, const trib_item_t *item);

typedef enum trib_list {
    TRIB_LIST_TRANSPORTS, /* with the devices that each finds on this host now */
    TRIB_LIST_ALGORITHMS,
    TRIB_LIST_CODECS,
    TRIB_LIST_CONFIG,
    TRIB_LIST_TOPOLOGY, /* machine, packages, caches, NUMA nodes, cores (hwloc) */
    TRIB_LIST_CPU,      /* vector instruction sets: available and used */
    TRIB_LIST_BOOTS,
    TRIB_LIST_MEMORY, /* memory per peer of a communicator with the current settings;
                       * "memory free" is the free memory of this host now */
} trib_list_t;

/**
 * trib_list_each - call fn for each item of a list, in order of preference.
 *
 * Transports missing from this build come last, with the remedy in item->fault.
 * TRIB_LIST_CONFIG lists all settings, then unknown TRIB_* variables. item->fault
 * describes a problem with the setting, and the value is "" if it could not be read.
 *
 * errors   TRIB_ERR_CONFIG, after all items: trib_init or a collective would fail with
 *          one of the settings; trib_last_error(NULL) says why
 */
TRIB_API trib_status_t trib_list_each(trib_list_t list, trib_item_fn fn, void *arg);

/**
 * trib_codec_check - check whether a codec text is valid.
 *
 * text     receives the error message, at most `bytes` bytes including the terminating
 *          zero; NULL: no message
 * errors   TRIB_ERR_INVALID; TRIB_ERR_CODEC, with a message in text
 */
TRIB_API trib_status_t trib_codec_check(const char *codec, char *text, size_t bytes);

/* A parameter of a codec. Strings are valid during the callback. */
typedef struct trib_codec_param {
    const char *row;      /* owner: "topk", or "natural" in "topk+natural" */
    const char *key;      /* "bucket" */
    const char *value;    /* in this codec; "": none */
    const char *fallback; /* default if the text omits the parameter; "": none */
    const char *range;    /* "8 to 65536, a multiple of 8"; "l2 or max" */
    const char *meaning;
    const char *reserved[2]; /* NULL: room for future fields, because these structs are
                              * array elements */
} trib_codec_param_t;

/* A codec, its grammar and its parameters. Strings are valid during the callback. */
typedef struct trib_codec_sheet {
    const char *row; /* first name in its text: "topk" */
    const char *grammar; /* grammar of the row, as in trib_list_each */
    const char *detail;
    const char *text;      /* canonical text: every parameter spelled out */
    const char *stages[4]; /* names of transform, select, quantise, pack */
    int linear;            /* encoded chunks can be added without decoding */
    int unbiased;          /* E C(x) = x */
    int sparse;            /* sends a selection of the elements */
    int feedback;          /* error feedback is on */
    int learns;            /* learns from the sums of a plan */
    double delta; /* E|C(x) - x|^2 <= (1 - 1/delta) |x|^2; 0: no such bound is
                   * claimed */
    const char *shared; /* data that all ranks must agree on first: "norms of the
                         * buckets"; "": none */
    /* Encoded bytes per element, measured on 65536 normally distributed values. For a
     * learning codec: after learning, including the data shared first, for a vector of
     * 2^20 elements in chunks of TRIB_CHUNK. */
    double bytes;
    double bytes_most;  /* upper bound for any values, before or after learning */
    const char *paper;
    const char *example; /* text of another codec of this row */
    const trib_codec_param_t *params;
    size_t n_params;
    int vote;        /* the result is a majority vote, -1, 0 or 1, and not a sum */
    double error;    /* w of E|C(x) - x|^2 <= w |x|^2 for the values that are sent;
                      * negative: unknown */
    double rounding; /* bound on the relative error of a value; 0: exact, or no bound is
                      * known */
    double least;    /* smallest fraction of the ratio or k elements that a rank may
                      * choose to send; 0: unknown */
} trib_codec_sheet_t;

typedef void (*trib_codec_sheet_fn)(void *arg, const trib_codec_sheet_t *sheet);

/**
 * trib_codec_describe - call fn with the description of a codec.
 *
 * codec    NULL: call fn for each row of the codec table, with its defaults
 * errors   TRIB_ERR_CODEC: the text is invalid; trib_last_error(NULL) says why
 */
TRIB_API trib_status_t trib_codec_describe(const char *codec, trib_codec_sheet_fn fn,
                                           void *arg);

/**
 * trib_feedback_check - check a feedback text, alone and with a codec.
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED, TRIB_ERR_CODEC, with a message in
 *          text
 */
TRIB_API trib_status_t trib_feedback_check(const char *feedback, const char *codec,
                                           char *text, size_t bytes);

/* State of a rank, as trib_ranks_each finds it. Strings are valid during the callback
 * and contain only plain text, whatever the rank wrote. */
typedef struct trib_rank_state {
    int pid; /* in the PID namespace of /proc here */
    int rank;
    int ranks;             /* size of the communicator */
    int root_pid;          /* process of its rank 0; with root_host it identifies a
                            * job */
    const char *host;      /* host of the rank */
    const char *root_host;
    const char *part;      /* "" for the communicator of trib_init; else "split1", … */
    const char *text;      /* summary of the fields below: "allreduce 12, 4 MiB, ring,
                            * transfer, waits for a result of rank 3, 12 s" */
    int stopped;           /* by a signal, or its control group is frozen */
    int failed;            /* the communicator has failed */
    int busy;              /* an operation is running */
    const char *operation; /* "allreduce": the running operation, or the newest */
    const char *algorithm; /* algorithm of the operation */
    const char *plan;      /* label of its plan, or "" */
    const char *phase;     /* "start" or "transfer" while the rank waits, else "" */
    const char *awaits;    /* such as "a contribution" while the rank waits, else "" */
    uint64_t number;       /* number of the operation: the same on all ranks */
    uint64_t bytes;        /* size of its vector */
    int waits_for;         /* a rank; -1: unknown */
    int at_most;           /* age_s is an upper bound */
    double age_s; /* seconds without progress while the rank waits; since the start of
                   * the operation while it is busy; otherwise since its end */
    uint64_t operations; /* finished without error; this and the next two fields may lag
                          * by up to 3 short operations */
    uint64_t sent;       /* bytes */
    uint64_t received;
    uint64_t user; /* user ID of the process; ranks of one job have the same user */
    /* Cache of memory registrations of the process (verbs:cache=): "1.2 GiB of 4.0 GiB
     * registered, 90 hits, 10 misses"; "" if it is off. */
    const char *cache;
} trib_rank_state_t;

typedef void (*trib_rank_state_fn)(void *arg, const trib_rank_state_t *state);

/**
 * trib_ranks_each - call fn for each rank on this host that this user may inspect.
 *
 * Each rank writes its state to a page of shared memory. The call only reads that page,
 * so the rank is not disturbed and may be stopped or hang. Ranks are sorted by job,
 * communicator and rank; at most 4096 per user.
 * pid      0: ranks of all jobs; a rank: ranks of its job; trib-run or another process
 *          that started ranks: ranks of the jobs that it started
 * thread   any; takes some milliseconds, because it scans all processes
 * errors   TRIB_ERR_INVALID: fn is NULL, or pid is negative; TRIB_ERR_SYSTEM: /proc is
 *          missing
 */
TRIB_API trib_status_t trib_ranks_each(int pid, trib_rank_state_fn fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
