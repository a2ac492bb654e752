/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run a fuzz target without a fuzzer: over its corpus, then over damaged copies of each
 * input, the same ones every time. Sanitizer builds make this effective.
 *
 *     fuzz_config [FILE]...    default: tests/fuzz/corpus/<name>.tar of the sources
 */
#include <unistd.h>

#include "tests/fuzz/reach.h"
#include "tests/harness/corpus_tar.h"
#include "tests/harness/rng_draw.h"

#define INPUT_MAX_BYTES 65536
#define DAMAGED_COPIES 200

static int inputs, good_inputs;

/* Run on a copy of exactly `size` bytes, so that reads past the end are detected. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        exit(1);
    if (size)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* Cut, flip a bit, or overwrite a byte with an edge value: 1 to 4 times. */
static size_t damage(uint8_t *data, size_t size, uint32_t number)
{
    static const uint8_t edges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    struct trib_rng rng = {.seed = 1, .step = number};
    uint32_t times = 1 + draw_u32(rng, 0) % 4;

    for (uint32_t i = 1; i <= times && size; i++) {
        uint32_t at = draw_u32(rng, 3 * i) % (uint32_t)size;
        uint32_t how = draw_u32(rng, 3 * i + 1);
        uint32_t what = draw_u32(rng, 3 * i + 2);
        if (how % 3 == 0)
            size = at;
        else if (how % 3 == 1)
            data[at] ^= (uint8_t)(1u << what % 8);
        else
            data[at] = edges[what % sizeof(edges)];
    }
    return size;
}

static bool is_good(const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

    return strncmp(name, "good", 4) == 0;
}

/* Run a good input unchanged. Return true if the target counted it. */
static bool run_whole(const char *path, const uint8_t *input, size_t size)
{
    const unsigned before = &fuzz_reached ? fuzz_reached : 0;

    run(input, size);
    if (!is_good(path))
        return true;
    good_inputs++;
    if (&fuzz_reached && fuzz_reached > before)
        return true;
    printf("# %s is good no more: something that it meets first refuses it\n", path);
    return false;
}

/* Run the input unchanged, and its damaged copies. */
static void run_input(void *arg, const char *name, const uint8_t *input, size_t size)
{
    static uint8_t copy[INPUT_MAX_BYTES];
    bool *good = arg;

    if (size > sizeof(copy))
        size = sizeof(copy);
    *good &= run_whole(name, input, size);
    for (uint32_t i = 0; i < DAMAGED_COPIES; i++) {
        memcpy(copy, input, size);
        run(copy, damage(copy, size, i));
    }
    inputs++;
}

static bool run_file(const char *path)
{
    static uint8_t input[INPUT_MAX_BYTES];
    FILE *file = fopen(path, "re");
    bool good = true;

    if (!file)
        return false;
    size_t size = fread(input, 1, sizeof(input), file);
    fclose(file);
    run_input(&good, path, input, size);
    return good;
}

static bool run_corpus(const char *target)
{
    char path[4096];
    bool good = true;

    corpus_path(target, path, sizeof(path));
    if (!corpus_each(path, run_input, &good)) {
        printf("# %s is damaged, or not there\n", path);
        return false;
    }
    if (&fuzz_reached && !good_inputs) {
        puts("# none of its inputs has a name that begins with \"good\"");
        return false;
    }
    return good;
}

int main(int argc, char **argv)
{
    const char *base = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    bool good = true;

    if (!strncmp(base, "lt-", 3))
        base += 3;
    alarm(120);
    run(NULL, 0);
    if (argc < 2)
        good = run_corpus(base);
    for (int i = 1; i < argc; i++)
        good &= run_file(argv[i]);
    printf("1..1\n%s 1 - %s: %d inputs, %d damaged copies of each\n",
           good && inputs ? "ok" : "not ok", base, inputs, DAMAGED_COPIES);
    return good && inputs ? 0 : 1;
}
