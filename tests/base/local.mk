# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/base/test_config
TESTS += tests/base/test_config
tests_base_test_config_SOURCES = tests/base/test_config.c
