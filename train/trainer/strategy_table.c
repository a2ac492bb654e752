/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "train/trainer/strategy.h"

#define STRATEGY(name, summary, ops) extern const struct trib_strategy_ops ops;
#include "train/trainer/strategies.def"
#undef STRATEGY

static const struct trib_strategy table[] = {
#define STRATEGY(name, summary, ops) {name, summary, &ops},
#include "train/trainer/strategies.def"
#undef STRATEGY
};

const struct trib_strategy *trib_strategy_at(int i)
{
    return i >= 0 && (size_t)i < sizeof(table) / sizeof(table[0]) ? &table[i] : NULL;
}

static const char *strategy_name(int i)
{
    const struct trib_strategy *row = trib_strategy_at(i);

    return row ? row->name : NULL;
}

static int strategy_keys(int i, struct trib_keyed_key keys_out[TRIB_KEYED_KEYS])
{
    const struct trib_strategy_ops *ops = table[i].ops;

    if (ops->n_keys > 0)
        memcpy(keys_out, ops->keys, (size_t)ops->n_keys * sizeof(*keys_out));
    return ops->n_keys;
}

static const struct trib_keyed_family family = {"strategy", 120, strategy_name,
                                                strategy_keys};

trib_status_t trib_strategy_parse(const char *text, struct trib_error *err,
                                  struct trib_strategy_choice *out)
{
    struct trib_keyed_text given;
    char own[TRIB_KEYED_BYTES];
    const char *codec;

    text = text ? text : "sync";
    codec = strchr(text, '+');
    const size_t len = codec ? (size_t)(codec - text) : strlen(text);

    if (len >= sizeof(own) || (codec && strlen(codec + 1) >= sizeof(out->codec)))
        return trib_fail(err, TRIB_ERR_INVALID, "strategy \"%.40s...\" is too long",
                         text);
    snprintf(own, sizeof(own), "%.*s", (int)len, text);

    const trib_status_t st = trib_keyed_parse(&family, own, err, &given);
    if (st != TRIB_OK)
        return st;
    if (codec && !codec[1])
        return trib_fail(err, TRIB_ERR_INVALID,
                         "strategy \"%s\": no codec after the +: name one, or remove "
                         "the +",
                         text);
    *out =
        (struct trib_strategy_choice){.row = &table[given.name], .given = given.given};
    snprintf(out->codec, sizeof(out->codec), "%s", codec ? codec + 1 : "");
    for (int k = 0; k < out->row->ops->n_keys; k++)
        out->number[k] =
            given.given & 1u << k ? given.value[k] : out->row->ops->defaults[k];
    return TRIB_OK;
}
