/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What launchers say: any bytes as a line of PMI and as Slurm's node list. The first
 * byte is the room for the answer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "boot/pmi.h"
#include "boot/slurm.h"
#include "tests/fuzz/reach.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

unsigned fuzz_reached; /* lines that have a value, and lists of hosts */

static void need(int condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || data[0] == 0)
        return 0;
    size_t room = data[0];
    char *text = malloc(size); /* a copy of its own, so that ASan sees its end */
    char *answer = malloc(room);
    if (text && answer) {
        memcpy(text, data + 1, size - 1);
        text[size - 1] = '\0';
        if (trib_pmi_word(text, "value", answer, room)) {
            need(memchr(answer, 0, room) && !strchr(answer, ' '));
            fuzz_reached++;
        }
        if (trib_slurm_first_host(text, answer, room)) {
            need(memchr(answer, 0, room) && answer[0] && !strpbrk(answer, "[],:/ "));
            fuzz_reached++;
        }
    }
    free(text);
    free(answer);
    return 0;
}
