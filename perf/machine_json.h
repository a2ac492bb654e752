/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PERF_MACHINE_JSON_H
#define PERF_MACHINE_JSON_H

#include <jansson.h>

/**
 * perf_machine_json - host, processor, cores, memory, kernel, compiler.
 *
 * owner    the caller's reference; NULL without memory
 */
json_t *perf_machine_json(void);

/** perf_machine_note - the cores that this process may use now are those of the
 * document, whatever ranks are bound to later. */
void perf_machine_note(void);

/** perf_settings_json - the settings that differ from their defaults, with origin. */
json_t *perf_settings_json(void);

#endif
