/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress line on the terminal. After two seconds, a thread rewrites it every second,
 * as the command itself may block.
 */
#ifndef TOOLS_COMMON_TICKER_H
#define TOOLS_COMMON_TICKER_H

#include <stddef.h>

/** tool_ticker_begin - show "waiting for the other ranks"; no-op if stderr is not a
 * terminal. Do not fork until tool_ticker_end. */
void tool_ticker_begin(const char *what);

/** tool_ticker_say - change the text. */
void tool_ticker_say(const char *what);

/** tool_ticker_part - set the number of finished parts, which adds an estimate of the
 * remaining time; 0 of 0: unknown. */
void tool_ticker_part(size_t done, size_t of);

/** tool_ticker_hide - clear the line before other output is printed. */
void tool_ticker_hide(void);

/** tool_ticker_end - clear the line and stop the thread. */
void tool_ticker_end(void);

#endif
