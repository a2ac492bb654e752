/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: error messages.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "transport/ucx/ucx.h"

/* UCX's shared memory needs some tens of MiB. */
#define SHM_LITTLE ((unsigned long long)64 << 20)

/* UCX returns UCS_ERR_NO_RESOURCE both for descriptors and for shared memory, so find
 * out which it was. */
static const char *resource_text(void)
{
    struct rlimit limit;
    struct statvfs s;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < SHM_LITTLE)
        return "UCX has run out of a resource, and the limit on file sizes is below 64 "
               "MiB: raise ulimit -f, or disable UCX's shared memory (UCX_TLS=^sm)";
    if (statvfs("/dev/shm", &s) == 0 &&
        (unsigned long long)s.f_bavail * s.f_frsize < SHM_LITTLE)
        return "UCX has run out of a resource, and /dev/shm has less than 64 MiB free: "
               "mount -o remount,size=1g /dev/shm (in a container: --shm-size=1g), or "
               "disable UCX's shared memory (UCX_TLS=^sm)";
    return "UCX has run out of a resource: check ulimit -n and df /dev/shm";
}

const char *trib_ucx_status_text(const struct trib_ucx_api *api, ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_CONNECTION_RESET:
        return "its connection was reset: its process has ended, or the connection was "
               "cut between the hosts";
    case UCS_ERR_NOT_CONNECTED:
        return "its connection has ended";
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_TIMED_OUT:
        return "its host no longer answers: try ping between the hosts";
    case UCS_ERR_UNREACHABLE:
        return "UCX cannot reach it: select a common network on both ranks (UCX_TLS, "
               "UCX_NET_DEVICES)";
    case UCS_ERR_REJECTED:
        return "it rejected UCX's connection: check for a firewall between the hosts";
    case UCS_ERR_INVALID_ADDR:
        return "UCX cannot parse its address: install the same version of UCX on all "
               "hosts";
    case UCS_ERR_NO_DEVICE:
        return "UCX finds no device: check ucx_info -d, UCX_TLS and UCX_NET_DEVICES";
    case UCS_ERR_NO_MEMORY:
        return "UCX is out of memory: check ulimit -l and free";
    case UCS_ERR_IO_ERROR:
        return "UCX reports an I/O error: see the kernel log (dmesg), or set "
               "UCX_LOG_LEVEL=info";
    case UCS_ERR_CANCELED:
        return "a request was canceled";
    case UCS_ERR_NO_RESOURCE:
        return resource_text();
    default:
        return api->ucs_status_string(status);
    }
}

void trib_ucx_refusal_text(uint64_t value, char *text, size_t bytes)
{
    unsigned has = (unsigned)(value >> 32);
    const char *why = "for a reason unknown to this version";

    switch ((enum ucx_refusal)(uint32_t)value) {
    case UCX_OTHER_VERSION:
        snprintf(text, bytes,
                 "it uses version %u of the ucx protocol, this rank version %d: "
                 "install the same version of Tributary on all hosts",
                 has, UCX_VERSION);
        return;
    case UCX_OTHER_RELEASE:
        snprintf(text, bytes,
                 "it uses UCX %u.%u, this rank another version: install the same "
                 "version on all hosts",
                 has >> 16, has & 0xffff);
        return;
    case UCX_OTHER_JOB:
        why = "it belongs to another job, which now uses that port";
        break;
    case UCX_OTHER_RANK:
        why = "it knows no such rank: do both have the same number of ranks?";
        break;
    case UCX_OTHER_SETTINGS:
        why = "it has different settings: give all ranks the same TRIB_* settings";
        break;
    case UCX_TWICE:
        why = "it is already connected to this rank";
        break;
    case UCX_HAS_LEFT:
        why = "it has disconnected, or declared this rank lost";
        break;
    case UCX_OTHER_FLAGS:
        why = "only one of the two has a secret: set the same TRIB_KEY on all ranks, "
              "or on none";
        break;
    case UCX_NOT_PROVED:
        why = "this rank has a different secret: set the same TRIB_KEY on all ranks";
        break;
    case UCX_NO_ENDPOINT:
        why = "its UCX cannot create an endpoint: see its log";
        break;
    case UCX_WELCOME_HERE:
        break;
    }
    snprintf(text, bytes, "%s", why);
}
