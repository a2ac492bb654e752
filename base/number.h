/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers in codec and feedback texts always use a decimal point, whatever the
 * program's locale. Between enter and leave, printf and strtod of this thread do so.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

/** trib_number_enter - return `before` and set `plain`, both for trib_number_leave. */
locale_t trib_number_enter(locale_t *plain_out);
void trib_number_leave(locale_t plain, locale_t before);

/** trib_number_read - parse a decimal; rejects "nan", "inf", "0x1p3", blanks and
 * "+". */
bool trib_number_read(const char *text, double *value_out);

/** trib_number_take - trib_number_read for use outside enter and leave. */
bool trib_number_take(const char *text, double *value_out);

/** trib_number_print - print the shortest decimal that reads back as v, without a
 * "+". */
void trib_number_print(char *out, size_t bytes, double v);

#endif
