/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/coded/code_table.h"

#include <string.h>

#define CODE(name, summary, ops) extern const struct trib_code_ops ops;
#include "train/coded/codes.def"
#undef CODE

static const struct trib_code table[] = {
#define CODE(name, summary, ops) {name, summary, &ops},
#include "train/coded/codes.def"
#undef CODE
};

/* Return row i; NULL: i is out of range. */
static const struct trib_code *row_at(int i)
{
    return i >= 0 && (size_t)i < sizeof(table) / sizeof(table[0]) ? &table[i] : NULL;
}

static const char *code_name(int i)
{
    const struct trib_code *row = row_at(i);

    return row ? row->name : NULL;
}

static int code_keys(int i, struct trib_keyed_key keys_out[TRIB_KEYED_KEYS])
{
    const struct trib_code_ops *ops = table[i].ops;

    if (ops->n_keys)
        memcpy(keys_out, ops->keys, (size_t)ops->n_keys * sizeof(*keys_out));
    return ops->n_keys;
}

static const struct trib_keyed_family family = {"code", 120, code_name, code_keys};

trib_status_t trib_code_parse(const char *text, struct trib_error *err,
                              struct trib_code_choice *out)
{
    struct trib_keyed_text given;

    const trib_status_t st =
        trib_keyed_parse(&family, text ? text : "rlnc", err, &given);
    if (st != TRIB_OK)
        return st;
    *out = (struct trib_code_choice){.row = &table[given.name], .given = given.given};
    for (int k = 0; k < out->row->ops->n_keys; k++)
        out->number[k] =
            given.given & 1u << k ? given.value[k] : out->row->ops->defaults[k];
    return TRIB_OK;
}

static bool holds_part(const struct trib_code_layout *had, int rank)
{
    for (int b = 0; b < had->n_blocks; b++)
        if (had->holder[b] == rank && trib_code_layout_is_part(had, b))
            return true;
    return false;
}

trib_status_t trib_code_place_parts(const struct trib_code_layout *had, int ranks,
                                    int *holder_out, struct trib_error *err)
{
    bool taken[TRIB_CODE_RANKS_MAX] = {false};

    for (int p = 0; p < had->parts; p++) {
        const int block = trib_code_layout_find(had, p);
        holder_out[p] = block < 0 ? -1 : had->holder[block];
    }
    for (int p = 0; p < had->parts; p++) {
        int best = -1;
        for (int r = ranks - 1; r >= 0 && holder_out[p] < 0; r--) {
            if (taken[r] || holds_part(had, r))
                continue;
            if (best < 0 ||
                (!trib_code_layout_held(had, r) && trib_code_layout_held(had, best)))
                best = r;
        }
        if (holder_out[p] < 0 && best < 0)
            return trib_fail(
                err, TRIB_ERR_UNSUPPORTED,
                "%d partitions need as many ranks, but %d are left: add ranks "
                "(trib_comm_grow), or start again with fewer partitions",
                had->parts, ranks);
        if (holder_out[p] < 0) {
            holder_out[p] = best;
            taken[best] = true;
        }
    }
    return TRIB_OK;
}
