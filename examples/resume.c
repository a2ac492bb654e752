/* SPDX-License-Identifier: BSD-3-Clause */
/* N ranks save their residuals; M ranks load them and continue until all is summed:
 *     trib-run -n 3 -- resume && trib-run -n 2 -- resume state.0 state.1 state.2 */
#include <stdio.h>
#include <tributary.h>

int main(int argc, char **argv)
{
    static const float put[1000] = {3, 1, 4, 1, 5, 9, 2, 6}, nothing[1000];
    static char room[16][8192], name[32];
    const void *states[16];
    size_t bytes[16], n = 0;
    float x[1000], sum = 0;
    trib_desc_t d = {.size = sizeof d, .count = 1000, .codec = "topk:k=1"};
    trib_comm_t *comm;
    trib_plan_t *plan;
    FILE *file;
    if (trib_init(NULL, &comm) != TRIB_OK || trib_plan_allreduce(comm, &d, &plan))
        return 1;
    for (int i = 1 + trib_rank(comm); i < argc; i += trib_size(comm)) {
        if (n == 16 || !(file = fopen(argv[i], "rb")))
            return 1;
        bytes[n] = fread(room[n], 1, sizeof room[n], file);
        states[n] = room[n];
        n += !fclose(file);
    }
    int bad = argc > 1 ? trib_plan_state_load_from(plan, states, bytes, n) : TRIB_OK;
    for (int step = 0; step < (argc > 1 ? 100 : 3) && !bad; step++) {
        bad = trib_plan_start_with(plan, argc > 1 ? nothing : put, x) ||
              trib_plan_wait(plan);
        for (int i = 0; i < 8; i++)
            sum += x[i];
    }
    printf("%g %s\n", (double)sum, bad ? trib_last_error(comm) : "summed");
    snprintf(name, sizeof name, "state.%d", trib_rank(comm));
    if (argc == 1 && !bad && (file = fopen(name, "wb")))
        bad = trib_plan_state_save(plan, room[0], sizeof room[0], bytes) ||
              fwrite(room[0], *bytes, 1, file) != 1 || fclose(file);
    return trib_plan_free(plan) || trib_free_comm(comm) || bad;
}
