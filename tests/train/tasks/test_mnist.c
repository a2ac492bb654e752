/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/tasks/mnist.h"

#include <math.h>
#include <zlib.h>

#include "tests/harness/tribtest.h"

enum { N_IMAGES = 3 };

struct fixture {
    char folder[64];
    char images[128];
    char labels[128];
    uint8_t image_file[16 + N_IMAGES * MNIST_PIXELS];
    uint8_t label_file[8 + N_IMAGES];
    struct trib_error err;
    struct mnist data;
    struct mnist_kept kept;
};

static void put_be32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void write_gz(const char *path, const uint8_t *bytes, size_t count)
{
    gzFile file = gzopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)count), count);
    assert_int_equal(gzclose(file), Z_OK);
}

static void write_both(struct fixture *f)
{
    write_gz(f->images, f->image_file, sizeof(f->image_file));
    write_gz(f->labels, f->label_file, sizeof(f->label_file));
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    strcpy(f->folder, "/tmp/trib-mnist-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->images, sizeof(f->images), "%s/train-images-idx3-ubyte.gz", f->folder);
    snprintf(f->labels, sizeof(f->labels), "%s/train-labels-idx1-ubyte.gz", f->folder);
    put_be32(f->image_file, 0x00000803);
    put_be32(f->image_file + 4, N_IMAGES);
    put_be32(f->image_file + 8, MNIST_ROWS);
    put_be32(f->image_file + 12, MNIST_COLS);
    for (size_t i = 0; i < N_IMAGES * MNIST_PIXELS; i++)
        f->image_file[16 + i] = (uint8_t)(i * 7);
    put_be32(f->label_file, 0x00000801);
    put_be32(f->label_file + 4, N_IMAGES);
    for (uint8_t i = 0; i < N_IMAGES; i++)
        f->label_file[8 + i] = (uint8_t)(9 - i);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mnist_keep(&f->kept, NULL);
    mnist_free(&f->data);
    unlink(f->images);
    unlink(f->labels);
    rmdir(f->folder);
    free(f);
    return 0;
}

static int load(struct fixture *f, const char *part, struct mnist *data)
{
    trib_error_clear(&f->err);
    return mnist_load(&f->kept, f->folder, part, data, &f->err);
}

static void expect_error(struct fixture *f, const char *words)
{
    assert_true(load(f, "train", &f->data) < 0);
    if (strstr(f->err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", f->err.text, words);
    assert_null(f->data.images);
    assert_null(f->data.labels);
}

TEST(reads_what_was_written, set_up, tear_down)
{
    struct fixture *f = *state;

    write_both(f);
    assert_int_equal(load(f, "train", &f->data), 0);
    assert_int_equal(f->data.count, N_IMAGES);
    assert_memory_equal(f->data.images, f->image_file + 16, N_IMAGES * MNIST_PIXELS);
    assert_memory_equal(f->data.labels, f->label_file + 8, N_IMAGES);
}

TEST(batch_picks_and_scales, set_up, tear_down)
{
    struct fixture *f = *state;
    const uint32_t picks[] = {2, 0};
    static float inputs[2 * MNIST_PIXELS];
    uint8_t labels[2];

    write_both(f);
    assert_int_equal(load(f, "train", &f->data), 0);
    mnist_batch(&f->data, picks, 2, inputs, labels);
    assert_int_equal(labels[0], 7);
    assert_int_equal(labels[1], 9);
    for (size_t i = 0; i < 2 * MNIST_PIXELS; i++) {
        size_t from = picks[i / MNIST_PIXELS] * MNIST_PIXELS + i % MNIST_PIXELS;
        double want = (f->data.images[from] / 255.0 - 0.2860) / 0.3530;

        assert_true(fabs((double)inputs[i] - want) < 1e-5);
    }
}

/* Link the files of t10k to those of train, or unlink them. */
static void link_tests(const struct fixture *f, bool there)
{
    char path[2][128];

    snprintf(path[0], sizeof(path[0]), "%s/t10k-images-idx3-ubyte.gz", f->folder);
    snprintf(path[1], sizeof(path[1]), "%s/t10k-labels-idx1-ubyte.gz", f->folder);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            there ? link(i ? f->labels : f->images, path[i]) : unlink(path[i]), 0);
}

/* Cached images are read once: they remain available without the files until the cache
 * is freed. A folder with missing files is not cached. */
TEST(keeps_what_it_has_read, set_up, tear_down)
{
    struct fixture *f = *state;
    struct mnist tests;

    write_both(f);
    mnist_keep(&f->kept, f->folder);
    assert_int_equal(load(f, "train", &f->data), 0);
    assert_false(f->data.kept);
    mnist_free(&f->data);
    link_tests(f, true);
    mnist_keep(&f->kept, f->folder);
    link_tests(f, false);
    unlink(f->images);
    unlink(f->labels);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(load(f, "train", &f->data), 0);
        assert_int_equal(load(f, "t10k", &tests), 0);
        assert_memory_equal(f->data.images, f->image_file + 16,
                            N_IMAGES * MNIST_PIXELS);
        assert_memory_equal(tests.labels, f->label_file + 8, N_IMAGES);
        mnist_free(&f->data);
        mnist_free(&tests);
    }
    mnist_keep(&f->kept, NULL);
    expect_error(f, "install dataset-fashion-mnist");
}

TEST(names_a_missing_file, set_up, tear_down)
{
    struct fixture *f = *state;

    expect_error(f, "install dataset-fashion-mnist");
    write_gz(f->images, f->image_file, sizeof(f->image_file));
    expect_error(f, f->labels);
}

TEST(refuses_a_wrong_magic, set_up, tear_down)
{
    struct fixture *f = *state;

    f->image_file[2] = 0x0d;
    write_both(f);
    expect_error(f, "it begins with 00000d03");
}

TEST(refuses_labels_as_images, set_up, tear_down)
{
    struct fixture *f = *state;

    write_gz(f->images, f->label_file, sizeof(f->label_file));
    expect_error(f, "ends after");
}

TEST(refuses_wrong_sizes, set_up, tear_down)
{
    struct fixture *f = *state;

    put_be32(f->image_file + 8, 29);
    write_both(f);
    expect_error(f, "images of 29 x 28, expected 28 x 28");
    put_be32(f->image_file + 8, MNIST_ROWS);
    put_be32(f->image_file + 4, 0xffffffff);
    write_both(f);
    expect_error(f, "4294967295 items, expected 1 to");
    put_be32(f->image_file + 4, 0);
    write_both(f);
    expect_error(f, "0 items");
}

TEST(refuses_short_and_long_data, set_up, tear_down)
{
    struct fixture *f = *state;

    write_both(f);
    write_gz(f->images, f->image_file, sizeof(f->image_file) - 1);
    expect_error(f, "ends after");
    put_be32(f->image_file + 4, N_IMAGES - 1);
    write_gz(f->images, f->image_file, sizeof(f->image_file));
    expect_error(f, "longer than 2 items");
}

TEST(refuses_disagreeing_labels, set_up, tear_down)
{
    struct fixture *f = *state;

    put_be32(f->label_file + 4, N_IMAGES - 1);
    write_gz(f->images, f->image_file, sizeof(f->image_file));
    write_gz(f->labels, f->label_file, sizeof(f->label_file) - 1);
    expect_error(f, "2 labels for 3 images");
    put_be32(f->label_file + 4, N_IMAGES);
    f->label_file[8 + 1] = MNIST_CLASSES;
    write_both(f);
    expect_error(f, "label 1 is 10, expected 0 to 9");
}

/* Every truncation and every flipped byte of the compressed file is rejected. */
TEST(refuses_damage, set_up, tear_down)
{
    struct fixture *f = *state;
    static uint8_t bytes[1 << 16];

    write_both(f);
    FILE *file = fopen(f->labels, "rb");
    size_t length = fread(bytes, 1, sizeof(bytes), file);

    fclose(file);
    for (size_t cut = 0; cut < length; cut++) {
        file = fopen(f->labels, "wb");
        fwrite(bytes, 1, cut, file);
        fclose(file);
        expect_error(f, f->labels);
    }
    /* From the end of gzip's 10-byte head on: deflated data, sum, length. */
    for (size_t i = 10; i < length; i++) {
        bytes[i] ^= 0x55;
        file = fopen(f->labels, "wb");
        fwrite(bytes, 1, length, file);
        fclose(file);
        expect_error(f, f->labels);
        bytes[i] ^= 0x55;
    }
}
