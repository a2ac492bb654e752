/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities of this build and this machine, for tools and curious programs.
 */
#ifndef TRIBUTARY_INFO_H
#define TRIBUTARY_INFO_H

#include <tributary/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The release of these headers. trib_version is that of the library. */
#define TRIB_VERSION_MAJOR 0
#define TRIB_VERSION_MINOR 1
#define TRIB_VERSION_PATCH 0

/** trib_version - such as "0.1.0". */
TRIB_API const char *trib_version(void);

/* One thing that the library has by name. Strings live as long as the call. */
typedef struct trib_item {
    const char *name;
    const char *value;  /* a setting's value; a transport's devices; … */
    const char *detail; /* one line: what it is for */
    const char *origin; /* a setting: default, file, environment or API; else "" */
    const char *unit;   /* of the value: "bytes", "KiB", …; "" where it has none */
    const char *fault;  /* a setting or transport: why it cannot be used; else "" */
} trib_item_t;

typedef void (*trib_item_fn)(void *arg, const trib_item_t *item);

typedef enum trib_list {
    TRIB_LIST_TRANSPORTS, /* transports and what each finds on this host now */
    TRIB_LIST_ALGORITHMS,
    TRIB_LIST_CODECS,
    TRIB_LIST_CONFIG,
    TRIB_LIST_TOPOLOGY, /* machine, packages, caches, NUMA nodes, cores (hwloc) */
    TRIB_LIST_CPU,      /* vector instruction sets: found and used */
    TRIB_LIST_BOOTS,
    TRIB_LIST_MEMORY, /* what a communicator takes for each peer, by the settings, and
                       * "memory free": what this host has now */
} trib_list_t;

/**
 * trib_list_each - call fn for each item of a list, in order of preference.
 *
 * Transports that this build is without come last, with the cure in item->fault.
 * All settings are listed, then TRIB_* variables that are none; what is wrong
 * with one is in item->fault, and its value is "" where none could be read.
 *
 * errors   TRIB_ERR_CONFIG, after all items: trib_init or a collective would fail with
 *          one of the settings; trib_last_error(NULL) says why
 */
TRIB_API trib_status_t trib_list_each(trib_list_t list, trib_item_fn fn, void *arg);

/**
 * trib_codec_check - is a codec text valid?
 *
 * text     receives at most `bytes` bytes with the final zero; NULL: no sentence
 * errors   TRIB_ERR_INVALID; TRIB_ERR_CODEC puts a sentence into text
 */
TRIB_API trib_status_t trib_codec_check(const char *codec, char *text, size_t bytes);

/* A parameter of a codec. Strings live as long as the call. */
typedef struct trib_codec_param {
    const char *row;      /* whose it is: "topk", or "natural" of "topk+natural" */
    const char *key;      /* "bucket" */
    const char *value;    /* in this codec; "": none */
    const char *fallback; /* where only names are given; "": none */
    const char *range;    /* "8 to 65536, a multiple of 8"; "l2 or max" */
    const char *meaning;
    const char *reserved[2]; /* NULL: they keep the place of fields to come, as these
                              * structs lie one behind the other */
} trib_codec_param_t;

/* A codec, its grammar and its parameters. Strings live as long as the call. */
typedef struct trib_codec_sheet {
    const char *row; /* its first name: "topk" */
    const char *grammar; /* of the row, as for trib_list_each */
    const char *detail;
    const char *text;      /* canonical: every parameter spelled out */
    const char *stages[4]; /* names of transform, select, quantise, pack */
    int linear;            /* words add without decoding */
    int unbiased;          /* E C(x) = x */
    int sparse;            /* it sends a selection of the elements */
    int feedback;          /* error feedback is on */
    int learns;            /* from the sums of a plan */
    double delta; /* E|C(x) - x|^2 <= (1 - 1/delta) |x|^2; 0: no such bound is
                   * claimed */
    const char *shared; /* what all ranks must have first: "norms of the buckets"; "":
                         * nothing */
    /* of a word, an element: measured, of 65536 normal values; of a codec that learns,
     * when it has, with what ranks share first, of a vector of 2^20 elements in chunks
     * of TRIB_CHUNK */
    double bytes;
    double bytes_most;  /* of any values, learned or not */
    const char *paper;
    const char *example; /* the text of another codec of this row */
    const trib_codec_param_t *params;
    size_t n_params;
    int vote;        /* a sum is a vote: -1, 0 or 1 comes out, not a sum */
    double error;    /* w of E|C(x) - x|^2 <= w |x|^2 of the values that are sent;
                      * negative: unknown */
    double rounding; /* the most that a value is off, relative to itself; 0: nothing, or
                      * no such bound is known */
    double least;    /* the part of the ratio or k elements that a rank sends at least,
                      * by its own choice; 0: unknown */
} trib_codec_sheet_t;

