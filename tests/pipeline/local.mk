# SPDX-License-Identifier: BSD-3-Clause
pipeline_tests = \
	tests/pipeline/test_engine \
	tests/pipeline/test_frame \
	tests/pipeline/test_layout \
	tests/pipeline/test_link \
	tests/pipeline/test_link_import \
	tests/pipeline/test_open \
	tests/pipeline/test_program \
	tests/pipeline/test_relay \
	tests/pipeline/test_schedule \
	tests/pipeline/test_share
check_PROGRAMS += $(pipeline_tests)
TESTS += $(pipeline_tests)
tests_pipeline_test_link_SOURCES = tests/pipeline/test_link.c tests/pipeline/link_pair.h
tests_pipeline_test_link_import_SOURCES = \
	tests/pipeline/test_link_import.c tests/pipeline/link_pair.h
