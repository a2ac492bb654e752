# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/inspect/draw/test_draw_tree tests/inspect/test_rank_pages
