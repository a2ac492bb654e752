/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank dies, the others shrink, and a newcomer replaces it:
 *     trib-run -n 3 --grace 60 -- replacement FILE & then replacement FILE join */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <tributary.h>
static trib_listener_t *listener;
static trib_comm_t *comm, *next; /* next: replaces comm; or NULL */
static int go_on(const char *file) /* `file` gets the job's secret */
{
    if (trib_comm_shrink(comm, &next) != TRIB_OK || trib_rank(next) != 0)
        return next != NULL;
    FILE *f = (umask(077), fopen(file, "w"));
    return f && !trib_listener_open(next, NULL, &listener) &&
           fputs(trib_listener_text(listener), f) >= 0 && !fclose(f);
}
int main(int argc, char **argv)
{
    char text[TRIB_ROOT_TEXT_MAX];
    float one = 1, x[1000] = {0}; /* parameters; the first counts the steps */
    FILE *f = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (f ? !fgets(text, sizeof(text), f) || trib_join(text, NULL, &comm) < 0
          : argc != 2 || trib_init(NULL, &comm) < 0)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    int ok = 1;
    for (next = comm; ok && (trib_size(comm) < 3 || x[0] < 20); one = 1) {
        if (next && next != comm)
            trib_free_comm(comm);
        if (next) /* newcomers receive the parameters */
            trib_comm_sync(comm = next, x, sizeof(x), NULL);
        if (x[0] == 7 && trib_rank(comm) == 0 && trib_size(comm) == 3)
            raise(SIGKILL);
        trib_status_t st = trib_allreduce(comm, NULL, &one, 1, TRIB_F32, TRIB_MEAN);
        x[0] += (float)(st == TRIB_OK);
        st = st ? st : trib_comm_grow(comm, listener, 1, &next);
        ok = !st ||
             ((st == TRIB_ERR_PEER_LOST || st == TRIB_ERR_ABORTED) && go_on(argv[1]));
    }
    printf("rank %d of %d\n", trib_rank(comm), trib_size(comm));
    return trib_free_comm(comm) != TRIB_OK || !ok;
}
