/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections to a tribd by unauthenticated peers, without key or munged, from eight
 * loopback addresses. Some 700 a second send nothing, or 50 a second send a HELLO and
 * an invalid credential that tribd must have munged check.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agg/protocol/auth.h"
#include "agg/protocol/control.h"
#include "base/fd.h"
#include "base/sockets.h"
#include "base/time.h"
#include "tests/agg/daemon/caller.h"
#include "tests/agg/daemon/hostile.h"

enum { HOSTS = 8, HELD = 4096, EACH_NS = 1400000, EACH_OF_FEW_NS = 20000000 };

static size_t put_all(uint8_t *bytes, size_t most)
{
    const char credential[] = "MUNGE:AwQDAAD:";
    struct trib_control hello = {.kind = TRIB_CONTROL_HELLO,
                                 .hello = {.version_min = TRIB_CONTROL_VERSION_MIN,
                                           .version_max = TRIB_CONTROL_VERSION_MAX,
                                           .methods = 1u << TRIB_AUTH_MUNGE,
                                           .job = "unauthenticated",
                                           .library = "0"}};
    struct trib_control auth = {
        .kind = TRIB_CONTROL_AUTH,
        .auth = {TRIB_CONTROL_CREDENTIAL,
                 {(const uint8_t *)credential, sizeof(credential) - 1}}};
    size_t a, b;

    if (trib_control_put(&hello, bytes, most, &a) != TRIB_OK ||
        trib_control_put(&auth, bytes + a, most - a, &b) != TRIB_OK)
        return 0;
    return a + b;
}

int hostile_unauthenticated(const char *way, const char *file)
{
    const bool says = strcmp(way, "credentials") == 0;
    const struct timespec pause = {0, says ? EACH_OF_FEW_NS : EACH_NS};
    const struct rlimit files = {HELD + 100, HELD + 100};
    uint8_t bytes[TRIB_CONTROL_FRAME_BYTES];
    const size_t n_bytes = put_all(bytes, sizeof(bytes));
    static int held[HELD];
    struct sockaddr_in to;
    size_t n = 0;

    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (!caller_address(trib_config_environment("TRIB_SERVICE"), &to) || n_bytes == 0)
        return 1;
    for (; hostile_goes_on(file); n++) {
        int *place = &held[n % HELD];
        if (*place > 0)
            close(*place); /* the oldest */
        *place = caller_connect_from(&to, (uint32_t)(n % HOSTS));
        nanosleep(&pause, NULL); /* longer than the connection takes */
        if (says && *place > 0)
            (void)!send(*place, bytes, n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    printf("hostile by %s: %zu\n", way, n);
    return 0;
}
