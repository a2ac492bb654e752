/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric create FILE [OPTION=NUMBER]...  make a fabric for processes that load the fake
 * fabric show FILE                       print what its ports carried, and misuses
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fake_hub.h"

#define ROW(name) \
    { \
#name, offsetof(struct fake_verbs_opts, name), \
            sizeof(((struct fake_verbs_opts *)0)->name) \
    }
static const struct {
    const char *name;
    size_t at, bytes;
} options[] = {
    ROW(hosts),
    ROW(devices),
    ROW(ports),
    ROW(inline_max),
    ROW(message_max),
    ROW(mtu),
    ROW(max_cqe),
    ROW(max_qp_wr),
    ROW(max_srq_wr),
    ROW(srq_errno),
    ROW(iwarp),
    ROW(late_us),
    ROW(late_peer),
    ROW(rate),
    ROW(delay_us),
    ROW(retry_us),
    ROW(infiniband),
    ROW(lid),
    ROW(no_connection_manager),
};
#undef ROW

static bool set(struct fake_verbs_opts *opts, const char *text)
{
    const char *equal = strchr(text, '=');
    char *end;

    for (size_t i = 0; equal && i < sizeof(options) / sizeof(options[0]); i++) {
        const size_t n = strlen(options[i].name);
        if (n != (size_t)(equal - text) || strncmp(text, options[i].name, n) != 0)
            continue;
        const uint64_t value = strtoull(equal + 1, &end, 0);
        memcpy((char *)opts + options[i].at, &value, options[i].bytes);
        return *end == '\0' && end != equal + 1;
    }
    return false;
}

static int create(char **argv)
{
    if (!fake_hub_create(argv[0])) {
        perror(argv[0]);
        return 1;
    }
    struct fake_verbs_opts *opts = fake_verbs_machine();
    for (char **arg = argv + 1; *arg; arg++)
        if (!set(opts, *arg)) {
            fprintf(stderr, "fabric: %s is no option\n", *arg);
            return 1;
        }
    return 0;
}

static int show(const char *path)
{
    if (!fake_hub_attach(path, 0)) {
        perror(path);
        return 1;
    }
    for (int host = 0; host < fake_opts.hosts; host++)
        for (int device = 0; device < fake_opts.devices; device++)
            for (int port = 0; port < fake_opts.ports; port++)
                printf("host %d device %d port %d: %d requests\n", host, device,
                       port + 1, fake_hub->ports[host][device][port].carried);
    printf("misuses: %d\n", fake_hub->mistakes);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "create") == 0)
        return create(argv + 2);
    if (argc == 3 && strcmp(argv[1], "show") == 0)
        return show(argv[2]);
    fprintf(stderr,
            "usage: fabric create FILE [OPTION=NUMBER]... | fabric show FILE\n");
    return 2;
}
