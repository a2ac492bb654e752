/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any text as settings: a status and, on failure, an error message. Accepted settings
 * print as a text that is accepted again with the same digest.
 */
#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "tests/fuzz/reach.h"

unsigned fuzz_reached; /* lists of settings */

static void check_again(const struct trib_config *cfg)
{
    char text[4096];
    struct trib_config again;

    const char *const texts[] = {cfg->algorithm, cfg->codec,   cfg->feedback,
                                 cfg->quorum,    cfg->service, cfg->check};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strpbrk(texts[i], " ;,"))
            return; /* a value with a separator cannot be listed this way */
    trib_config_same_text(cfg, text, sizeof(text));
    for (char *p = text; *p; p++) {
        if (*p == ' ')
            *p = ';';
    }
    if (trib_config_load(&again, text, NULL, NULL) != TRIB_OK ||
        trib_config_digest(&again) != trib_config_digest(cfg))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct trib_config cfg;
    struct trib_error err = {0};
    size_t bytes;
    char printed[24];

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (trib_config_load(&cfg, text, NULL, &err) == TRIB_OK) {
        check_again(&cfg);
        fuzz_reached++;
    } else if (!err.text[0]) {
        abort();
    }
    if (trib_size_parse(text, &bytes)) {
        size_t back;
        if (!trib_size_parse(trib_size_format(bytes, printed), &back) || back != bytes)
            abort();
    }
    free(text);
    return 0;
}
