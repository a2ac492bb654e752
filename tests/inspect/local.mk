# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/inspect/test_rank_pages
TESTS += tests/inspect/test_rank_pages
