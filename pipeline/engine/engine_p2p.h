/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table through which the engine reaches messages from rank to rank
 * (pipeline/p2p), which is built on it. An engine without such plans has none of it.
 */
#ifndef PIPELINE_ENGINE_ENGINE_P2P_H
#define PIPELINE_ENGINE_ENGINE_P2P_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trib_engine;
struct trib_event;

/** The owner of the engine's lock calls these. */
struct trib_engine_p2p_ops {
    /** Do what can be done now; true if anything moved. */
    bool (*progress)(struct trib_engine *e);
    /** Take an event; false if it is of something else. */
    bool (*take_event)(struct trib_engine *e, const struct trib_event *event);
    /** End all that is under way, after a failure. */
    void (*end)(struct trib_engine *e);
    /** Write what the oldest of them waits for, a clause. */
    void (*describe)(const struct trib_engine *e, char *text, size_t bytes);
    /** Free all of it, while the links are still there. */
    void (*close)(struct trib_engine *e);
};

/* The first member of what pipeline/p2p keeps of an engine. */
struct trib_engine_p2p {
    const struct trib_engine_p2p_ops *ops;
    uint32_t active; /* messages that are started and not done */
};

#endif
