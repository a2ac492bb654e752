/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rule by which a push changes a vector of a store, as a text and as numbers.
 *
 *     sum                                         x += g
 *     sgd:rate=R[,momentum=M,nesterov=1,decay=D]  g += D x; v = M v + g;
 *                                                 x -= R v, or R (g + M v)
 *     adam:rate=R[,beta1=…,beta2=…,eps=…,decay=D] Adam, with decoupled decay (AdamW)
 *     elastic:pull=A                              c += A (x - c); the pusher's x, too,
 *                                                 moves: x -= A (x - c)
 *
 * Rules compute in float64 and round what is kept once (a sum of two is the same
 * without that). Values and state of a vector of
 * narrow floats are kept in float32, so that small changes are not lost.
 *
 *     paper    momentum: Sutskever et al., ICML 2013, in the form of PyTorch; Adam:
 *              Kingma & Ba, ICLR 2015; its decay: Loshchilov & Hutter, ICLR 2019;
 *              elastic averaging: Zhang, Choromanska & LeCun (EASGD), NeurIPS 2015
 */
#ifndef AGG_STORE_STORE_RULE_H
#define AGG_STORE_STORE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/types.h>

struct trib_error;

enum {
    TRIB_STORE_RULE_TEXT_MAX = 160,
    TRIB_STORE_RULE_PARAMS = 5,
    TRIB_STORE_RULE_STATES =
        2, /* vectors that a rule keeps beside the value, at most */
    TRIB_STORE_RULE_BLOCK = 512, /* elements that a rule computes at a time, at most */
};

/* A rule computes a push block by block, in float64; this is one of its blocks. */
struct trib_store_block {
    size_t n; /* at most TRIB_STORE_RULE_BLOCK */
    double *value; /* [n], changed */
    double *state[TRIB_STORE_RULE_STATES]; /* [n] each, changed */
    double *push; /* [n], what was pushed; becomes what the pusher gets back, if the
                   * rule gives anything but the value */
    double rate; /* rate of this push */
    uint64_t step; /* pushes that the vector has taken, this one included */
};

struct trib_store_param {
    const char *name; /* NULL: there are no more */
    double usual; /* NAN: the text must give it */
    double lowest;
    double highest;
    const char *must; /* "a number from 0 to 1" */
};

/* A kind of rule. */
struct trib_store_rule_row {
    const char *name;
    int states; /* vectors that it keeps */
    bool floats; /* only vectors of floats have it */
    bool rated; /* its first parameter is a rate, which a push may replace */
    bool gives_push; /* the pusher gets `push` back, not the value */
    struct trib_store_param params[TRIB_STORE_RULE_PARAMS + 1];
    /* NULL: what is pushed is added, as the dtype adds. */
    void (*apply)(const double *params, const struct trib_store_block *block);
};

struct trib_store_rule {
    const struct trib_store_rule_row *row;
    double param[TRIB_STORE_RULE_PARAMS];
};

/** trib_store_rules - the rows of all rules; the last has no name. */
extern const struct trib_store_rule_row trib_store_rules[];

/**
 * trib_store_rule_parse - a rule from its text.
 *
 * text     any characters: it comes from another host
 * errors   TRIB_ERR_INVALID with a sentence in err: what, where, the nearest name
 */
trib_status_t trib_store_rule_parse(const char *text, struct trib_error *err,
                                    struct trib_store_rule *out);

/* The functions of the rows: store_apply.c. */
void trib_store_apply_sgd(const double *params, const struct trib_store_block *block);
void trib_store_apply_adam(const double *params, const struct trib_store_block *block);
void trib_store_apply_elastic(const double *params,
                              const struct trib_store_block *block);

/* Numbers of the parameters. */
enum { TRIB_SGD_RATE, TRIB_SGD_MOMENTUM, TRIB_SGD_NESTEROV, TRIB_SGD_DECAY };
enum {
    TRIB_ADAM_RATE,
    TRIB_ADAM_BETA1,
    TRIB_ADAM_BETA2,
    TRIB_ADAM_EPS,
    TRIB_ADAM_DECAY,
};
enum { TRIB_ELASTIC_PULL };

#endif
