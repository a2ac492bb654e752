/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strategies: how gradients and parameters are combined at each step. To add one, write
 * a file in strategies/ and a row in strategies.def.
 */
#ifndef TRAIN_TRAINER_STRATEGY_H
#define TRAIN_TRAINER_STRATEGY_H

#include <stddef.h>
#include <stdint.h>

#include "base/keyed_text.h"
#include "train/trainer/train_sum.h"

struct trib_trainer;
struct trib_step;
struct trib_trainer_stats;
struct trib_estimate;

enum { TRIB_TRAIN_FIELDS = 12, TRIB_TRAIN_SUMS = 64 };

/* State that a strategy keeps across steps, for checkpoints and moves. */
struct trib_train_field {
    const char *name; /* of its section in checkpoints: at most 16 bytes */
    void *data;
    size_t bytes;
    /* Shared state is the same on all ranks; a move broadcasts that of the source.
     * Other state stays local to its rank; on a newcomer create initialises it from
     * the model. */
    bool shared;
};

/* A vector [count] in a strategy's state. */
struct trib_train_vector {
    size_t at; /* offset of its float * in the state */
    bool peers; /* in memory that peers can access */
    bool params; /* starts as a copy of the parameters; otherwise as 0 */
    bool model; /* this rank's view of the model */
    bool (*when)(const struct trib_trainer *t); /* NULL: always allocated */
};

/* A move to another communicator (trainer_move.c). */
struct trib_train_move {
    int ranks_before; /* size of the old communicator */
    int old; /* how many of its ranks take part */
    bool is_new; /* this rank was not in the old communicator */
    /* [note_bytes] shown by explain: state that was lost; initially "" */
    char *note;
    size_t note_bytes;
};

struct trib_strategy_ops {
    bool apart; /* each rank takes its own steps, with its own optimizer */
    /* the strategy sums parameter changes, after the optimizer was applied */
    bool sums_changes;

    /* Keys of the strategy's text. A strategy without an optimizer key uses the
     * trainer's. */
    const struct trib_keyed_key *keys;
    const double *defaults; /* [n_keys] */
    int n_keys;

    /* t->strategy, allocated with these vectors before create. If the ranks are apart,
     * each step differentiates at vectors[0] and writes the gradient to vectors[1]. */
    size_t state_bytes;
    const struct trib_train_vector *vectors;
    int n_vectors;

    /** create - collective: create the sums and complete t->strategy. The trainer frees
     * sums, vectors and t->strategy, also after an error. destroy frees everything else
     * before; NULL: there is nothing else. */
    trib_status_t (*create)(struct trib_trainer *t);
    void (*destroy)(struct trib_trainer *t);

    /** begin - set step->params, the point at which to differentiate, and
     * step->gradient, if they differ from the vectors above. NULL: nothing to do. */
    trib_status_t (*begin)(struct trib_trainer *t, struct trib_step *step);

    /** ready - accept a range of the gradient. NULL: the strategy ignores ranges. */
    trib_status_t (*ready)(struct trib_trainer *t, size_t first, size_t count);
    trib_status_t (*end)(struct trib_trainer *t, double loss);

    /** finish - collective: finish all pending communication and return the model. */
    trib_status_t (*finish)(struct trib_trainer *t, float *model_out);

    /** busy - return true while communication is pending, which prevents saving. NULL:
     * none is pending between steps. */
    bool (*busy)(const struct trib_trainer *t);

    /** fields - list the state kept in addition to parameters and optimizer; return the
     * number of fields. NULL: none. */
    int (*fields)(struct trib_trainer *t,
                  struct trib_train_field out[TRIB_TRAIN_FIELDS]);

    /** collect - copy state kept elsewhere into the fields. NULL: none is. */
    trib_status_t (*collect)(struct trib_trainer *t);

    /** loaded - collective: restore state kept elsewhere from the fields. NULL: none
     * is. */
    trib_status_t (*loaded)(struct trib_trainer *t);

    /** adopt - inspect a saved field before sums and fields are loaded, and create the
     * sums to load. NULL: the set of sums does not depend on the fields. */
    trib_status_t (*adopt)(struct trib_trainer *t, const char *name, const void *data);

    /** adopted - called after adopt and the load of the sums, also after an error of
     * either. !loaded: return to what was before adopt. NULL if adopt is. */
    void (*adopted)(struct trib_trainer *t, bool loaded);

    /** store_bytes - return the bytes sent to a store. NULL: no store. */
    uint64_t (*store_bytes)(const struct trib_trainer *t);

    /** model - write this rank's view of the model to out [count], without
     * communication. NULL: the vector that is the model, or t->params. */
    void (*model)(struct trib_trainer *t, float *out);

    /** ahead - return this rank's progress: the rank with the highest value gives its
     * parameters in a move. NULL: the number of completed sums. */
    uint64_t (*ahead)(const struct trib_trainer *t);

    /** moved - collective: complete the strategy in the new communicator, after fields
     * and sums have moved. NULL: nothing to do. */
    trib_status_t (*moved)(struct trib_trainer *t, const struct trib_train_move *m);

    /** stats - add the strategy's statistics. NULL: none. */
    void (*stats)(struct trib_trainer *t, struct trib_trainer_stats *stats);

    bool picks; /* accepts several codecs to choose from (t->codecs) */

    /** estimate - as trib_trainer_estimate. NULL: unsupported. */
    trib_status_t (*estimate)(struct trib_trainer *t, size_t row,
                              struct trib_estimate *out, int *chosen_out);

    /** explain - describe the strategy for people. */
    void (*explain)(const struct trib_trainer *t, char *text, size_t bytes);
};

/* A row of the table. Rows may share a strategy under other names and defaults. */
struct trib_strategy {
    const char *name;
    const char *summary;
    const struct trib_strategy_ops *ops;
};

/** trib_strategy_at - return row i; NULL: i is out of range. */
const struct trib_strategy *trib_strategy_at(int i);

struct trib_strategy_choice {
    const struct trib_strategy *row;
    double number[TRIB_KEYED_KEYS];
    uint32_t given; /* bit k: key k is present in the text */
    char codec[256]; /* after the first +; "": none */
};

/**
 * trib_strategy_parse - parse a strategy's text.
 *
 * text     NULL: "sync"
 * errors   TRIB_ERR_INVALID with an error message in err
 */
trib_status_t trib_strategy_parse(const char *text, struct trib_error *err,
                                  struct trib_strategy_choice *out);

#endif
