/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks exchange their addresses through files in a shared folder, without a port or a
 * launcher:
 *     for rank in 0 1 2; do ./store /shared/folder $rank 3 & done; wait */
#include <stdio.h>
#include <stdlib.h>
#include <tributary.h>
#include <unistd.h>

static int gather(void *argv, const void *in, void *out, size_t bytes)
{
    char **args = argv, name[200], *to = out;
    static int exchange;
    snprintf(name, sizeof(name), "%.150s/%d.%s", args[1], ++exchange, args[2]);
    FILE *f = fopen(name, "w");
    if (!f || fwrite(in, bytes, 1, f) != 1 || fclose(f))
        return -1;
    for (int r = 0; r < atoi(args[3]); r++, to += bytes) {
        snprintf(name, sizeof(name), "%.150s/%d.%d", args[1], exchange, r);
        for (size_t whole = 0; !whole; usleep(1000))
            if ((f = fopen(name, "r")))
                whole = fread(to, bytes, 1, f), fclose(f);
    }
    return 0;
}

int main(int argc, char **argv)
{
    trib_opts_t opts = {sizeof(opts), .allgather = gather, .allgather_arg = argv};
    if (argc != 4 || (opts.ranks = atoi(argv[3])) < 1)
        return fprintf(stderr, "usage: store FOLDER RANK RANKS\n"), 2;
    opts.rank_plus_1 = atoi(argv[2]) + 1;
    trib_comm_t *comm;
    float x = 1;
    if (trib_init(&opts, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    if (trib_allreduce(comm, NULL, &x, 1, TRIB_F32, TRIB_SUM) == TRIB_OK)
        printf("rank %d of %d: sum %g\n", trib_rank(comm), trib_size(comm), (double)x);
    return trib_free_comm(comm) != TRIB_OK;
}
