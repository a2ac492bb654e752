/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that use a store in a separate tribd. */
#ifndef TESTS_AGG_STORE_CLIENT_STORE_RIG_H
#define TESTS_AGG_STORE_CLIENT_STORE_RIG_H

#include "tests/harness/cutting_proxy.h"
#include "tests/harness/daemon.h"
#include "tests/harness/ranks.h"

static trib_vector_t *make(const struct ranks_self *self, trib_store_t *store,
                           const trib_vector_desc_t *d)
{
    trib_vector_t *v = NULL;

    if (trib_store_create(store, d, &v) != TRIB_OK)
        ranks_die(self, "vector %s: %s", d->name, trib_store_error(store));
    return v;
}

static void need(const struct ranks_self *self, const trib_store_t *store,
                 trib_status_t st, const char *what)
{
    if (st != TRIB_OK)
        ranks_die(self, "%s: %s", what, trib_store_error(store));
}

static void refused(const struct ranks_self *self, const trib_store_t *store,
                    trib_status_t st, trib_status_t wanted, const char *words)
{
    if (st != wanted || !strstr(trib_store_error(store), words))
        ranks_die(self, "wanted %s and \"%s\", got %s: %s", trib_status_name(wanted),
                  words, trib_status_name(st), trib_store_error(store));
}

/* Let 1 to 3 ranks run `fn` with a tribd. */
static inline void ranks_on_daemon(int (*fn)(struct ranks_self *self),
                                   const char *transport)
{
    struct daemon_process d = {.threads = 2};
    char config[160];

    daemon_need(&d);
    for (int size = 1; size <= 3; size++) {
        snprintf(config, sizeof(config), "%s;service=127.0.0.1:%d", transport, d.port);
        ranks_pass(.size = size, .fn = fn, .config = config, .seconds = 100);
    }
    daemon_end(&d);
}

/* Let two ranks run `fn` over connections to a tribd that are cut. */
static inline void ranks_cut(int (*fn)(struct ranks_self *self))
{
    struct daemon_process d = {.threads = 2};
    char config[160];
    int port;

    daemon_need(&d);
    const pid_t pid = cutting_proxy_start(d.port, &port);
    snprintf(config, sizeof(config), "transport=tcp;service=127.0.0.1:%d", port);
    ranks_pass(.size = 2, .fn = fn, .config = config, .noisy = true);
    cutting_proxy_end(pid);
    daemon_end(&d);
}

#endif
