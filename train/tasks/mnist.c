/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IDX: four bytes {0, 0, type, dimensions}, then one big-endian 32-bit length per
 * dimension, then the elements. Type 8 is an unsigned byte.
 */
#include "train/tasks/mnist.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    IDX_TYPE_U8 = 8,
    IDX_DIMS_MAX = 3,
    /* bounds the image count that a damaged header can claim */
    IDX_COUNT_MAX = 1 << 20,
    PATH_BYTES = 1024,
};

/* A file being read, and where to record an error. */
struct idx_file {
    gzFile gz;
    const char *path;
    struct trib_error *err;
    int dims;
    size_t length[IDX_DIMS_MAX];
};

/* Mean and standard deviation of Fashion-MNIST's training images, for pixels of 0 to
 * 1. */
static const float pixel_mean = 0.2860f;
static const float pixel_deviation = 0.3530f;

static trib_status_t read_exactly(struct idx_file *file, void *to, size_t bytes)
{
    const size_t most = (size_t)1 << 30;
    size_t done = 0;

    while (done < bytes) {
        size_t want = bytes - done < most ? bytes - done : most;
        int got = gzread(file->gz, (char *)to + done, (unsigned)want);

        if (got < 0) {
            int zlib_error;
            const char *text = gzerror(file->gz, &zlib_error);

            return trib_fail(file->err, TRIB_ERR_SYSTEM, "%s: %s", file->path,
                             zlib_error == Z_ERRNO ? strerror(errno) : text);
        }
        if (got == 0)
            return trib_fail(file->err, TRIB_ERR_INVALID,
                             "%s: ends after %zu of %zu bytes", file->path, done,
                             bytes);
        done += (size_t)got;
    }
    return TRIB_OK;
}

