/* SPDX-License-Identifier: BSD-3-Clause */
#include "compress/models/model_ops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct word_head {
    uint32_t epoch;
    uint32_t n; /* floats, pairs or bytes */
};

struct pair {
    uint32_t position;
    float value;
};

static const struct trib_model_ops *kind_of(const struct trib_codec *c)
{
    return c->stages.transform->model;
}

/* ---- create, state --------------------------------------------------------------- */

trib_status_t trib_model_create(const struct trib_codec *codec,
                                const struct trib_model_opts *opts,
                                struct trib_error *err, struct trib_model **out)
{
    const struct trib_model_ops *kind = kind_of(codec);
    struct trib_model *m;

    const trib_status_t status = kind->create(codec, opts, err, &m);
    if (status != TRIB_OK)
        return status;
    m->kind = kind;
    m->codec = codec;
    m->opts = *opts;
    m->y = calloc(kind->most(codec, opts->piece) + 1, sizeof *m->y);
    m->x = calloc(opts->piece + 1, sizeof *m->x);
    m->agreed =
        calloc(trib_codec_agreed_floats(codec, opts->piece) + 1, sizeof *m->agreed);
    if (!m->y || !m->x || !m->agreed) {
        trib_model_destroy(m);
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "no memory for the model of a codec");
    }
    *out = m;
    return TRIB_OK;
}

void trib_model_destroy(struct trib_model *m)
{
    if (!m)
        return;
    free(m->y);
    free(m->x);
    free(m->agreed);
    m->kind->destroy(m);
}

void trib_model_seed(struct trib_model *m, uint64_t seed)
{
    m->opts.seed = seed;
    if (m->kind->seed)
        m->kind->seed(m);
}

void trib_model_begin(struct trib_model *m, uint32_t step)
{
    m->kind->begin(m, step);
}

uint32_t trib_model_epoch(const struct trib_model *m)
{
    return m->kind->epoch(m);
}

bool trib_model_learning(const struct trib_model *m)
{
    return m->kind->learning(m);
}

size_t trib_model_exchange_floats(const struct trib_model *m)
{
    return m->kind->exchange_floats(m);
}

bool trib_model_exchange(struct trib_model *m, uint32_t step, float *own_out)
{
    return m->kind->exchange(m, step, own_out);
}

trib_status_t trib_model_exchanged(struct trib_model *m, const float *sum,
                                   struct trib_error *err)
{
    return m->kind->exchanged(m, sum, err);
}

size_t trib_model_describe(const struct trib_model *m, char *text, size_t bytes)
{
    if (bytes)
        text[0] = '\0';
    return m->kind->tell ? m->kind->tell(m, text, bytes) : 0;
}

size_t trib_model_bytes(const struct trib_model *m)
{
    return m->kind->bytes(m);
}

void trib_model_write(const struct trib_model *m, uint8_t *out)
{
    m->kind->write(m, out);
}

trib_status_t trib_model_read(struct trib_model *m, const uint8_t *src, size_t len,
                              struct trib_error *err)
{
    const size_t bytes = m->kind->bytes(m);

    if (len != bytes)
        return trib_fail(err, TRIB_ERR_MISMATCH,
                         "the saved model has %zu bytes, this model has %zu", len,
                         bytes);
    return m->kind->read(m, src, err);
}

/* ---- agreement of the ranks ------------------------------------------------------ */

void trib_model_propose(struct trib_model *m, const struct trib_model_chunk *c,
                      const float *x, float *proposal_out)
{
    memset(proposal_out, 0,
           trib_codec_agreed_floats(m->codec, m->opts.piece) * sizeof *proposal_out);
    if (trib_model_epoch(m) == 0)
        return;
    if (m->codec->coefficients) {
        m->kind->forward(m, c, x, m->y);
        trib_codec_propose(m->codec->coefficients, m->y, m->kind->length(m, c->n),
                         proposal_out);
    } else {
        m->kind->propose(m, c, x, proposal_out);
    }
}

void trib_model_settle(struct trib_model *m, const struct trib_model_chunk *c,
                       float *share)
{
    if (trib_model_epoch(m) != 0 && !m->codec->coefficients)
        m->kind->settle(m, c, share);
}

/* ---- encode and decode ----------------------------------------------------------- */

/* Return the bytes of one unit counted by a head. */
static size_t unit_of(const struct trib_codec *c, uint32_t epoch)
{
    if (epoch == 0)
        return sizeof(float);
    if (c->coefficients)
        return 1;
    return kind_of(c)->sparse ? sizeof(struct pair) : sizeof(float);
}

