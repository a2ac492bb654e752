/* SPDX-License-Identifier: BSD-3-Clause */
/* Sparse and encoded requests of one rank, in order and out of order. */
#include "agg/store/store_form.h"

#include "compress/vectors/vector_words.h"
#include "tests/agg/store/peer_rig.h"

/* Sparse requests ------------------------------------------------------------------ */

static struct trib_control indices(const uint32_t *at, uint64_t count, uint64_t from,
                                   uint32_t n)
{
    return (struct trib_control){
        .kind = TRIB_CONTROL_STORE_INDEX,
        .store_index = {.count = count,
                        .offset = 4 * from,
                        .data = {(const uint8_t *)(at + from), 4 * n}}};
}

static struct trib_control pairs(const struct rig *rig, uint64_t number, uint32_t n)
{
    return (struct trib_control){
        .kind = TRIB_CONTROL_STORE_PUSH,
        .store_push = {.purpose = TRIB_CONTROL_PUSH_GIVE,
                       .number = number,
                       .data = {(const uint8_t *)(rig->x + 1), 4 * n}}};
}

static struct trib_control pull_of(uint64_t count)
{
    return (struct trib_control){
        .kind = TRIB_CONTROL_STORE_PULL,
        .store_pull = {.count = count, .bound = TRIB_CONTROL_UNBOUNDED}};
}

static void heard(struct rig *rig, const float *values, uint32_t n)
{
    const struct trib_control m = hear(rig, TRIB_CONTROL_STORE_DATA);

    assert_int_equal(m.store_data.data.n, 4 * n);
    assert_memory_equal(m.store_data.data.at, values, 4 * n);
}

TEST(test_sparse)
{
    static const uint32_t at[] = {0, 5, 777, COUNT - 1}, any[] = {777, 0, 777, 1, 5};
    struct rig *rig = rig_open(0);
    struct trib_control m, none;

    open_vector(rig);
    for (uint32_t n = 0; n < 4; n += 2) {
        m = indices(at, 4, n, 2);
        assert_status(say(rig, &m), TRIB_OK);
        assert_false(trib_store_peer_next(rig->peer, &none));
    }
    m = pairs(rig, 1, 4);
    assert_status(say(rig, &m), TRIB_OK);
    heard(rig, (const float[]){1, 2, 3, 4}, 4);
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    m = indices(at, 0, 0, 0); /* a push of no pairs is valid */
    assert_status(say(rig, &m), TRIB_OK);
    m = pairs(rig, 2, 0);
    assert_status(say(rig, &m), TRIB_OK);
    assert_int_equal(hear(rig, TRIB_CONTROL_STORE_DONE).store_state.version, 2);
    m = indices(any, 5, 0, 5);
    assert_status(say(rig, &m), TRIB_OK);
    m = pull_of(5);
    assert_status(say(rig, &m), TRIB_OK);
    heard(rig, (const float[]){3, 1, 3, 0, 2}, 5);
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    m = pull_of(COUNT); /* the indices were valid for one pull only */
    assert_status(say(rig, &m), TRIB_OK);
    m = hear(rig, TRIB_CONTROL_STORE_DATA);
    assert_int_equal(m.store_data.data.n, PIECE);
    const struct trib_store_counts n = trib_store_peer_counts(rig->peer);
    assert_int_equal(n.received, 16 + 16 + 20);
    assert_int_equal(n.sent, 16 + 20 + PIECE);
    rig_close(rig);
}

/* Check that a rank that has just opened the vector can send the first message but not
 * the second, or, without a second, not the first. */
static void not_due(const struct trib_control *first, const struct trib_control *second,
                    const char *words)
{
    struct rig *rig = rig_open(0);

    open_vector(rig);
    if (second)
        assert_status(say(rig, first), TRIB_OK);
    assert_status(say(rig, second ? second : first), TRIB_ERR_PROTOCOL);
    if (!strstr(rig->err.text, words))
        fail_msg("%s", rig->err.text);
    rig_close(rig);
}

