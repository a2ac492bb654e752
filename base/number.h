/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers in the texts of codecs and feedback: with a point, whatever the language of
 * the program. Between enter and leave printf and strtod of this thread do so.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

/** trib_number_enter - returns what leave takes; *plain_out too. */
locale_t trib_number_enter(locale_t *plain_out);
void trib_number_leave(locale_t plain, locale_t before);

/** trib_number_read - decimals alone: no "nan", "inf", "0x1p3", blanks or "+". */
bool trib_number_read(const char *text, double *value_out);

/** trib_number_take - trib_number_read outside of enter and leave. */
bool trib_number_take(const char *text, double *value_out);

/** trib_number_print - the shortest decimal that reads back as v, without a "+". */
void trib_number_print(char *out, size_t bytes, double v);

#endif
