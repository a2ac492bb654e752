/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of settings by name.
 */
#ifndef PERF_COMMON_SETTING_VALUES_H
#define PERF_COMMON_SETTING_VALUES_H

#include <stdbool.h>
#include <stddef.h>

/** perf_setting - copy the value of a setting, such as "TRIB_CODEC". Return false if
 * there is no such setting or it has its default value. */
bool perf_setting(const char *name, char *value, size_t bytes);

#endif