TEST(test_sparse_not_due)
{
    static const uint32_t at[] = {0, 5, 777, 7}, far[] = {1, COUNT};
    struct rig *rig = rig_open(0);
    struct trib_control good = indices(at, 3, 0, 3), m, then;

    m = indices(far, 2, 0, 2);
    not_due(&m, NULL, "index is 20000");
    m = indices(at, 3, 1, 2);
    not_due(&m, NULL, "unexpected");
    m = indices(at, 3, 0, 4);
    not_due(&m, NULL, "do not continue 3 indices");
    m = good;
    m.store_index.vector = 1;
    not_due(&m, NULL, "unexpected");
    m = good;
    m.store_index.data.n = 6;
    not_due(&m, NULL, "do not continue");
    not_due(&good, &good, "unexpected");
    m = opening("y");
    not_due(&good, &m, "unexpected message STORE_OPEN");
    m = pull_of(2);
    not_due(&good, &m, "does not match the preceding indices");
    m = pull_of(3);
    m.store_pull.first = 1;
    not_due(&good, &m, "does not match the preceding indices");
    m = pairs(rig, 1, 3);
    m.store_push.purpose = TRIB_CONTROL_PUSH_SET;
    not_due(&good, &m, "does not match the preceding indices");
    m = pairs(rig, 1, 4);
    not_due(&good, &m, "do not continue push 1");
    m = indices(at, 4, 0, 4); /* the last index is below the one before */
    then = pairs(rig, 1, 4);
    not_due(&m, &then, "does not match the preceding indices");
    m = indices(at, 4, 0, 3); /* one index is missing */
    not_due(&m, &then, "does not match the preceding indices");
    m = (struct trib_control){.kind = TRIB_CONTROL_STORE_CODEC};
    snprintf(m.store_codec.codec, sizeof(m.store_codec.codec), "bf16");
    not_due(&good, &m, "unexpected");
    not_due(&m, &good, "unexpected");
    rig_close(rig);
}

/* Memory for indices is charged to the quota; their push is read to its end. */
TEST(test_sparse_refused)
{
    static const uint32_t at[] = {0, 5, 777};
    struct rig *rig = rig_open(BYTES + 4096);
    struct trib_control m = indices(at, UINT64_C(1) << 40, 0, 3);

    open_vector(rig);
    assert_status(say(rig, &m), TRIB_OK);
    rig_close(rig);
    rig = rig_open(0);
    open_vector(rig);
    rig->quota.most = trib_quota_held_mt(&rig->quota) + 11;
    m = indices(at, 3, 0, 3);
    assert_status(say(rig, &m), TRIB_OK);
    m = pairs(rig, 1, 3);
    assert_status(say(rig, &m), TRIB_OK);
    m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
    assert_non_null(
        strstr(m.store_refused.text, "12 bytes for a push or pull of rank 1"));
    m = indices(at, 3, 0, 3);
    assert_status(say(rig, &m), TRIB_OK);
    m = pull_of(3);
    assert_status(say(rig, &m), TRIB_OK);
    (void)hear(rig, TRIB_CONTROL_STORE_REFUSED);
    rig->quota.most = 0;
    push(rig, 1, TRIB_CONTROL_PUSH);
    assert_int_equal(hear(rig, TRIB_CONTROL_STORE_DONE).store_state.version, 1);
    rig_close(rig);
}

/* Encoded requests ----------------------------------------------------------------- */

struct coded {
    struct trib_codec *codec;
    struct trib_words *words;
    uint8_t *bytes;
    size_t n;
    float *decoded; /* [COUNT] */
};

static void decode(struct coded *c)
{
    trib_words_begin(c->words);
    assert_status(trib_words_take(c->words, c->bytes, c->n, c->decoded), TRIB_OK);
}

