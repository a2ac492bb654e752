/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strategies: what becomes of gradients and parameters at each step. A new one is a
 * file in strategies/ and a row in strategies.def.
 */
#ifndef TRAIN_STRATEGY_H
#define TRAIN_STRATEGY_H

#include <stddef.h>
#include <stdint.h>

#include "base/keyed_text.h"
#include "train/train_sum.h"

struct trib_trainer;
struct trib_step;
struct trib_trainer_stats;
struct trib_estimate;

enum { TRIB_TRAIN_FIELDS = 12, TRIB_TRAIN_SUMS = 64 };

/* What a strategy keeps from step to step, for checkpoints and other communicators. */
struct trib_train_field {
    void *data;
    size_t bytes;
    bool shared; /* the same on all ranks: in a move all get the giver's. Else each rank
                  * keeps its own, and a newcomer's is what create made of the model */
};

/* A move to another communicator, as trainer_move.c has it. */
struct trib_train_move {
    int ranks_before; /* of the communicator that is left */
    int old; /* how many of them go on */
    bool is_new; /* this rank comes */
    char *note; /* [note_bytes] for explain: what was lost; "" at first */
    size_t note_bytes;
};

struct trib_strategy_ops {
    bool apart; /* ranks take steps of their own, each with an optimiser of its own */
    bool sums_changes; /* of parameters: the optimiser has made them already */

    /* Of what the strategy text gives. No optimiser: it has one of its own. */
    const struct trib_keyed_key *keys;
    const double *defaults; /* [n_keys] */
    int n_keys;

    /** create - collective; makes t->strategy, its sums and vectors, which destroy
     * frees, also after an error. */
    trib_status_t (*create)(struct trib_trainer *t);
    void (*destroy)(struct trib_trainer *t);

    /** begin - where to differentiate: step->params, and step->gradient. */
    trib_status_t (*begin)(struct trib_trainer *t, struct trib_step *step);

    /** ready - NULL: the strategy does not look at pieces. */
    trib_status_t (*ready)(struct trib_trainer *t, size_t first, size_t count);
    trib_status_t (*end)(struct trib_trainer *t, double loss);

    /** settle - ends what is under way, collectively, and gives the model. */
    trib_status_t (*settle)(struct trib_trainer *t, float *model_out);

    /** busy - true while something is under way, so that nothing can be saved. */
    bool (*busy)(const struct trib_trainer *t);

    /** fields - what the strategy keeps beside parameters and optimiser; returns how
     * many. NULL: none. */
    int (*fields)(struct trib_trainer *t,
                  struct trib_train_field out[TRIB_TRAIN_FIELDS]);

    /** collect - bring into fields what is kept elsewhere. NULL: nothing is. */
    trib_status_t (*collect)(struct trib_trainer *t);

    /** loaded - collective: take from fields what is kept elsewhere. NULL: nothing. */
    trib_status_t (*loaded)(struct trib_trainer *t);

    /**
     * adopt - look at saved fields, one behind the other, before sums and fields are
     * loaded. NULL: they do not change what sums there are.
     */
    trib_status_t (*adopt)(struct trib_trainer *t, const void *fields);

    /** sums - its sums; returns how many. */
    int (*sums)(struct trib_trainer *t, struct trib_train_sum **out[TRIB_TRAIN_SUMS]);

    /** store_bytes - that it has sent to a store; NULL: it has none. */
    uint64_t (*store_bytes)(const struct trib_trainer *t);

    /** model - what this rank knows of the model without others, into out [count].
     * NULL: t->params. */
    void (*model)(struct trib_trainer *t, float *out);

    /** ahead - the higher, the sooner this rank's parameters are those of a move. NULL:
     * how many of its sums have ended. */
    uint64_t (*ahead)(const struct trib_trainer *t);

    /** moved - collective: complete the strategy in a new communicator, where its
     * fields and sums are. NULL: nothing is left to do. */
    trib_status_t (*moved)(struct trib_trainer *t, const struct trib_train_move *m);

    /** stats - its part of the statistics. NULL: it has none. */
    void (*stats)(struct trib_trainer *t, struct trib_trainer_stats *stats);

    bool picks; /* it may be given several codecs to choose from: t->codecs */

    /** estimate - as trib_trainer_estimate. NULL: it estimates nothing. */
    trib_status_t (*estimate)(struct trib_trainer *t, size_t row,
                              struct trib_estimate *out, int *chosen_out);

    /** explain - what it does, in words. */
    void (*explain)(const struct trib_trainer *t, char *text, size_t bytes);
};

/* A row of the table: several names may share a strategy, with other defaults. */
struct trib_strategy {
    const char *name;
    const char *summary;
    const struct trib_strategy_ops *ops;
};

/** trib_strategy_at - the row of number i; NULL: there are no more. */
const struct trib_strategy *trib_strategy_at(int i);

struct trib_strategy_choice {
    const struct trib_strategy *row;
    double number[TRIB_KEYED_KEYS];
    uint32_t given; /* bit k: the text gives key k */
    char codec[256]; /* behind the first +; "": none */
};

/**
 * trib_strategy_parse - read a strategy's text.
 *
 * text     NULL: "sync"
 * errors   TRIB_ERR_INVALID with a sentence in err
 */
trib_status_t trib_strategy_parse(const char *text, struct trib_error *err,
                                  struct trib_strategy_choice *out);

#endif
