/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a file of racks, in each format: a sentence, or a tree that holds
 * together.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topo/racks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int condition)
{
    if (!condition)
        abort();
}

static void check_switches(const struct trib_racks *r)
{
    for (int i = 0; i < r->n_switches; i++) {
        const struct trib_racks_switch *s = &r->switches[i];
        need(s->parent >= -1 && s->parent < i);
        need(s->depth == (s->parent < 0 ? 0 : r->switches[s->parent].depth + 1));
        need(s->name[0] && memchr(s->name, 0, sizeof(s->name)) != NULL);
        need(s->Gbps >= 0 && s->hosts >= 0);
    }
}

static void check_hosts(const struct trib_racks *r)
{
    for (int i = 0; i < r->n_hosts; i++) {
        const struct trib_racks_host *h = &r->hosts[i];
        need(h->rack >= 0 && h->rack < r->n_switches);
        need(trib_hostname_ok(h->name));
        need(i == 0 || strverscmp(r->hosts[i - 1].name, h->name) < 0);
        need(trib_racks_find(r, h->name) == h->rack);
    }
}

static void run(const uint8_t *data, size_t size, const char *format)
{
    const struct trib_racks_source source = {"file", (const char *)data, size, format,
                                             .names_max = 300};
    struct trib_error err = {0};
    struct trib_racks *racks;

    if (trib_racks_parse(&source, &err, &racks) != TRIB_OK) {
        need(err.text[0] != '\0');
        return;
    }
    need(racks->n_switches > 0 && racks->n_switches <= 300);
    need(racks->n_hosts > 0 && racks->n_hosts <= 300);
    check_switches(racks);
    check_hosts(racks);
    trib_racks_free(racks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run(data, size, NULL);
    for (int i = 0; trib_racks_formats[i]; i++)
        run(data, size, trib_racks_formats[i]->name);
    return 0;
}
