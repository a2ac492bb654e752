/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/mpi/preload_list.h"

#include <stdbool.h>
#include <string.h>

#include "bindings/mpi/mpi_settings.h"

static const char separators[] = ": ";

static bool is_module(const char *path, size_t length)
{
    static const char name[] = "/libtributary_mpi-";
    const char *slash = memrchr(path, '/', length);

    return slash && (size_t)(path + length - slash) >= sizeof(name) - 1 &&
           !memcmp(slash, name, sizeof(name) - 1);
}

static bool is_same(const char *path, size_t length, const char *other)
{
    return other && strlen(other) == length && !memcmp(path, other, length);
}

/* Edit in place: another thread may be reading the environment, and setenv would move
 * the variable. */
void tmpi_preload_drop(void)
{
    char *list = tmpi_environment("LD_PRELOAD");
    const char *sanitizer = tmpi_environment("TRIB_MPI_SANITIZER");

    for (char *at = list; at && *at;) {
        const size_t length = strcspn(at, separators);
        const size_t whole = length + (at[length] != 0);
        if (is_module(at, length) || is_same(at, length, sanitizer))
            memmove(at, at + whole, strlen(at + whole) + 1);
        else
            at += whole;
    }
}
