/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pages of a region, as a device has them: those that were mapped when the region
 * was registered, whatever is mapped at the same addresses now. The kernel's io_uring
 * pins them as fixed buffers.
 */
#ifndef TESTS_HARNESS_FAKE_PAGES_H
#define TESTS_HARNESS_FAKE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

struct fake_pages;

/** fake_pages_work - return true if this machine has io_uring. */
bool fake_pages_work(void);

/** fake_pages_pin - pin the pages of a range; NULL and errno on failure. */
struct fake_pages *fake_pages_pin(void *ptr, size_t len);

void fake_pages_unpin(struct fake_pages *pages);

/** fake_pages_copy - copy between pinned pages; the pointers lie in the pinned ranges,
 * which may be unmapped. Thread: one at a time. */
bool fake_pages_copy(const struct fake_pages *to, const void *dst,
                     const struct fake_pages *from, const void *src, size_t len);

#endif
