/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vector that survives restarts of tribd and of this program: with the same KEY the
 * program continues where it stopped.
 *
 *     TRIB_SERVICE=127.0.0.1:4700 trib-run -n 4 -- safe KEY    (openssl rand -hex 32)
 */
#include <stdio.h>
#include <tributary.h>

int main(int argc, char **argv)
{
    trib_comm_t *comm;
    trib_store_t *store;
    trib_vector_t *v = NULL;
    trib_store_opts_t o = TRIB_STORE_OPTS_INIT;
    trib_vector_desc_t d = TRIB_VECTOR_DESC_INIT;
    double one = 1, x = 0;
    uint64_t version = 0;
    o.key = argc > 1 ? argv[1] : NULL, o.snapshot_s = 0.1;
    if (trib_init(NULL, &comm) || trib_store_open_with(comm, &o, &store)) {
        fprintf(stderr, "%s\n", trib_last_error(comm));
        return 1;
    }
    d.name = "steps", d.count = 1, d.dtype = TRIB_F64;
    trib_status_t st = trib_store_create(store, &d, &v);
    if (!st && trib_store_restore(store, v, TRIB_RESTORE_SNAPSHOT, NULL, &version))
        printf("starting from the beginning: %s\n", trib_store_error(store));
    for (int step = 0; step < 1000 && !st; step++) {
        st = trib_store_push(v, &one, NULL, NULL);
        if (st == TRIB_ERR_PEER_LOST) /* on all ranks: there is only one tribd */
            st = trib_store_restore(store, v, TRIB_RESTORE_LOST, NULL, &version);
    }
    st = st ? st : trib_barrier(comm);
    st = st ? st : trib_store_snapshot(store, v, &version);
    st = st ? st : trib_store_pull(v, &x, NULL, NULL);
    printf("version %d, %.0f steps: %s\n", (int)version, x, trib_store_error(store));
    trib_store_free(store);
    return trib_free_comm(comm) || st;
}
