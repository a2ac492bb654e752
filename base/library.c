/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/library.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/host.h"

#define UCX_HOST_BYTES 64

_Static_assert(sizeof(void *) == sizeof(void (*)(void)), "POSIX has both of one size");

/* Signals for which UCX installs crash handlers when loaded. Handling them is the
 * program's decision. */
static const int caught[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};

#define N_CAUGHT (sizeof(caught) / sizeof(caught[0]))

static void *open_uncaught(const char *file)
{
    struct sigaction before[N_CAUGHT];

    for (size_t i = 0; i < N_CAUGHT; i++)
        (void)sigaction(caught[i], NULL, &before[i]);
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < N_CAUGHT; i++)
        (void)sigaction(caught[i], &before[i], NULL);
    return handle;
}

/* UCX copies the host name into 64 bytes when loaded, and aborts if it does not fit. */
static bool would_abort(const char *file)
{
    char host[TRIB_HOST_BYTES];

    return strncmp(file, "libuc", 5) == 0 && trib_host_name(host) &&
           strlen(host) >= UCX_HOST_BYTES;
}

bool trib_library_open(const char *file, const struct trib_symbol *symbols, size_t n,
                       void *table, char *why, size_t bytes)
{
    if (would_abort(file)) {
        snprintf(
            why, bytes,
            "%s ends a process on a host whose name has 64 characters: give the host a "
            "shorter one, or use another transport",
            file);
        return false;
    }
    trib_fd_guard();
    void *handle = open_uncaught(file);
    if (!handle) {
        const char *said = dlerror();
        snprintf(why, bytes, "%s", said ? said : file);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        if (!symbol && !symbols[i].optional) {
            snprintf(why, bytes, "%s: it is too old, it has no %s", file,
                     symbols[i].name);
            return false;
        }
        memcpy((char *)table + symbols[i].at, &symbol, sizeof(symbol));
    }
    return true;
}
