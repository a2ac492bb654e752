/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The form of a rank's next request, which it says before it: the elements that it is
 * of (STORE_INDEX, …), or the codec by which they are encoded (STORE_CODEC).
 *
 * Memory that follows from what a rank says is taken from the quota first.
 */
#ifndef AGG_STORE_STORE_FORM_H
#define AGG_STORE_STORE_FORM_H

#include "agg/store/store_table.h"

struct trib_codec;
struct trib_words;

/* Memory that grows, and is of a quota. */
struct trib_store_memory {
    struct trib_quota *quota; /* or NULL */
    uint8_t *bytes; /* [room] */
    uint64_t room;
};

/**
 * trib_store_memory_grow - have at least so many bytes.
 *
 * rank     whose request needs them, for the sentence
 * errors   TRIB_ERR_NO_RESOURCE: the quota has none left; TRIB_ERR_NO_MEMORY; with a
 *          sentence in err, and the memory is as it was
 */
trib_status_t trib_store_memory_grow(struct trib_store_memory *memory, uint64_t bytes,
                                     uint32_t rank, struct trib_error *err);

/** trib_store_memory_free - free it, and give it back to the quota. */
void trib_store_memory_free(struct trib_store_memory *memory);

struct trib_store_form {
    const struct trib_store_table *table;
    uint32_t rank;
    bool sparse; /* indices have come, or begun to */
    bool coded;
    uint32_t vector; /* either is of it */
    uint64_t count; /* of the indices */
    uint64_t done; /* bytes of them that have come */
    uint64_t last; /* the newest one */
    bool rising; /* each is above the one before */
    struct trib_store_memory indices;
    uint64_t bytes; /* of the code words of a push */
    char text[TRIB_CONTROL_CODEC_MAX + 1]; /* of `codec` */
    struct trib_codec *codec; /* the newest one, for requests to come */
    struct trib_words *words; /* for `words_count` elements */
    uint64_t words_count;
    uint64_t words_memory;
};

/** trib_store_form_end - the request of this form is over. */
void trib_store_form_end(struct trib_store_form *form);

/** trib_store_form_free - free what is in it. */
void trib_store_form_free(struct trib_store_form *form);

/** trib_store_form_comes - true if not all indices have come. */
bool trib_store_form_comes(const struct trib_store_form *form);

/** trib_store_form_indices - all indices of the request, as in struct
 * trib_store_table_push; NULL: it is of all elements, or of a range. */
const uint8_t *trib_store_form_indices(const struct trib_store_form *form);

/** trib_store_form_fits - true if a request of this vector may follow. */
bool trib_store_form_fits(const struct trib_store_form *form, uint32_t vector);

/**
 * trib_store_form_index - indices of the rank, which are there when all have come.
 *
 * refusal  why the request is refused: it has one already, which only lets the indices
 *          go by, or it gets one
 * errors   TRIB_ERR_PROTOCOL with a sentence in err: they were not due, or are of no
 *          element of the vector
 */
trib_status_t trib_store_form_index(struct trib_store_form *form,
                                    const struct trib_control_store_index *m,
                                    struct trib_error *refusal, struct trib_error *err);

/** trib_store_form_codec - a codec of the rank; arguments and errors as
 * trib_store_form_index. */
trib_status_t trib_store_form_codec(struct trib_store_form *form,
                                    const struct trib_control_store_codec *m,
                                    struct trib_error *refusal, struct trib_error *err);

/** trib_store_form_words - have form->words for so many elements, at least 1; errors:
 * as trib_store_memory_grow. */
trib_status_t trib_store_form_words(struct trib_store_form *form, uint64_t count,
                                    struct trib_error *err);

/* The elements of a pull as code words. */
struct trib_store_coded {
    struct trib_store_memory *memory; /* grows to what they may take */
    uint64_t bytes;
    uint64_t version; /* of the elements */
};

/**
 * trib_store_form_encode - encode the elements of a pull.
 *
 * errors   TRIB_ERR_UNSUPPORTED: the codec is not for pulls; trib_store_memory_grow
 */
trib_status_t trib_store_form_encode(struct trib_store_form *form,
                                     const struct trib_control_store_pull *pull,
                                     const struct trib_store_tick *tick,
                                     struct trib_store_coded *out,
                                     struct trib_error *err);

#endif
