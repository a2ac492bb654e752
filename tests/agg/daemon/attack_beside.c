/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job that runs during the attacks: each of its ranks takes steps, with a pause
 * before each, and checks every one. Rank 0 records the duration of the longest step.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agg/client/fallback.h"
#include "base/time.h"
#include "tests/agg/daemon/attack.h"
#include "tests/agg/daemon/exact_jobs.h"

enum { COUNT = 4096, LONGEST_S = 3600 };

/* The measurements are in a file that rank 0 and readers map. */
struct measured {
    _Atomic uint64_t longest_ns; /* the longest step since the last request */
    _Atomic uint64_t steps;      /* since then */
    _Atomic uint64_t without;    /* total number of steps not summed by the service */
    _Atomic bool end;
};

static struct measured *map(const char *file, int flags)
{
    const int fd = open(file, O_RDWR | O_CLOEXEC | flags, 0600);
    struct measured *m = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof(*m)) == 0)
        m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (m == MAP_FAILED)
        fprintf(stderr, "%s: %m\n", file);
    return m == MAP_FAILED ? NULL : m;
}

struct step {
    uint64_t took_ns;
    bool last; /* rank 0 has announced the last step, in the last element */
};

static struct step take_step(trib_comm_t *comm, long number, bool ends)
{
    static float x[COUNT + 1];
    const int size = trib_size(comm);

    for (int i = 0; i < COUNT; i++)
        x[i] = value(trib_rank(comm), number, i);
    x[COUNT] = ends;
    const uint64_t began = trib_now_ns();
    must(comm, trib_allreduce(comm, NULL, x, COUNT + 1, TRIB_F32, TRIB_SUM), "a step");
    const uint64_t took = trib_now_ns() - began;
    for (int i = 0; i < COUNT; i++) {
        float sum = 0;
        for (int r = 0; r < size; r++)
            sum += value(r, number, i);
        if (x[i] == sum)
            continue;
        fprintf(stderr, "step %ld, element %d: %g instead of %g\n", number, i,
                (double)x[i], (double)sum);
        exit(1);
    }
    return (struct step){.took_ns = took, .last = x[COUNT] > 0};
}

static void note(struct measured *m, const trib_comm_t *comm, uint64_t took_ns)
{
    uint64_t seen = atomic_load(&m->longest_ns);

    while (took_ns > seen &&
           !atomic_compare_exchange_weak(&m->longest_ns, &seen, took_ns))
        continue;
    atomic_fetch_add(&m->steps, 1);
    if (!comm->offload || !comm->offload->agg_comm)
        atomic_fetch_add(&m->without, 1);
}

int attack_beside(const char *file, int pause_ms)
{
    const uint64_t until = trib_deadline_ms(LONGEST_S * 1000);
    struct measured *m = map(file, O_CREAT);
    struct step step = {.last = false};
    trib_comm_t *comm;

    if (!m)
        return 1;
    must(NULL, trib_init(NULL, &comm), "trib_init");
    const bool notes = trib_rank(comm) == 0;
    for (long number = 0; !step.last; number++) {
        usleep((useconds_t)pause_ms * 1000);
        step =
            take_step(comm, number,
                      notes && (atomic_load(&m->end) || trib_deadline_passed(until)));
        if (notes && number > 0)
            note(m, comm, step.took_ns);
    }
    must(NULL, trib_free_comm(comm), "leave");
    if (notes)
        printf("steps: all right\n");
    return 0;
}

/* Print "LONGEST_MS STEPS WITHOUT". The file "-FILE" makes the job end. */
int attack_longest(const char *file)
{
    const bool end = file[0] == '-';
    struct measured *m = map(end ? file + 1 : file, 0);

    if (!m)
        return 1;
    const uint64_t longest_ns = atomic_exchange(&m->longest_ns, 0);
    const uint64_t steps = atomic_exchange(&m->steps, 0);
    printf("%.1f %llu %llu\n", (double)longest_ns / 1e6, (unsigned long long)steps,
           (unsigned long long)atomic_load(&m->without));
    if (end)
        atomic_store(&m->end, true);
    return 0;
}
