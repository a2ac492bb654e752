/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/sized.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"

/* Reject implausible sizes: the library would read or write far beyond the struct. */
enum { SIZE_MOST = 65536 };

static size_t size_of(const void *theirs)
{
    size_t size;

    memcpy(&size, theirs, sizeof(size));
    return size;
}

trib_status_t trib_sized_fits(const struct trib_sized *kind, const void *theirs,
                              struct trib_error *err)
{
    const size_t size = size_of(theirs);

    if (size >= kind->least && size <= SIZE_MOST)
        return TRIB_OK;
    return trib_fail(
        err, TRIB_ERR_INVALID,
        "%s.size is %zu, it must be %zu, or %zu and more for programs of older "
        "releases: begin with %s",
        kind->name, size, kind->size, kind->least, kind->init);
}

trib_status_t trib_sized_take(const struct trib_sized *kind, const void *theirs,
                              void *ours, struct trib_error *err)
{
    const size_t size = size_of(theirs);
    const uint8_t *bytes = theirs;
    const trib_status_t st = trib_sized_fits(kind, theirs, err);

    if (st != TRIB_OK)
        return st;
    for (size_t i = kind->size; i < size; i++)
        if (bytes[i])
            return trib_fail(
                err, TRIB_ERR_INVALID,
                "%s.size is %zu, and its byte %zu is not 0, but this library knows "
                "%zu bytes: it is older than the header that the program was built "
                "with, and cannot do what the newer field asks for",
                kind->name, size, i, kind->size);
    memcpy(ours, theirs, size < kind->size ? size : kind->size);
    memcpy(ours, &kind->size, sizeof(kind->size));
    return TRIB_OK;
}

void trib_sized_give(const struct trib_sized *kind, const void *ours, void *theirs)
{
    const size_t size = size_of(theirs);

    memcpy(theirs, ours, size < kind->size ? size : kind->size);
    memcpy(theirs, &size, sizeof(size));
    if (size > kind->size)
        memset((uint8_t *)theirs + kind->size, 0, size - kind->size);
}