static struct coded encode(const char *text, const float *x,
                           const struct trib_encode_key *key)
{
    struct coded c = {.decoded = malloc(BYTES)};
    const struct trib_words_source source = {.x = x, .key = *key};

    assert_non_null(c.decoded);
    assert_status(trib_codec_create(text, NULL, NULL, &c.codec), TRIB_OK);
    assert_status(trib_words_open(c.codec, COUNT, &c.words), TRIB_OK);
    c.bytes = malloc(trib_words_bound(c.words));
    assert_non_null(c.bytes);
    for (size_t i = 0; i < trib_words_chunks(c.words); i++)
        c.n += trib_words_encode(c.words, i, &source, c.bytes + c.n);
    decode(&c);
    return c;
}

static void coded_free(struct coded *c)
{
    trib_words_close(c->words);
    trib_codec_destroy(c->codec);
    free(c->bytes);
    free(c->decoded);
}

static struct trib_control codec_of(const char *text, uint64_t bytes)
{
    struct trib_control m = {.kind = TRIB_CONTROL_STORE_CODEC,
                             .store_codec = {.bytes = bytes}};

    snprintf(m.store_codec.codec, sizeof(m.store_codec.codec), "%s", text);
    return m;
}

static trib_status_t push_coded(struct rig *rig, const struct coded *c, uint64_t number)
{
    struct trib_control m = codec_of(trib_codec_info(c->codec)->text, c->n);
    trib_status_t st = say(rig, &m);

    for (size_t at = 0; at < c->n && st == TRIB_OK; at += PIECE) {
        const size_t left = c->n - at;
        m = (struct trib_control){
            .kind = TRIB_CONTROL_STORE_PUSH,
            .store_push = {
                .purpose = TRIB_CONTROL_PUSH,
                .number = number,
                .offset = at,
                .data = {c->bytes + at, (uint32_t)(left < PIECE ? left : PIECE)}}};
        st = say(rig, &m);
    }
    return st;
}

/* Push x encoded by a codec, and pull it encoded if the codec permits that. */
static void check_codec(const char *text)
{
    struct rig *rig = rig_open(0);
    struct trib_encode_key key = {.seed = 9};
    struct coded c = encode(text, rig->x, &key), back;
    struct trib_control m;
    uint64_t bytes = 0;

    open_vector(rig);
    assert_status(push_coded(rig, &c, 1), TRIB_OK);
    assert_int_equal(hear(rig, TRIB_CONTROL_STORE_DONE).store_state.version, 1);
    assert_int_equal(trib_store_peer_counts(rig->peer).received, c.n);
    for (uint64_t i = 0; i < COUNT; i++) /* it was 0: 0 + -0 is 0 */
        c.decoded[i] += 0.0f;
    assert_memory_equal(trib_store_floats(rig->table, 0, 0), c.decoded, BYTES);
    m = codec_of(text, 0);
    assert_status(say(rig, &m), TRIB_OK);
    m = pull_of(COUNT);
    assert_status(say(rig, &m), TRIB_OK);
    if (trib_words_check_state(c.codec, NULL) != TRIB_OK) {
        m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
        assert_int_equal(m.store_refused.status, -TRIB_ERR_UNSUPPORTED);
        assert_non_null(strstr(m.store_refused.text, "is biased"));
        coded_free(&c);
        rig_close(rig);
        return;
    }
    key = (struct trib_encode_key){
        .seed = trib_store_seed(rig->table, 0), .step = 1, .stream = 1};
    back = encode(text, c.decoded, &key);
    while (bytes < back.n) {
        m = hear(rig, TRIB_CONTROL_STORE_DATA);
        assert_int_equal(m.store_data.offset, bytes);
        assert_memory_equal(m.store_data.data.at, back.bytes + bytes,
                            m.store_data.data.n);
        bytes += m.store_data.data.n;
    }
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    coded_free(&back);
    coded_free(&c);
    rig_close(rig);
}

TEST(test_coded)
{
    for (size_t c = 0; c < trib_codecs_count; c++)
        for (int t = 0; trib_codecs[c].texts[t]; t++)
            if (!(trib_codecs[c].flags & (TRIB_CODEC_IDENTITY | TRIB_CODEC_MODEL)))
                check_codec(trib_codecs[c].texts[t]);
}

