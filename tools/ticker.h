/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line on the terminal that tells what a command does and how far it is: from two
 * seconds on, written anew each second by a thread, as the command itself may wait.
 */
#ifndef TOOLS_TICKER_H
#define TOOLS_TICKER_H

#include <stddef.h>

/** tool_ticker_begin - "waiting for the other ranks"; nothing if standard error is no
 * terminal. Behind it no process may be forked until tool_ticker_end. */
void tool_ticker_begin(const char *what);

/** tool_ticker_say - another text. */
void tool_ticker_say(const char *what);

/** tool_ticker_part - so much of it is done; 0 of 0: that is not known. The line then
 * has an estimate of the time that is left. */
void tool_ticker_part(size_t done, size_t of);

/** tool_ticker_hide - clear the line, before something else is printed. */
void tool_ticker_hide(void);

/** tool_ticker_end - clear it for good. */
void tool_ticker_end(void);

#endif
