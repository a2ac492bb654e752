/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Form of a rank's next request, which the rank sends ahead of it: the indices of its
 * elements (STORE_INDEX, …) or its codec (STORE_CODEC).
 *
 * Memory whose size depends on a rank's message is charged to the quota before
 * allocation.
 */
#ifndef AGG_STORE_STORE_FORM_H
#define AGG_STORE_STORE_FORM_H

#include "agg/store/store_table.h"

struct trib_codec;
struct trib_words;

/* A growing buffer charged to a quota. */
struct trib_store_memory {
    struct trib_quota *quota; /* or NULL */
    uint8_t *bytes; /* [room] */
    uint64_t room;
};

/**
 * trib_store_memory_grow - grow a buffer to at least `bytes`.
 *
 * rank     the requesting rank, for the message
 * errors   TRIB_ERR_NO_RESOURCE: the quota is exhausted; TRIB_ERR_NO_MEMORY; the buffer
 *          is then unchanged
 */
trib_status_t trib_store_memory_grow(struct trib_store_memory *memory, uint64_t bytes,
                                     uint32_t rank, struct trib_error *err);

/** trib_store_memory_free - free a buffer and return its bytes to the quota. */
void trib_store_memory_free(struct trib_store_memory *memory);

struct trib_store_form {
    const struct trib_store_table *table;
    uint32_t rank;
    bool sparse; /* indices have arrived, perhaps not all */
    bool coded;
    uint32_t vector; /* vector of the indices or the codec */
    uint64_t count; /* number of indices */
    uint64_t done; /* bytes of indices received */
    uint64_t last; /* last index received */
    bool rising; /* indices strictly ascend */
    struct trib_store_memory indices;
    uint64_t bytes; /* bytes of an encoded push */
    char text[TRIB_CONTROL_CODEC_MAX + 1]; /* description of `codec` */
    struct trib_codec *codec; /* latest codec, kept for later requests */
    struct trib_words *words; /* for `words_count` elements */
    uint64_t words_count;
    uint64_t words_memory;
};

/** trib_store_form_end - reset the form after its request. */
void trib_store_form_end(struct trib_store_form *form);

/** trib_store_form_free - free its members. */
void trib_store_form_free(struct trib_store_form *form);

/** trib_store_form_indices - return all indices, as in struct trib_store_table_push;
 * NULL: the request covers all elements, or a range. */
const uint8_t *trib_store_form_indices(const struct trib_store_form *form);

/** trib_store_form_fits - return true if a request for this vector may follow. */
bool trib_store_form_fits(const struct trib_store_form *form, uint32_t vector);

/**
 * trib_store_form_index - receive indices; several messages may carry them.
 *
 * refusal  why the request is refused: if already set, indices are skipped; else this
 *          call may set it
 * errors   TRIB_ERR_PROTOCOL: indices out of order or out of range
 */
trib_status_t trib_store_form_index(struct trib_store_form *form,
                                    const struct trib_control_store_index *m,
                                    struct trib_error *refusal, struct trib_error *err);

/** trib_store_form_codec - receive a codec; arguments and errors as
 * trib_store_form_index. */
trib_status_t trib_store_form_codec(struct trib_store_form *form,
                                    const struct trib_control_store_codec *m,
                                    struct trib_error *refusal, struct trib_error *err);

/** trib_store_form_words - set up form->words for `count` elements, at least 1; errors:
 * as trib_store_memory_grow. */
trib_status_t trib_store_form_words(struct trib_store_form *form, uint64_t count,
                                    struct trib_error *err);

/* Encoded elements of a pull. */
struct trib_store_coded {
    struct trib_store_memory *memory; /* grows to the codec's upper bound */
    uint64_t bytes;
    uint64_t version; /* version of the elements */
};

/**
 * trib_store_form_encode - encode the elements of a pull.
 *
 * errors   TRIB_ERR_UNSUPPORTED: the codec cannot encode pulls; as
 *          trib_store_memory_grow
 */
trib_status_t trib_store_form_encode(struct trib_store_form *form,
                                     const struct trib_control_store_pull *pull,
                                     const struct trib_store_tick *tick,
                                     struct trib_store_coded *out,
                                     struct trib_error *err);

#endif