static trib_status_t read_shape(struct idx_file *file)
{
    uint8_t head[4 + 4 * IDX_DIMS_MAX];

    const trib_status_t st = read_exactly(file, head, 4 + 4 * (size_t)file->dims);
    if (st != TRIB_OK)
        return st;
    if (head[0] != 0 || head[1] != 0 || head[2] != IDX_TYPE_U8 || head[3] != file->dims)
        return trib_fail(file->err, TRIB_ERR_INVALID,
                         "%s: not an IDX file of bytes in %d dimensions (it begins "
                         "with %02x%02x%02x%02x)",
                         file->path, file->dims, head[0], head[1], head[2], head[3]);
    for (int i = 0; i < file->dims; i++) {
        const uint8_t *p = head + 4 + 4 * i;

        file->length[i] =
            (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | (size_t)p[3];
    }
    return TRIB_OK;
}

static trib_status_t check_shape(const struct idx_file *file)
{
    if (file->length[0] == 0 || file->length[0] > IDX_COUNT_MAX)
        return trib_fail(file->err, TRIB_ERR_INVALID, "%s: %zu items, expected 1 to %d",
                         file->path, file->length[0], IDX_COUNT_MAX);
    if (file->dims == 3 &&
        (file->length[1] != MNIST_ROWS || file->length[2] != MNIST_COLS))
        return trib_fail(file->err, TRIB_ERR_INVALID,
                         "%s: images of %zu x %zu, expected %d x %d", file->path,
                         file->length[1], file->length[2], MNIST_ROWS, MNIST_COLS);
    return TRIB_OK;
}

static uint8_t *read_items(struct idx_file *file)
{
    if (read_shape(file) != TRIB_OK || check_shape(file) != TRIB_OK)
        return NULL;

    size_t bytes = file->length[0] * (file->dims == 3 ? MNIST_PIXELS : 1);
    uint8_t *items = malloc(bytes);
    uint8_t rest;

    if (items == NULL)
        trib_fail(file->err, TRIB_ERR_NO_MEMORY, "%s: no memory for %zu bytes",
                  file->path, bytes);
    else if (read_exactly(file, items, bytes) == TRIB_OK) {
        /* Reading past the last item also makes zlib verify the checksum at the end of
         * the file. */
        if (gzread(file->gz, &rest, 1) == 0)
            return items;
        trib_fail(file->err, TRIB_ERR_INVALID, "%s: damaged, or longer than %zu items",
                  file->path, file->length[0]);
    }
    free(items);
    return NULL;
}

/* Return the items of file->path and set their number, file->length[0]. NULL: error. */
static uint8_t *load_file(struct idx_file *file, int dims)
{
    file->dims = dims;
    errno = 0;
    file->gz = gzopen(file->path, "rb");
    if (file->gz == NULL) {
        trib_fail(file->err, TRIB_ERR_SYSTEM,
                  "%s: %s; install dataset-fashion-mnist or name a folder with --data",
                  file->path, errno != 0 ? strerror(errno) : "no memory");
        return NULL;
    }
    gzbuffer(file->gz, 1 << 17);

    uint8_t *items = read_items(file);

    /* Only gzclose_r detects a file that is truncated inside its checksum. */
    if (gzclose_r(file->gz) != Z_OK && items != NULL) {
        trib_fail(file->err, TRIB_ERR_INVALID, "%s: ends inside its check sum",
                  file->path);
        free(items);
        return NULL;
    }
    return items;
}

static trib_status_t check_labels(const struct mnist *data, const struct idx_file *file)
{
    if (file->length[0] != data->count)
        return trib_fail(file->err, TRIB_ERR_INVALID, "%s: %zu labels for %zu images",
                         file->path, file->length[0], data->count);
    for (size_t i = 0; i < data->count; i++)
        if (data->labels[i] >= MNIST_CLASSES)
            return trib_fail(file->err, TRIB_ERR_INVALID,
                             "%s: label %zu is %d, expected 0 to %d", file->path, i,
                             data->labels[i], MNIST_CLASSES - 1);
    return TRIB_OK;
}

static trib_status_t load(const char *folder, const char *part, struct mnist *data_out,
                          struct trib_error *err)
{
    char path[PATH_BYTES];
    struct idx_file file = {.path = path, .err = err};
    struct mnist data = {0};

    *data_out = data;
    snprintf(path, sizeof(path), "%s/%s-images-idx3-ubyte.gz", folder, part);
    data.images = load_file(&file, 3);
    if (data.images == NULL)
        return err->status;
    data.count = file.length[0];
    snprintf(path, sizeof(path), "%s/%s-labels-idx1-ubyte.gz", folder, part);
    data.labels = load_file(&file, 1);
    if (data.labels == NULL || check_labels(&data, &file) != TRIB_OK) {
        mnist_free(&data);
        return err->status;
    }
    *data_out = data;
    return TRIB_OK;
}

void mnist_free(struct mnist *data)
{
    if (!data->kept) {
        free(data->images);
        free(data->labels);
    }
    *data = (struct mnist){0};
}

/* --- data kept for forked processes --- */

enum { PARTS = sizeof(((struct mnist_kept *)0)->parts) / sizeof(struct mnist) };
static const char *const part_names[PARTS] = {"train", "t10k"};

void mnist_keep(struct mnist_kept *kept, const char *folder)
{
    struct trib_error unused = {0};

    if (folder && strcmp(folder, kept->folder) == 0)
        return;
    kept->folder[0] = '\0';
    for (int i = 0; i < PARTS; i++) {
        kept->parts[i].kept = false;
        mnist_free(&kept->parts[i]);
    }
    if (!folder || strlen(folder) >= sizeof(kept->folder))
        return;
    for (int i = 0; i < PARTS; i++) {
        if (load(folder, part_names[i], &kept->parts[i], &unused) != TRIB_OK)
            return;
        kept->parts[i].kept = true;
    }
    strcpy(kept->folder, folder);
}

trib_status_t mnist_load(const struct mnist_kept *kept, const char *folder,
                         const char *part, struct mnist *data_out,
                         struct trib_error *err)
{
    for (int i = 0; kept && kept->folder[0] && i < PARTS; i++)
        if (strcmp(folder, kept->folder) == 0 && strcmp(part, part_names[i]) == 0) {
            *data_out = kept->parts[i];
            return TRIB_OK;
        }
    return load(folder, part, data_out, err);
}

void mnist_keep_data(struct mnist_kept *kept, const char *data)
{
    mnist_keep(kept, data ? data : MNIST_FOLDER);
}

trib_status_t mnist_load_both(const struct mnist_kept *kept, const char *data,
                              struct mnist *train_out, struct mnist *test_out,
                              struct trib_error *err)
{
    const char *folder = data ? data : MNIST_FOLDER;
    const trib_status_t st = mnist_load(kept, folder, part_names[0], train_out, err);

    return st == TRIB_OK ? mnist_load(kept, folder, part_names[1], test_out, err) : st;
}

static void scale(const uint8_t *image, float *input)
{
    const float factor = 1.0f / (255.0f * pixel_deviation);
    const float shift = -pixel_mean / pixel_deviation;

    for (size_t p = 0; p < MNIST_PIXELS; p++)
        input[p] = factor * (float)image[p] + shift;
}

void mnist_batch(const struct mnist *data, const uint32_t *picks, size_t count,
                 float *inputs, uint8_t *labels)
{
    for (size_t i = 0; i < count; i++) {
        scale(data->images + (size_t)picks[i] * MNIST_PIXELS,
              inputs + i * MNIST_PIXELS);
        labels[i] = data->labels[picks[i]];
    }
}

void mnist_sample(const struct mnist *data, uint32_t pick, struct mnist_sample *out)
{
    memcpy(out->pixels, data->images + (size_t)pick * MNIST_PIXELS, MNIST_PIXELS);
    out->label = data->labels[pick];
}

void mnist_inputs(const struct mnist_sample *samples, size_t count, float *inputs,
                  uint8_t *labels)
{
    for (size_t i = 0; i < count; i++) {
        scale(samples[i].pixels, inputs + i * MNIST_PIXELS);
        labels[i] = samples[i].label;
    }
}