static size_t coded_bound(const struct trib_codec *c, size_t n)
{
    const size_t most = kind_of(c)->most(c, n);

    return sizeof(struct word_head) + (c->coefficients
                                           ? trib_codec_bound(c->coefficients, most)
                                           : most * unit_of(c, 1));
}

size_t trib_model_word_bound(const struct trib_codec *c, size_t n)
{
    const size_t plain = sizeof(struct word_head) + n * sizeof(float),
                 coded = coded_bound(c, n);

    return plain > coded ? plain : coded;
}

size_t trib_model_sum_bound(const struct trib_codec *c, size_t n)
{
    return kind_of(c)->coded_always ? coded_bound(c, n) : trib_model_word_bound(c, n);
}

size_t trib_model_trained_bytes(const struct trib_codec *c, size_t n)
{
    const size_t trained = kind_of(c)->trained(c, n);
    const size_t word = c->coefficients ? trib_codec_bound(c->coefficients, trained)
                                        : trained * unit_of(c, 1);

    return sizeof(struct word_head) + word +
           trib_codec_agreed_floats(c, n) * sizeof(float);
}

static bool head_read(const struct trib_codec *c, const uint8_t *src, size_t len,
                      struct word_head *head_out)
{
    if (len < sizeof *head_out)
        return false;
    memcpy(head_out, src, sizeof *head_out);
    const size_t rest = len - sizeof *head_out, unit = unit_of(c, head_out->epoch);
    return rest / unit == head_out->n && rest % unit == 0;
}

static struct pair pair_at(const uint8_t *src, size_t i)
{
    struct pair p;
    memcpy(&p, src + sizeof(struct word_head) + i * sizeof p, sizeof p);
    return p;
}

/* Read pair i once; false: its position is below `next`, or not below `length`. */
static bool pair_take(const uint8_t *src, size_t i, size_t length, size_t *next,
                      struct pair *out)
{
    *out = pair_at(src, i);
    if (out->position < *next || out->position >= length)
        return false;
    *next = (size_t)out->position + 1;
    return true;
}

/* Return true if positions increase and are below `length`. */
static bool pairs_valid(const uint8_t *src, size_t n, size_t length)
{
    struct pair p;
    size_t next = 0;

    for (size_t i = 0; i < n; i++)
        if (!pair_take(src, i, length, &next, &p))
            return false;
    return true;
}

static size_t pairs_write(const float *y, size_t n, uint8_t *dst)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        const struct pair p = {(uint32_t)i, y[i]};
        if (y[i] == 0.0f)
            continue;
        memcpy(dst + len, &p, sizeof p);
        len += sizeof p;
    }
    return len;
}

static size_t write_coefficients(const struct trib_codec *c,
                                 const struct trib_encode *in, const float *y, size_t n,
                                 uint8_t *dst)
{
    struct trib_encode of_y = *in;

    of_y.x = y;
    of_y.n = n;
    of_y.model = NULL;
    return trib_codec_encode(c->coefficients, &of_y, dst);
}

/* Mark sent elements. Where elements are sent unchanged, momentum is kept: nothing was
 * sent too early. */
static void mark(const struct trib_model *m, const struct trib_model_chunk *c,
                 const struct trib_sent *sent)
{
    if (!sent)
        return;
    if (m && trib_model_epoch(m) != 0 && m->kind->mark) {
        m->kind->mark(m, c, sent);
        return;
    }
    const struct trib_sent all = {.mask = sent->mask, .first = sent->first};
    trib_sent_mark_all(&all, c->n);
}

size_t trib_model_encode(const struct trib_codec *c, const struct trib_encode *in,
                         uint8_t *dst)
{
    struct trib_model *m = in->model;
    struct word_head head = {m ? trib_model_epoch(m) : 0, (uint32_t)in->n};
    struct trib_model_chunk k = {in->key.index, in->n, in->agreed};
    uint8_t *at = dst + sizeof head;
    size_t len = in->n * sizeof(float);

    if (in->n == 0) {
        len = 0;
    } else if (head.epoch == 0) {
        memcpy(at, in->x, len);
        mark(m, &k, in->sent);
    } else {
        if (!in->agreed) {
            trib_model_propose(m, &k, in->x, m->agreed);
            trib_model_settle(m, &k, m->agreed);
            k.agreed = m->agreed;
        }
        const size_t n = m->kind->length(m, in->n);
        m->kind->forward(m, &k, in->x, m->y);
        len = n * sizeof(float);
        if (c->coefficients)
            len = write_coefficients(c, in, m->y, n, at);
        else if (m->kind->sparse)
            len = pairs_write(m->y, n, at);
        else
            memcpy(at, m->y, len);
        head.n = (uint32_t)(len / unit_of(c, head.epoch));
        mark(m, &k, in->sent);
    }
    memcpy(dst, &head, sizeof head);
    assert(sizeof head + len <= trib_model_word_bound(c, m ? m->opts.piece : in->n));
    (void)c;
    return sizeof head + len;
}