typedef void (*trib_codec_sheet_fn)(void *arg, const trib_codec_sheet_t *sheet);

/**
 * trib_codec_describe - call fn with the sheet of a codec.
 *
 * codec    NULL: each row of the table, with its defaults
 * errors   TRIB_ERR_CODEC: trib_last_error(NULL) says what is wrong with the text
 */
TRIB_API trib_status_t trib_codec_describe(const char *codec, trib_codec_sheet_fn fn,
                                           void *arg);

/**
 * trib_feedback_check - is a feedback text valid, and may it go with this codec?
 *
 * errors   TRIB_ERR_INVALID, TRIB_ERR_UNSUPPORTED, TRIB_ERR_CODEC put a sentence into
 *          text
 */
TRIB_API trib_status_t trib_feedback_check(const char *feedback, const char *codec,
                                           char *text, size_t bytes);

/* The state of a rank, as trib_ranks_each finds it. Strings live as long as the call,
 * and are plain text whatever the rank wrote. */
typedef struct trib_rank_state {
    int pid; /* as /proc shows it here */
    int rank;
    int ranks;             /* of the communicator */
    int root_pid;          /* process of its rank 0, on root_host: they name a job */
    const char *host;      /* the rank's */
    const char *root_host;
    const char *part;      /* "" for what trib_init made; "split1" of another one's */
    const char *text;      /* all of the following in a sentence: "allreduce 12, 4 MiB,
                            * ring, transfer, waits for a result of rank 3, 12 s" */
    int stopped;           /* by a signal, or its control group is frozen */
    int failed;            /* the communicator has */
    int busy;              /* an operation is under way */
    const char *operation; /* "allreduce": this one, or the newest */
    const char *algorithm; /* its algorithm */
    const char *plan;      /* label of its plan, or "" */
    const char *phase;     /* "start" or "transfer" while it waits, else "" */
    const char *awaits;    /* "a contribution", and its like, while it waits; else "" */
    uint64_t number;       /* of that operation: the same on all ranks */
    uint64_t bytes;        /* of its vector */
    int waits_for;         /* a rank; -1: none that is known */
    int at_most;           /* age_s is an upper bound */
    double age_s; /* without progress while it waits; since it began while it is busy;
                   * else since it ended */
    uint64_t operations; /* that have ended well; this and the next two know of up to 3
                          * of the newest short operations later */
    uint64_t sent;       /* bytes */
    uint64_t received;
    uint64_t user; /* user ID of the process; ranks of two users are never of one job */
} trib_rank_state_t;

typedef void (*trib_rank_state_fn)(void *arg, const trib_rank_state_t *state);

/**
 * trib_ranks_each - call fn for each rank on this host that this user may look at.
 *
 * A rank writes what it does to a page of memory; this reads the page, and takes
 * nothing from the rank, which may be stopped or hang. Ranks come by job, by
 * communicator, by rank; of one user at most 4096.
 * pid      0: those of all jobs; a rank's: those of its job; trib-run's, or another
 *          process that started ranks: those of the jobs that it started
 * thread   any; takes some milliseconds, as it looks at all processes
 * errors   TRIB_ERR_INVALID: fn is NULL, or pid negative; TRIB_ERR_SYSTEM: there is no
 *          /proc
 */
TRIB_API trib_status_t trib_ranks_each(int pid, trib_rank_state_fn fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
