/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Update rules of store vectors, in text and numeric form.
 *
 *     sum                                         x += g
 *     sgd:rate=R[,momentum=M,nesterov=1,decay=D]  g += D x; v = M v + g;
 *                                                 x -= R v, or R (g + M v)
 *     adam:rate=R[,beta1=…,beta2=…,eps=…,decay=D] Adam, with decoupled decay (AdamW)
 *     elastic:pull=A                              c += A (x - c); the pusher's x moves
 *                                                 too: x -= A (x - c)
 *
 * Rules compute in float64 and round each stored number once; for a sum of two numbers
 * the result is the same without float64. Vectors of narrow floats keep value and state
 * in float32, so that small changes are not lost.
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
    TRIB_STORE_RULE_STATES = 2, /* maximum number of state vectors of a rule */
    TRIB_STORE_RULE_BLOCK = 512, /* maximum elements per call of a rule */
};

/* A block of elements of a push, as float64. A rule handles one block at a time. */
struct trib_store_block {
    size_t n; /* at most TRIB_STORE_RULE_BLOCK */
    double *value; /* [n], updated */
    double *state[TRIB_STORE_RULE_STATES]; /* [n] each, updated */
    double *push; /* [n] pushed elements; the rule overwrites them if row->gives_push */
    double rate; /* rate of this push */
    uint64_t step; /* number of pushes, including this one */
};

struct trib_store_param {
    const char *name; /* NULL: end of the list */
    double usual; /* default; NAN: mandatory */
    double lowest;
    double highest;
    const char *must; /* "a number from 0 to 1" */
};

/* A rule. */
struct trib_store_rule_row {
    const char *name;
    int states; /* number of state vectors */
    bool floats; /* requires a vector of floats */
    bool rated; /* its first parameter is a rate, which a push may override */
    bool gives_push; /* the pusher receives `push`, not the value */
    struct trib_store_param params[TRIB_STORE_RULE_PARAMS + 1];
    /* NULL: add the push in the vector's dtype. */
    void (*apply)(const double *params, const struct trib_store_block *block);
};

struct trib_store_rule {
    const struct trib_store_rule_row *row;
    double param[TRIB_STORE_RULE_PARAMS];
};

/** trib_store_rules - table of all rules; the last row has no name. */
extern const struct trib_store_rule_row trib_store_rules[];

/**
 * trib_store_rule_parse - parse the text of a rule.
 *
 * text     any characters: it comes from another host
 * errors   TRIB_ERR_INVALID; the message has the fault, its position and the nearest
 *          name
 */
trib_status_t trib_store_rule_parse(const char *text, struct trib_error *err,
                                    struct trib_store_rule *out);

/* Indices of parameters. */
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