bool trib_model_coefficients(struct trib_model *m, const uint8_t *src, size_t len,
                             size_t n)
{
    const size_t length = m->kind->length(m, n);
    struct word_head head;

    if (!head_read(m->codec, src, len, &head) || head.epoch != trib_model_epoch(m))
        return false;
    if (m->codec->coefficients)
        return trib_codec_decode(m->codec->coefficients, src + sizeof head, head.n,
                                 m->y, length) == TRIB_OK;
    if (!m->kind->sparse) {
        if (head.n == length)
            memcpy(m->y, src + sizeof head, length * sizeof(float));
        return head.n == length;
    }
    memset(m->y, 0, length * sizeof(float));
    struct pair p;
    size_t next = 0;
    for (size_t i = 0; i < head.n; i++) {
        if (!pair_take(src, i, length, &next, &p))
            return false;
        m->y[p.position] = p.value;
    }
    return true;
}

struct trib_model_chunk trib_model_with_share(const struct trib_model *m,
                                              const struct trib_model_chunk *c)
{
    struct trib_model_chunk k = *c;
    if (!k.agreed)
        k.agreed = m->agreed;
    return k;
}

trib_status_t trib_model_plain_decode(const struct trib_codec *c, const uint8_t *src,
                                      size_t len, float weight, bool overwrite,
                                      float *x, size_t n)
{
    struct word_head head;

    if (!head_read(c, src, len, &head) || head.epoch != 0 || head.n != n)
        return TRIB_ERR_CODEC;
    const struct trib_code code = {src + sizeof head, len - sizeof head, n, 0, n};
    if (overwrite)
        trib_quantise_f32.decode(c, &code, x);
    else
        trib_quantise_f32.decode_add(c, &code, weight, x);
    return TRIB_OK;
}

trib_status_t trib_model_result(struct trib_model *m, const struct trib_model_chunk *c,
                                const uint8_t *src, size_t len, float *x_out)
{
    const struct trib_model_chunk k = trib_model_with_share(m, c);

    if (trib_model_epoch(m) == 0) {
        if (trib_model_plain_decode(m->codec, src, len, 1.0f, true, x_out, c->n) !=
            TRIB_OK)
            return TRIB_ERR_CODEC;
        m->kind->learn(m, &k, NULL, x_out);
        return TRIB_OK;
    }
    if (!trib_model_coefficients(m, src, len, c->n))
        return TRIB_ERR_CODEC;
    m->kind->inverse(m, &k, m->y, false, x_out);
    m->kind->learn(m, &k, m->y, x_out);
    return TRIB_OK;
}

/* ---- sums ------------------------------------------------------------------------ */

/*
 * Return true if the inputs add: equal epochs, and equal lengths unless they are pairs.
 * first_out: head of the first input; a peer may change it in memory after this.
 */
static bool words_valid(const struct trib_codec *c, const struct trib_merge *m,
                        struct word_head *first_out)
{
    const struct trib_model_ops *kind = kind_of(c);
    const size_t most = kind->most(c, m->piece);

    for (size_t i = 0; i < m->n_words; i++) {
        const struct trib_encoded *w = &m->words[i];
        struct word_head head;
        if (!head_read(c, w->src, w->len, &head))
            return false;
        if (i == 0)
            *first_out = head;
        if (head.epoch == 0 && m->of_plan && kind->coded_always)
            return false; /* its sum may exceed the buffer */
        if (head.epoch != first_out->epoch ||
            (head.epoch == 0 ? head.n != m->n : !c->coefficients && head.n > most))
            return false;
        if (head.epoch != 0 && c->coefficients)
            continue; /* checked by the codec of the coefficients */
        if (head.epoch != 0 && kind->sparse) {
            if (!pairs_valid(w->src, head.n, most > m->piece ? most : m->piece))
                return false;
        } else if (head.n != first_out->n) {
            return false;
        }
    }
    return true;
}