/* Invalid code words end the connection and leave the vector unchanged. */
static void bad_words(struct coded *c, const char *words)
{
    struct rig *rig = rig_open(0);

    open_vector(rig);
    assert_status(push_coded(rig, c, 1), TRIB_ERR_PROTOCOL);
    if (!strstr(rig->err.text, words))
        fail_msg("%s", rig->err.text);
    assert_int_equal(trib_store_version(rig->table, 0), 0);
    for (int i = 0; i < COUNT; i++)
        assert_true(trib_store_floats(rig->table, 0, 0)[i] == 0);
    rig_close(rig);
}

static void coded_refused(const char *text, trib_status_t status, const char *words)
{
    struct rig *rig = rig_open(0);
    struct trib_control m = codec_of(text, 3);

    open_vector(rig);
    assert_status(say(rig, &m), TRIB_OK);
    m = piece(rig, 1, 0);
    m.store_push.data.n = 3; /* read to its end */
    assert_status(say(rig, &m), TRIB_OK);
    m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
    assert_int_equal(m.store_refused.status, -status);
    if (!strstr(m.store_refused.text, words))
        fail_msg("%s", m.store_refused.text);
    push(rig, 1, TRIB_CONTROL_PUSH);
    (void)hear(rig, TRIB_CONTROL_STORE_DONE);
    rig_close(rig);
}

TEST(test_coded_refused)
{
    struct rig *rig = rig_open(0);
    const struct trib_encode_key key = {.seed = 9};
    struct coded c = encode("topk:ratio=0.01", rig->x, &key);
    const size_t all = c.n;

    coded_refused("topq", TRIB_ERR_CODEC, "did you mean \"topk\"");
    coded_refused("none", TRIB_ERR_UNSUPPORTED, "encodes nothing");
    coded_refused("powersgd", TRIB_ERR_UNSUPPORTED, "must be trained by all-reduces");
    c.n = all - 1;
    bad_words(&c, "is not a vector encoded by codec topk");
    c.n = 0;
    struct trib_control m = codec_of("topk:ratio=0.01", 0), then = piece(rig, 1, 0);
    then.store_push.data.n = 0;
    not_due(&m, &then, "is not a vector encoded by codec topk");
    m.store_codec.bytes = UINT64_MAX;
    not_due(&m, &then, "bytes, not 18446744073709551615");
    m.store_codec.vector = 1;
    not_due(&m, NULL, "unexpected codec for vector 1 of 1");
    c.n = all;
    memset(c.bytes + 4, 0xff, all - 4);
    bad_words(&c, "is not a vector encoded by codec topk");
    memset(c.bytes, 0xff, 4);
    bad_words(&c, "is not a vector encoded by codec topk");
    coded_free(&c);
    rig_close(rig);
}

/* Incompatible codecs, rules and dtypes. */
TEST(test_coded_rules)
{
    struct rig *rig = rig_open(0);
    const struct trib_encode_key key = {.seed = 9};
    struct coded c = encode("bf16", rig->x, &key);
    struct trib_control m = opening("x");

    snprintf(m.store_open.rule, sizeof(m.store_open.rule), "elastic:pull=0.5");
    assert_status(say(rig, &m), TRIB_OK);
    (void)hear(rig, TRIB_CONTROL_STORE_VECTOR);
    assert_status(push_coded(rig, &c, 1), TRIB_OK);
    m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
    assert_non_null(strstr(m.store_refused.text, "push without a codec"));
    rig_close(rig);
    rig = rig_open(0);
    m = opening("x");
    m.store_open.dtype = TRIB_F64;
    assert_status(say(rig, &m), TRIB_OK);
    (void)hear(rig, TRIB_CONTROL_STORE_VECTOR);
    assert_status(push_coded(rig, &c, 1), TRIB_OK);
    m = hear(rig, TRIB_CONTROL_STORE_REFUSED);
    assert_non_null(strstr(m.store_refused.text, "f32 or narrower floats"));
    coded_free(&c);
    rig_close(rig);
}
