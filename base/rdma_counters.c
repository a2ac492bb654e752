/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rdma_counters.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define CLASS "/sys/class/infiniband"
#define PORTS_MAX 255

struct row {
    const char *name, *files, *help;
    bool is_trouble;
};

static const struct row rows[TRIB_RDMA_COUNTERS] = {
#define X(id, name, files, is_trouble, help) {#name, files, help, is_trouble},
#include "base/rdma_counters.def"
};

const char *trib_rdma_counter_name(enum trib_rdma_counter counter)
{
    assert((unsigned)counter < TRIB_RDMA_COUNTERS);
    return rows[counter].name;
}

const char *trib_rdma_counter_help(enum trib_rdma_counter counter)
{
    assert((unsigned)counter < TRIB_RDMA_COUNTERS);
    return rows[counter].help;
}

uint64_t trib_rdma_counter_growth(const struct trib_rdma_counters *before,
                                  const struct trib_rdma_counters *after,
                                  enum trib_rdma_counter counter)
{
    const uint64_t from = before->count[counter], to = after->count[counter];

    assert((unsigned)counter < TRIB_RDMA_COUNTERS);
    return before->has[counter] && after->has[counter] && to > from ? to - from : 0;
}

bool trib_rdma_counter_is_trouble(enum trib_rdma_counter counter)
{
    assert((unsigned)counter < TRIB_RDMA_COUNTERS);
    return rows[counter].is_trouble;
}

/* Read a file with one number; false: it is absent, or has no number, as for a virtual
 * function. */
static bool read_number(const char *root, const char *path, uint64_t *out)
{
    char text[32], *end;

    if (!trib_file_line(root, path, text, sizeof(text)) || *text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

/* Read the counter `name` of a port; some drivers count for the whole device. */
static bool read_counter(const char *root, const struct trib_rdma_counters *at,
                         const char *name, size_t len, uint64_t *out)
{
    char path[256];

    snprintf(path, sizeof(path), CLASS "/%s/ports/%d/hw_counters/%.*s", at->device,
             at->port, (int)len, name);
    if (read_number(root, path, out))
        return true;
    snprintf(path, sizeof(path), CLASS "/%s/ports/%d/counters/%.*s", at->device,
             at->port, (int)len, name);
    if (read_number(root, path, out))
        return true;
    snprintf(path, sizeof(path), CLASS "/%s/hw_counters/%.*s", at->device, (int)len,
             name);
    return read_number(root, path, out);
}

bool trib_rdma_counters_read(const char *root, const char *device, int port,
                             struct trib_rdma_counters *out)
{
    char path[160], state[32];
    bool any = false;

    memset(out, 0, sizeof(*out));
    if (strchr(device, '/') || device[0] == '.')
        return false;
    snprintf(out->device, sizeof(out->device), "%.63s", device);
    out->port = port;
    snprintf(path, sizeof(path), CLASS "/%s/ports/%d/state", out->device, port);
    if (!trib_file_line(root, path, state, sizeof(state)))
        return false;
    for (int i = 0; i < TRIB_RDMA_COUNTERS; i++) {
        const char *name = rows[i].files;
        while (*name && !out->has[i]) {
            const size_t len = strcspn(name, " ");
            out->has[i] = read_counter(root, out, name, len, &out->count[i]);
            name += len + (name[len] == ' ');
        }
        any |= out->has[i];
    }
    return any;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int trib_rdma_counters_all(const char *root, struct trib_rdma_counters *out, int max)
{
    struct dirent **list = NULL;
    char path[512];
    int n = 0;

    snprintf(path, sizeof(path), "%.400s" CLASS, root);
    const int devices = scandir(path, &list, not_hidden, alphasort);
    for (int i = 0; i < devices; i++) {
        for (int port = 1; port <= PORTS_MAX && n < max; port++) {
            if (!trib_rdma_counters_read(root, list[i]->d_name, port, &out[n]))
                break;
            n++;
        }
        free(list[i]);
    }
    free(list);
    return n;
}

int trib_rdma_counters_grown(const struct trib_rdma_counters *before,
                             const struct trib_rdma_counters *after, char *text,
                             size_t bytes)
{
    int n = 0;

    text[0] = '\0';
    for (int i = 0; i < TRIB_RDMA_COUNTERS; i++) {
        const uint64_t growth =
            trib_rdma_counter_growth(before, after, (enum trib_rdma_counter)i);
        if (growth)
            trib_text_append(text, bytes, "%s%s +%" PRIu64, n++ ? ", " : "",
                             rows[i].name, growth);
    }
    return n;
}
