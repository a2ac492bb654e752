/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any text as feedback, with codecs of each kind: it results in an error message, or in
 * a rule whose canonical text is its own canonical text.
 */
#include "base/error.h"
#include "compress/codec.h"
#include "compress/feedback_rule.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* rules */

static const char *const texts[] = {"topk:ratio=0.01", "efsign", "none"};
enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };
static struct trib_codec *codecs[TEXTS]; /* created once: they do not change */

static const struct trib_codec *codec_get(int i)
{
    if (!codecs[i] && trib_codec_create(texts[i], NULL, NULL, &codecs[i]) != TRIB_OK)
        abort();
    return codecs[i];
}

static void check_rule(const char *text, const struct trib_codec *codec)
{
    struct trib_feedback_rule rule, again;
    struct trib_error err = {0};

    trib_status_t st = trib_feedback_parse(text, &err, &rule);
    if (st == TRIB_OK)
        st = trib_feedback_fit(&rule, codec, &err);
    if (st == TRIB_OK) {
        fuzz_reached++;
        if (trib_feedback_parse(rule.text, NULL, &again) != TRIB_OK ||
            trib_feedback_fit(&again, codec, NULL) != TRIB_OK ||
            strcmp(again.text, rule.text) != 0 || again.digest != rule.digest)
            abort();
        for (uint32_t step = 0; step < 5; step++) {
            const double ratio = trib_feedback_ratio(&rule, 0.01, step);
            if (!(ratio >= 0.01 && ratio <= 1))
                abort();
        }
    } else if ((st != TRIB_ERR_INVALID && st != TRIB_ERR_UNSUPPORTED) || !err.text[0]) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    for (int i = 0; i < TEXTS; i++)
        check_rule(text, codec_get(i));
    free(text);
    return 0;
}
