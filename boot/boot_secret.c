/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's secret, and whether all ranks are on one host. */
#include <string.h>

#include "base/log.h"
#include "boot/boot.h"

bool trib_boot_is_here(const char *root)
{
    static const char *const here[] = {"local:", "localhost:", "127.", "[::1]:"};

    for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++) {
        if (strncmp(root, here[i], strlen(here[i])) == 0 && !strchr(root, ','))
            return true;
    }
    return root[0] == '\0';
}

void trib_boot_arm(const struct trib_boot_opts *opts, struct trib_secret *secret)
{
    char why[160];

    if (!secret->is_set || trib_secret_arm(secret, why, sizeof(why)) || opts->rank != 0)
        return;
    trib_log(
        opts->log, trib_boot_is_here(opts->root) ? TRIB_LOG_INFO : TRIB_LOG_WARN,
        "boot",
        "this job has a secret, but rank 0 cannot use it: %s; ranks are not "
        "authenticated: install libsodium23 on all hosts",
        why);
}
