/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of settings by name.
 */
#ifndef TOOLS_COMMON_SETTING_VALUES_H
#define TOOLS_COMMON_SETTING_VALUES_H

#include <stdbool.h>
#include <stddef.h>

/** tool_setting - copy the value of a setting, such as "TRIB_CODEC". Return false if
 * there is no such setting or it has its default value. */
bool tool_setting(const char *name, char *value, size_t bytes);

#endif
