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
        return "UCX has run out of a resource, and files may have less than 64 MiB: "
               "raise ulimit -f, or leave UCX's shared memory out (UCX_TLS=^sm)";
    if (statvfs("/dev/shm", &s) == 0 &&
        (unsigned long long)s.f_bavail * s.f_frsize < SHM_LITTLE)
        return "UCX has run out of a resource, and /dev/shm has less than 64 MiB free: "
               "mount -o remount,size=1g /dev/shm (a container: --shm-size=1g), or "
               "leave UCX's shared memory out (UCX_TLS=^sm)";
    return "UCX has run out of a resource: see ulimit -n and df /dev/shm";
}

const char *trib_ucx_status_text(const struct trib_ucx_api *api, ucs_status_t status)
{
    switch (status) {
    case UCS_ERR_CONNECTION_RESET:
        return "its connection was reset: its process has ended, or something between "
               "the hosts cut it";
    case UCS_ERR_NOT_CONNECTED:
        return "its connection has ended";
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_TIMED_OUT:
        return "its host does not answer any more: try ping between the hosts";
    case UCS_ERR_UNREACHABLE:
        return "UCX knows no way to it: give both ranks networks in common with "
               "UCX_TLS and UCX_NET_DEVICES";
    case UCS_ERR_REJECTED:
        return "it turned UCX's connection away: is a firewall between the hosts?";
    case UCS_ERR_INVALID_ADDR:
        return "UCX cannot read its address: install one version of UCX";
    case UCS_ERR_NO_DEVICE:
        return "UCX finds no device: see ucx_info -d, UCX_TLS and UCX_NET_DEVICES";
    case UCS_ERR_NO_MEMORY:
        return "UCX got no memory: see ulimit -l and free";
    case UCS_ERR_IO_ERROR:
        return "UCX reports an input/output error: see the kernel's log (dmesg), or "
               "set UCX_LOG_LEVEL=info";
    case UCS_ERR_CANCELED:
        return "a request was cancelled";
    case UCS_ERR_NO_RESOURCE:
        return resource_text();
    default:
        return api->ucs_status_string(status);
    }
}

void trib_ucx_refusal_text(uint64_t value, char *text, size_t bytes)
{
    unsigned has = (unsigned)(value >> 32);
    const char *why = "for a reason that this version does not know";

    switch ((enum ucx_refusal)(uint32_t)value) {
    case UCX_OTHER_VERSION:
        snprintf(text, bytes,
                 "it speaks version %u of ucx, this rank %d: install one "
                 "version of Tributary",
                 has, UCX_VERSION);
        return;
    case UCX_OTHER_RELEASE:
        snprintf(text, bytes,
                 "it has UCX %u.%u, this rank another: install one version", has >> 16,
                 has & 0xffff);
        return;
    case UCX_OTHER_JOB:
        why = "it belongs to another job, which now uses that port";
        break;
    case UCX_OTHER_RANK:
        why = "it knows no such rank: do both count the same ranks?";
        break;
    case UCX_OTHER_SETTINGS:
        why = "it has other settings: give all ranks the same TRIB_* settings";
        break;
    case UCX_TWICE:
        why = "it is connected with this rank already";
        break;
    case UCX_HAS_LEFT:
        why = "it has left, or has taken this rank for lost";
        break;
    case UCX_OTHER_FLAGS:
        why =
            "one of both has a secret and the other has none: give all ranks the same "
            "TRIB_KEY, or none";
        break;
    case UCX_NOT_PROVED:
        why = "this rank has another secret: give all ranks the same TRIB_KEY";
        break;
    case UCX_NO_ENDPOINT:
        why = "its UCX makes no endpoint: see its log";
        break;
    case UCX_WELCOME_HERE:
        break;
    }
    snprintf(text, bytes, "%s", why);
}
