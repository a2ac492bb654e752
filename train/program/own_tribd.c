/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/own_tribd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/local_tribd.h"
#include "tools/common/setting_values.h"

enum { PATH_BYTES = 4096, HOST_PORT = 4700 };

struct own_tribd {
    struct tool_tribd tribd;
    bool open; /* without authentication */
};

bool own_tribd_missing(char *why, size_t bytes)
{
    char program[PATH_BYTES];

    if (tool_tribd_find(program, sizeof(program)) ||
        system("command -v tribd >/dev/null") == 0)
        return false;
    snprintf(why, bytes, "program tribd not found next to this one or in PATH");
    return true;
}

/* Return true if the user has configured authentication or sealing. */
static bool must_prove(void)
{
    static const char *const names[] = {"TRIB_SERVICE_AUTH", "TRIB_SERVICE_KEY",
                                        "TRIB_SERVICE_USER", "TRIB_SEAL"};
    char value[PATH_BYTES];
    bool must = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        must |= tool_setting(names[i], value, sizeof(value));
    return must;
}

/* The host on which tribd runs. */
struct place {
    const struct hosts *hosts;
    int host;
};

static int enter(const void *arg)
{
    const struct place *place = arg;

    return hosts_enter(place->hosts, place->host);
}

static bool start(struct own_tribd *d, const struct place *place)
{
    char key[PATH_BYTES], name[32], address[64];
    const bool has_key = tool_setting("TRIB_SERVICE_KEY", key, sizeof(key));
    struct tool_tribd_desc desc = {.tool = "trib-train",
                                   .key = d->open   ? ""
                                          : has_key ? key
                                                    : NULL,
                                   .auth = d->open ? "none" : NULL};

    if (place->hosts) {
        hosts_address(place->host, name, sizeof(name));
        snprintf(address, sizeof(address), "%s:%d", name, HOST_PORT);
        desc.address = address;
        desc.enter = enter;
        desc.arg = place;
    }
    return tool_tribd_start(&desc, &d->tribd) &&
           (!d->tribd.made_key || setenv("TRIB_SERVICE_KEY", d->tribd.key, 1) == 0);
}

int own_tribd_start(const struct hosts *hosts, int host, bool alone,
                    struct own_tribd **tribd_out)
{
    struct own_tribd *d = calloc(1, sizeof(*d));
    char why[128];

    *tribd_out = NULL;
    if (!d) {
        fputs("trib-train: out of memory\n", stderr);
        return -1;
    }
    d->open = alone && !must_prove();
    if (own_tribd_missing(why, sizeof(why)))
        fprintf(stderr, "trib-train: %s\n", why);
    else if (start(d, &(struct place){hosts, host}))
        *tribd_out = d;
    if (*tribd_out)
        return 0;
    own_tribd_end(d);
    return -1;
}

const char *own_tribd_address(const struct own_tribd *tribd)
{
    return tribd->tribd.address;
}

const char *own_tribd_auth(const struct own_tribd *tribd)
{
    return tribd->open ? "none" : NULL;
}

void own_tribd_end(struct own_tribd *tribd)
{
    if (!tribd)
        return;
    if (tribd->tribd.made_key)
        unsetenv("TRIB_SERVICE_KEY");
    tool_tribd_stop(&tribd->tribd);
    free(tribd);
}