static size_t pairs_of(const struct trib_encoded *w)
{
    return (w->len - sizeof(struct word_head)) / sizeof(struct pair);
}

/* Return the index of the first pair at or after a position; pairs_of: none. */
static size_t pair_from(const struct trib_encoded *w, uint32_t position)
{
    size_t low = 0, high = pairs_of(w);

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (pair_at(w->src, middle).position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Find the next position in any input, starting at `from`, and the sum there. */
static bool next_sum(const struct trib_merge *m, uint32_t from, struct pair *sum_out)
{
    bool found = false;

    for (size_t i = 0; i < m->n_words; i++) {
        const struct trib_encoded *w = &m->words[i];
        const size_t at = pair_from(w, from);
        if (at == pairs_of(w))
            continue;
        const struct pair p = pair_at(w->src, at);
        if (!found || p.position < sum_out->position)
            *sum_out = p;
        else if (p.position == sum_out->position)
            sum_out->value += p.value;
        found = true;
    }
    return found;
}

static float share_of_mean(const struct trib_merge *m)
{
    return m->final && m->ranks ? 1.0f / (float)m->ranks : 1.0f;
}

static bool add_pairs(const struct trib_merge *m, size_t most, uint8_t *dst,
                      uint32_t *n_out)
{
    struct pair p = {0, 0.0f};

    *n_out = 0;
    for (uint32_t from = 0; next_sum(m, from, &p); from = p.position + 1) {
        if (*n_out == most)
            return false;
        p.value *= share_of_mean(m);
        memcpy(dst + (size_t)(*n_out)++ * sizeof p, &p, sizeof p);
    }
    return true;
}

static void add_floats(const struct trib_codec *c, const struct trib_merge *m, size_t n,
                       float *sum)
{
    memcpy(sum, m->words[0].src + sizeof(struct word_head), n * sizeof *sum);
    for (size_t i = 1; i < m->n_words; i++)
        c->kernels->axpy_f32(sum, m->words[i].src + sizeof(struct word_head), 1.0f, n);
    if (m->final && m->ranks > 1) {
        const struct trib_reduce_args mean = {.src = {sum},
                                         .n_src = 1,
                                         .dst = {sum},
                                         .n_dst = 1,
                                         .n = n,
                                         .ranks = (int)m->ranks};
        c->kernels->reduce[TRIB_F32][TRIB_MEAN](&mean);
    }
}

static void skip_heads(const struct trib_merge *m, ptrdiff_t bytes)
{
    for (size_t i = 0; i < m->n_words; i++) {
        m->words[i].src += bytes;
        m->words[i].len -= (size_t)bytes;
    }
}

static trib_status_t add_coefficients(const struct trib_codec *c,
                                      const struct trib_merge *m, uint8_t *dst,
                                      uint32_t *n_out)
{
    struct trib_merge of_y = *m;
    size_t len;

    of_y.n = kind_of(c)->most(c, m->n);
    skip_heads(m, sizeof(struct word_head));
    const trib_status_t status = trib_codec_merge(c->coefficients, &of_y, dst, &len);
    skip_heads(m, -(ptrdiff_t)sizeof(struct word_head));
    *n_out = (uint32_t)len;
    return status;
}

trib_status_t trib_model_merge(const struct trib_codec *c, const struct trib_merge *m,
                               uint8_t *dst, size_t *len_out)
{
    const struct trib_model_ops *kind = kind_of(c);
    uint8_t *at = dst + sizeof(struct word_head);
    struct word_head head = {0, 0};

    *len_out = 0;
    if (!words_valid(c, m, &head))
        return TRIB_ERR_CODEC;
    if (head.epoch != 0 && c->coefficients) {
        const trib_status_t status = add_coefficients(c, m, at, &head.n);
        if (status != TRIB_OK)
            return status;
    } else if (head.epoch == 0 || !kind->sparse) {
        add_floats(c, m, head.n, (float *)(void *)at);
    } else if (!add_pairs(m, kind->most(c, m->piece), at, &head.n)) {
        return TRIB_ERR_CODEC;
    }
    memcpy(dst, &head, sizeof head);
    *len_out = sizeof head + head.n * unit_of(c, head.epoch);
    return TRIB_OK;
}
