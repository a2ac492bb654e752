/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All checks on all backends, plain and decorated. A new backend adds its rows here;
 * one that needs a device is run where there is one (CONFORMANCE_TRANSPORT=verbs).
 */
#include "tests/harness/tribtest.h"

#include <sys/uio.h>

#include "build-config.h"
#include "tests/transport/conformance.h"

static const struct row rows[] = {
    {"shm", ROW_MAPS | ROW_FOREIGN | ROW_CMA},
    {"shm", ROW_MAPS | ROW_FOREIGN | ROW_THREADS},
    {"shm:ring=8", ROW_MAPS | ROW_FOREIGN | ROW_CMA},
    {"shm+nomap+delay:us=100", ROW_FOREIGN | ROW_CMA | ROW_DECORATED},
    {"shm+trace+nomap", ROW_FOREIGN | ROW_THREADS | ROW_DECORATED},
    {"tcp", ROW_FOREIGN},
    {"tcp", ROW_FOREIGN | ROW_THREADS},
    {"tcp:watch=0", ROW_FOREIGN | ROW_REMOTE},
    {"tcp+trace+delay:us=100", ROW_FOREIGN | ROW_DECORATED},
    {"tcp", ROW_FOREIGN | ROW_SEALED},
    {"tcp:aes=0", ROW_FOREIGN | ROW_THREADS | ROW_SEALED},
    {"auto", ROW_MAPS | ROW_FOREIGN | ROW_CMA},
    {"auto:near=shm,far=tcp,ranks_per_host=1", ROW_FOREIGN | ROW_REMOTE},
    {"auto:near=shm,far=tcp,ranks_per_host=2",
     ROW_MAPS | ROW_FOREIGN | ROW_CMA | ROW_REMOTE},
    {"auto:near=shm,far=tcp,ranks_per_host=1", ROW_FOREIGN | ROW_THREADS},
    {"auto:near=tcp+trace+delay:us=100", ROW_FOREIGN | ROW_DECORATED},
#if HAVE_UCX
    {"ucx", ROW_FOREIGN},
    {"ucx:depth=8", ROW_FOREIGN | ROW_THREADS},
    {"ucx:watch=0", ROW_FOREIGN | ROW_REMOTE},
    {"ucx+trace+delay:us=100", ROW_FOREIGN | ROW_DECORATED},
#endif
    {"rails:n=2,over=tcp", ROW_FOREIGN},
    {"rails:n=2,over=tcp", ROW_FOREIGN | ROW_THREADS | ROW_SEALED},
    {"rails:n=3,over=tcp", ROW_FOREIGN | ROW_THREADS},
    {"rails:n=2,over=tcp+trace+delay:us=100", ROW_FOREIGN | ROW_DECORATED},
    {"rails:n=2,over=loop", ROW_FOREIGN | ROW_THREADS},
    {"rails:n=3,over=loop", ROW_FOREIGN | ROW_THREADS},
    {"loop", ROW_FOREIGN | ROW_THREADS},
    {"loop:depth=2", ROW_FOREIGN | ROW_THREADS},
    {"loop+trace+delay:us=100", ROW_FOREIGN | ROW_THREADS | ROW_DECORATED},
};

int main(void)
{
    const char *text = getenv("CONFORMANCE_TRANSPORT");
    const struct row asked[] = {
        {text, ROW_FOREIGN | ROW_DEVICE},
        {text, ROW_FOREIGN | ROW_DEVICE | ROW_THREADS},
    };
    struct suite suite = {.rows = rows, .n = sizeof(rows) / sizeof(rows[0])};

    if (text)
        suite = (struct suite){.rows = asked, .n = 2};
    tribtest_deadline(900);
    return conformance_main(&suite);
}
