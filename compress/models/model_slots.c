/* SPDX-License-Identifier: BSD-3-Clause */
/* Default operations of models. */
#include "base/error.h"
#include "compress/models/model_ops.h"

const char *trib_model_no_refusal(const struct trib_codec *c)
{
    (void)c;
    return NULL;
}

size_t trib_model_none_wished(const struct trib_codec *c)
{
    (void)c;
    return 0;
}

size_t trib_model_no_floats(const struct trib_codec *c, size_t n)
{
    (void)c, (void)n;
    return 0;
}

size_t trib_model_no_exchange_floats(const struct trib_model *m)
{
    (void)m;
    return 0;
}

bool trib_model_not_learning(const struct trib_model *m)
{
    (void)m;
    return false;
}

bool trib_model_no_exchange(struct trib_model *m, uint32_t step, float *own_out)
{
    (void)m, (void)step, (void)own_out;
    return false;
}

trib_status_t trib_model_not_exchanged(struct trib_model *m, const float *sum,
                                       struct trib_error *err)
{
    (void)m, (void)sum;
    return trib_fail(err, TRIB_ERR_CODEC, "this codec exchanges nothing");
}

void trib_model_proposes_nothing(struct trib_model *m, const struct trib_model_chunk *c,
                         const float *x, float *proposal_out)
{
    (void)m, (void)c, (void)x, (void)proposal_out;
}

void trib_model_settled(struct trib_model *m, const struct trib_model_chunk *c,
                        float *share)
{
    (void)m, (void)c, (void)share;
}
