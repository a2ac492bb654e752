/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table through which the engine calls messaging between ranks (pipeline/p2p),
 * which is built on the engine. An engine without message plans has no such table.
 */
#ifndef PIPELINE_RUN_ENGINE_P2P_H
#define PIPELINE_RUN_ENGINE_P2P_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trib_engine;
struct trib_event;

/** The owner of the engine's lock calls these. */
struct trib_engine_p2p_ops {
    /** Do everything that can be done now; return true if anything moved. */
    bool (*progress)(struct trib_engine *e);
    /** Handle an event; return false if it is not for messages. */
    bool (*take_event)(struct trib_engine *e, const struct trib_event *event);
    /** End all active messages after a failure. */
    void (*end)(struct trib_engine *e);
    /** Write a clause about the message that has waited longest. */
    void (*describe)(const struct trib_engine *e, char *text, size_t bytes);
    /** Free everything, while the links still exist. */
    void (*close)(struct trib_engine *e);
};

/* The first member of the engine state of pipeline/p2p. */
struct trib_engine_p2p {
    const struct trib_engine_p2p_ops *ops;
    uint32_t active; /* messages started but not finished */
};

#endif
