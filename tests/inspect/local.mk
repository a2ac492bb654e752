# SPDX-License-Identifier: BSD-3-Clause
inspect_tests = \
	tests/inspect/draw/test_draw_tree \
	tests/inspect/test_rank_pages
check_PROGRAMS += $(inspect_tests)
TESTS += $(inspect_tests)
