/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes that a peer left in an arena: a frame, the payload of an ADVERT, a notice,
 * an event.
 */
#include "base/config.h"
#include "pipeline/link/link.h"
#include "tests/fuzz/reach.h"
#include "transport/open.h"

unsigned fuzz_reached; /* frames of the running operation, and opens */

/* Take n bytes of the input, or the rest padded with zeros. */
static void take(const uint8_t **data, size_t *size, void *to, size_t n)
{
    size_t m = n < *size ? n : *size;

    memset(to, 0, n);
    if (m)
        memcpy(to, *data, m);
    *data += m;
    *size -= m;
}

static void check_frame(const struct trib_frame *mine, const struct trib_frame *theirs)
{
    char text[80];

    memset(text, 'x', sizeof(text));
    trib_status_t st = trib_frame_check(mine, theirs, 0, 1, text, sizeof(text) - 1);
    if (st == TRIB_OK && !trib_frame_same(mine, theirs))
        abort();
    if (st != TRIB_OK && !memchr(text, 0, sizeof(text) - 1))
        abort();
    struct trib_frame_op op = trib_frame_op(theirs->signature);
    if ((op.root & ~0xffffu) ||
        trib_frame_signature(&op) != (theirs->signature & 0x7fffffffu))
        abort();
}

static struct trib_config cfg;
static struct trib_arena arena = {.size = 2, .window = 2, .slot_bytes = 256};

static void close_arena(void)
{
    struct trib_transport *t = arena.transport;

    trib_arena_destroy(&arena);
    t->ops->close(t);
}

/* Open the arena once: an input overwrites everything that an earlier one may have left
 * in it. */
static void open_arena(void)
{
    struct trib_transport_opts opts = {.size = 2, .params = "", .cfg = &cfg};

    if (trib_config_load(&cfg, NULL, NULL, NULL) != TRIB_OK ||
        trib_transport_open("shm", &opts, &arena.transport) != TRIB_OK ||
        trib_arena_create(&arena) != TRIB_OK)
        abort();
    atexit(close_arena);
}

/* Check one end of a link whose other end is the input. */
static void check_link(const uint8_t *data, size_t size)
{
    _Atomic uint32_t credits[TRIB_LANES] = {0};
    struct trib_link l = {.peer = 0};
    struct trib_oob_notice n;
    struct trib_advert open;
    struct trib_event event = {.kind = TRIB_EVENT_ARRIVED};
    uint16_t said = 0;
    uint8_t payload[TRIB_ADVERT_MAX];

    take(&data, &size, &event.imm, sizeof(event.imm));
    take(&data, &size, &said, sizeof(said));
    said %= sizeof(payload) + 1;
    take(&data, &size, payload, said);
    bool opened = trib_advert_read(payload, said, &open);
    fuzz_reached += opened;
    take(&data, &size, arena.base, arena.block_bytes);
    if (trib_link_notice(&l, &arena, 1, &n) && !memchr(n.text, 0, sizeof(n.text)))
        abort();
    l.peer = 1;
    l.transport = arena.transport;
    trib_link_event(&l, &event); /* not connected */
    l.connected = true;
    l.my_credits = credits;
    l.send[0].next = l.send[1].next = arena.window;
    if (trib_link_credits_fit(&l, &event))
        trib_link_event(&l, &event);
    if (credits[0] > arena.window || credits[1] > arena.window)
        abort();
    if (opened && (trib_link_import(&l, &open.send.blob, NULL) ||
                   trib_link_import(&l, &open.recv.blob, NULL)))
        abort(); /* not exported by any peer */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trib_frame mine, theirs;

    if (!arena.transport)
        open_arena();
    take(&data, &size, &theirs, sizeof(theirs));
    take(&data, &size, &mine, sizeof(mine));
    mine.magic = TRIB_FRAME_MAGIC;
    check_frame(&mine, &theirs);
    fuzz_reached += trib_frame_same(&mine, &theirs);
    check_frame(&theirs, &theirs);
    theirs.magic = mine.magic;
    theirs.kind = TRIB_FRAME_DATA;
    check_frame(&mine, &theirs);
    check_link(data, size);
    return 0;
}
