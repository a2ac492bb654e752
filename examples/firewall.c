/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 creates the rendezvous at a port that the firewall allows, and publishes it in
 * a file. Only the user may read the file, since it contains the job's secret.
 *     for rank in 0 1 2; do ./firewall /shared/place :7000-7100 $rank 3 & done; wait */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <tributary.h>
#include <unistd.h>
static int tell(const char *name, const char *text)
{
    char part[300];
    snprintf(part, sizeof(part), "%.290s.part", name);
    FILE *f = fopen(part, "w");
    return f && fputs(text, f) >= 0 && fclose(f) == 0 && rename(part, name) == 0;
}

int main(int argc, char **argv)
{
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_root_t *root = NULL;
    trib_comm_t *comm;
    char text[TRIB_ROOT_TEXT_MAX] = "";
    if (argc != 5 || (opts.ranks = atoi(argv[4])) < 1)
        return fprintf(stderr, "usage: firewall FILE HOST:PORTS RANK RANKS\n"), 2;
    opts.rank_plus_1 = atoi(argv[3]) + 1;
    opts.root = text;
    umask(077);
    if (opts.rank_plus_1 == 1 && (trib_root_create_at(argv[2], &root) != TRIB_OK ||
                                  !tell(argv[1], trib_root_text(root))))
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    for (FILE *f = NULL; !f; usleep(10000))
        if ((f = fopen(argv[1], "r")) && (!fgets(text, sizeof(text), f) || fclose(f)))
            return 1;
    if (trib_init(&opts, &comm) != TRIB_OK)
        return fprintf(stderr, "%s\n", trib_last_error(NULL)), 1;
    trib_root_destroy(root);
    printf("rank %d of %d\n", trib_rank(comm), trib_size(comm));
    return trib_free_comm(comm) != TRIB_OK;
}
