/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/corpus_tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, FILE_MAX = 1 << 20 };

/* A header of ustar; the fields between are not read. */
struct header {
    char name[100];
    char ids[24];
    char size[12];
    char time[12];
    char sum[8];
    char kind;
    char rest[BLOCK - 157];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

void corpus_path(const char *target, char *path, size_t bytes)
{
    const char *top = getenv("abs_top_srcdir");

    snprintf(path, bytes, "%s/tests/fuzz/corpus/%s.tar", top ? top : ".", target);
}

/* Read one file after its header. */
static bool read_file(FILE *tar, const struct header *h, corpus_fn fn, void *arg)
{
    const size_t size = strtoul(h->size, NULL, 8);
    const size_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;
    char name[sizeof(h->name) + 1];

    if (size > FILE_MAX)
        return false;
    uint8_t *data = malloc(padded ? padded : 1);
    const bool whole = data && fread(data, 1, padded, tar) == padded;
    snprintf(name, sizeof(name), "%.100s", h->name);
    if (whole)
        fn(arg, name, data, size);
    free(data);
    return whole;
}

bool corpus_each(const char *path, corpus_fn fn, void *arg)
{
    FILE *tar = fopen(path, "re");
    struct header h;
    bool whole = tar != NULL;

    /* An archive ends with blocks of zeros. */
    while (whole && (whole = fread(&h, sizeof(h), 1, tar) == 1) && h.name[0])
        whole = h.kind == '0' && read_file(tar, &h, fn, arg);
    if (tar)
        fclose(tar);
    return whole;
}
