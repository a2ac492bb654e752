/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard process metrics, read from the kernel. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agg/metrics/metrics.h"

#define SECOND UINT64_C(1000000000)

static bool count_fds(uint64_t *out)
{
    DIR *dir = opendir("/proc/self/fd");

    if (!dir)
        return false;
    *out = 0;
    for (const struct dirent *d; (d = readdir(dir));)
        *out += d->d_name[0] != '.';
    closedir(dir);
    *out -= 1; /* the directory itself */
    return true;
}

static bool resident(uint64_t *out)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long pages = 0;

    if (!file)
        return false;
    const bool read = fscanf(file, "%*u %llu", &pages) == 1;
    fclose(file);
    *out = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return read;
}

static uint64_t of_clock(clockid_t clock)
{
    struct timespec ts = {0};

    (void)clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* Field 22 is the start time in ticks since boot; field 2 is a name with arbitrary
 * characters, so parsing starts after the last ')'. */
static bool start(uint64_t *out)
{
    FILE *file = fopen("/proc/self/stat", "re");
    char text[1024];

    if (!file)
        return false;
    const size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = 0;
    const char *at = strrchr(text, ')');
    unsigned long long ticks;
    if (!at ||
        sscanf(at + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
               "%*d %*d %*d %llu",
               &ticks) != 1)
        return false;
    *out = of_clock(CLOCK_REALTIME) - of_clock(CLOCK_BOOTTIME) +
           ticks * (SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
    return true;
}

void trib_process_view(struct trib_process_view *out)
{
    struct rlimit most;

    *out = (struct trib_process_view){.cpu_ns = of_clock(CLOCK_PROCESS_CPUTIME_ID)};
    out->known = count_fds(&out->fds) && resident(&out->resident_bytes) &&
                 start(&out->start_ns) && getrlimit(RLIMIT_NOFILE, &most) == 0;
    if (out->known)
        out->fds_max = most.rlim_cur;
}
