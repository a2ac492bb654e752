/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/program/train_until.h"

#include <stdlib.h>

enum { TAG = 1 }; /* differs from the trainer's tag */

trib_status_t train_until_open(struct train_until *until, trib_comm_t *comm)
{
    const int ranks = trib_size(comm);
    trib_status_t st = TRIB_OK;

    *until = (struct train_until){.comm = comm, .ranks = ranks};
    until->words = calloc((size_t)ranks, 1);
    until->got = calloc((size_t)ranks, sizeof(trib_request_t *));
    until->sent = calloc((size_t)ranks, sizeof(trib_request_t *));
    if (!until->words || !until->got || !until->sent) {
        until->ranks = 0;
        return TRIB_ERR_NO_MEMORY;
    }
    for (int p = 0; p < ranks && st == TRIB_OK; p++)
        if (p != trib_rank(comm))
            st = trib_irecv(comm, &until->words[p], 1, TRIB_U8, p, TAG, &until->got[p]);
    return st;
}

bool train_until_over(const struct train_until *until)
{
    for (int p = 0; until->got && p < until->ranks; p++)
        if (until->got[p] && trib_request_test(until->got[p]) != TRIB_INPROGRESS)
            return true; /* also on an error: the next call reports it */
    return false;
}

static trib_status_t end(trib_request_t *request)
{
    const trib_status_t st = request ? trib_request_wait(request) : TRIB_OK;

    trib_request_free(request);
    return st;
}

trib_status_t train_until_close(struct train_until *until)
{
    trib_status_t st = TRIB_OK;

    for (int p = 0; until->got && p < until->ranks && st == TRIB_OK; p++)
        if (until->got[p])
            st = trib_isend(until->comm, &until->words[trib_rank(until->comm)], 1,
                            TRIB_U8, p, TAG, &until->sent[p]);
    for (int p = 0; until->got && p < until->ranks; p++) {
        const trib_status_t sent_st = end(until->sent[p]),
                            received_st = end(until->got[p]);

        st = st != TRIB_OK ? st : sent_st != TRIB_OK ? sent_st : received_st;
    }
    free(until->words);
    free(until->got);
    free(until->sent);
    *until = (struct train_until){.comm = NULL};
    return st;
}
