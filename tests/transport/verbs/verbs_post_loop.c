/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loop of frames over the device in memory, whose instructions test_verbs_cost.sh
 * counts.
 *
 * usage: verbs_post_loop FRAMES PAYLOAD   0: entries of 88 bytes; else an entry of 64
 *                                         bytes after each payload
 */
#include <stdlib.h>

#include "tests/transport/verbs/verbs_pair.h"

static void must(trib_status_t status)
{
    if (status != TRIB_OK)
        exit(1);
}

static struct trib_transport *open_side(int self, const char *text)
{
    static struct trib_config cfg = {.window = 8, .stop_timeout_ms = 300};
    static struct trib_error err;
    static struct trib_log log;
    struct trib_transport *t;
    const struct trib_transport_opts opts = {
        .self = self, .size = 2, .params = "", .cfg = &cfg, .log = &log, .err = &err};

    must(trib_transport_open(text, &opts, &t));
    return t;
}

static void poll_all(struct trib_transport *t)
{
    struct trib_event events[16];

    while (t->ops->poll(t, events, 16) == 16)
        continue;
}

/* Both sides poll after a few frames, as in the library. */
static void post_frames(struct trib_transport *const t[2], const struct trib_write *w,
                        int frames)
{
    for (int i = 0; i < frames; i++) {
        if (w[0].len)
            must(t[0]->ops->write(t[0], 1, &w[0]));
        must(t[0]->ops->write(t[0], 1, &w[1]));
        if (i % 4 < 3)
            continue;
        poll_all(t[0]);
        poll_all(t[1]);
    }
}

int main(int argc, char **argv)
{
    const size_t payload = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    struct trib_transport *t[2];
    struct trib_region *region[2];
    struct trib_address address[2];
    struct trib_remote *remote;
    struct trib_blob blob;
    void *mem;

    (void)fake_verbs_reset();
    for (int i = 0; i < 2; i++) {
        t[i] = open_side(i, argc > 3 ? argv[3] : "verbs");
        must(t[i]->ops->address(t[i], &address[i]));
        must(t[i]->ops->alloc(t[i], payload + 4096, &mem, &region[i]));
    }
    for (int i = 0; i < 2; i++)
        must(t[i]->ops->connect(t[i], !i, &address[!i]));
    must(t[1]->ops->export_region(t[1], region[1], &blob));
    must(t[0]->ops->import_region(t[0], 1, &blob, &remote));
    const struct trib_write w[2] = {{.local = region[0],
                                     .local_off = 4096,
                                     .remote = remote,
                                     .remote_off = 4096,
                                     .len = payload,
                                     .quiet = true,
                                     .signal = true,
                                     .token = 1},
                                    {.local = region[0],
                                     .remote = remote,
                                     .len = payload ? 64 : 88,
                                     .imm = 1u << 24}};
    post_frames(t, w, argc > 1 ? atoi(argv[1]) : 0);
    for (int i = 0; i < 2; i++)
        t[i]->ops->close(t[i]);
    return 0;
}
