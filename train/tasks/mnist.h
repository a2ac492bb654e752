/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reader of data sets in the MNIST format: IDX files, optionally compressed by gzip.
 */
#ifndef TRAIN_TASKS_MNIST_H
#define TRAIN_TASKS_MNIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MNIST_FOLDER "/usr/share/datasets/fashion-mnist"

enum {
    MNIST_ROWS = 28,
    MNIST_COLS = 28,
    MNIST_PIXELS = MNIST_ROWS * MNIST_COLS,
    MNIST_CLASSES = 10,
    MNIST_FOLDER_BYTES = 1024,
};

struct mnist {
    size_t count;
    uint8_t *images; /* [count * MNIST_PIXELS], 0 is background */
    uint8_t *labels; /* [count], each below MNIST_CLASSES */
    bool kept; /* the arrays belong to mnist_keep */
};

/* Data that a process shares with the processes it forks. */
struct mnist_kept {
    char folder[MNIST_FOLDER_BYTES]; /* empty: nothing is kept */
    struct mnist parts[2];
};

/**
 * mnist_load - read one part of a data set.
 *
 * kept     data of mnist_keep; used if it is of this folder. NULL: none
 * folder   holds PART-images-idx3-ubyte.gz and PART-labels-idx1-ubyte.gz
 * part     "train" or "t10k"
 * owner    the caller frees *data_out with mnist_free
 * errors   an error message in err; *data_out is then empty
 */
trib_status_t mnist_load(const struct mnist_kept *kept, const char *folder,
                         const char *part, struct mnist *data_out,
                         struct trib_error *err);

/** mnist_free - free the arrays; an empty struct is allowed. */
void mnist_free(struct mnist *data);

/**
 * mnist_keep - read a folder once, for later calls of mnist_load.
 *
 * Processes forked afterwards share the data and do not decompress it again. A folder
 * that cannot be read is not kept; mnist_load then reports the error. Frees the data
 * kept before, whose arrays must not be in use. folder NULL: only free.
 */
void mnist_keep(struct mnist_kept *kept, const char *folder);

/** mnist_keep_data - the same; data NULL: the folder of the package. */
void mnist_keep_data(struct mnist_kept *kept, const char *data);

/** mnist_load_both - read both parts of a folder; NULL: the folder of the package. */
trib_status_t mnist_load_both(const struct mnist_kept *kept, const char *data,
                              struct mnist *train_out, struct mnist *test_out,
                              struct trib_error *err);

/* An image as a self-contained sample, to be sent to other ranks. */
struct mnist_sample {
    uint8_t pixels[MNIST_PIXELS];
    uint8_t label;
};

/** mnist_sample - copy an image to *out. */
void mnist_sample(const struct mnist *data, uint32_t pick, struct mnist_sample *out);

/** mnist_inputs - as mnist_batch, from such samples. */
void mnist_inputs(const struct mnist_sample *samples, size_t count, float *inputs,
                  uint8_t *labels);

/**
 * mnist_batch - convert images to network input: zero mean, unit variance.
 *
 * picks    count indices into data
 * inputs   receives count * MNIST_PIXELS
 * labels   receives count
 */
void mnist_batch(const struct mnist *data, const uint32_t *picks, size_t count,
                 float *inputs, uint8_t *labels);

#endif
