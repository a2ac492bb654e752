/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_COMMON_MACHINE_JSON_H
#define PERF_COMMON_MACHINE_JSON_H

#include <jansson.h>

/**
 * perf_machine_json - return host, processor, cores, memory, kernel and compiler.
 *
 * owner    the caller's reference; NULL if out of memory
 */
json_t *perf_machine_json(void);

/** perf_machine_note - record the cores available now. perf_machine_json reports them
 * even if ranks are bound later. */
void perf_machine_note(void);

/** perf_settings_json - return the settings that differ from their defaults, with their
 * origin. */
json_t *perf_settings_json(void);

#endif
