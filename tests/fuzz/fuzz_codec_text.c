/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any text as a codec: it results in an error message, or in a codec whose canonical
 * text is its own canonical text.
 */
#include "base/error.h"
#include "compress/codec.h"
#include "compress/kernels/kernels.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* codecs */

/* Looked up once: an emulated CPU reports its features slowly. */
static const struct trib_kernels *kernels;

static void check_again(const struct trib_codec *c)
{
    const struct trib_codec_info *info = trib_codec_info(c);
    struct trib_codec *again;
    if (trib_codec_create(info->text, kernels, NULL, &again) != TRIB_OK)
        abort();
    if (strcmp(trib_codec_info(again)->text, info->text) != 0 ||
        trib_codec_info(again)->digest != info->digest ||
        trib_codec_bound(c, 1000) == 0)
        abort();
    trib_codec_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trib_error err = {0};
    struct trib_codec *c;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (!kernels)
        kernels = trib_kernels_get(NULL);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (trib_codec_create(text, kernels, &err, &c) == TRIB_OK) {
        check_again(c);
        fuzz_reached++;
        trib_codec_destroy(c);
    } else if (err.status != TRIB_ERR_CODEC || !err.text[0]) {
        abort();
    }
    free(text);
    return 0;
}
