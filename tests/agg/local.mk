# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/agg/authtest.h
agg_tests = tests/agg/test_auth tests/agg/test_control tests/agg/test_question tests/agg/test_session
check_PROGRAMS += $(agg_tests)
TESTS += $(agg_tests)
service_tests = \
	tests/agg/test_http \
	tests/agg/test_jobs \
	tests/agg/test_jobs_fair \
	tests/agg/test_metrics \
	tests/agg/test_metrics_text \
	tests/agg/test_turns
check_PROGRAMS += $(service_tests)
TESTS += $(service_tests)
check_PROGRAMS += tests/agg/serve
dist_check_SCRIPTS += tests/agg/test_http.sh
TESTS += tests/agg/test_http.sh

SERVICE_TEST_LIBS = $(SERVICE_LIBS) $(CMOCKA_LIBS)
tests_agg_test_jobs_SOURCES = tests/agg/test_jobs.c
tests_agg_test_jobs_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_test_jobs_fair_SOURCES = tests/agg/test_jobs_fair.c
tests_agg_test_jobs_fair_LDADD = $(SERVICE_TEST_LIBS) -lm
tests_agg_test_turns_SOURCES = tests/agg/test_turns.c
tests_agg_test_turns_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_test_metrics_SOURCES = tests/agg/test_metrics.c tests/agg/sample.c tests/agg/sample.h
tests_agg_test_metrics_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_test_metrics_text_SOURCES = tests/agg/test_metrics_text.c tests/agg/sample.c \
	tests/agg/sample.h
tests_agg_test_metrics_text_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_test_http_SOURCES = tests/agg/test_http.c tests/agg/sample.c tests/agg/sample.h
tests_agg_test_http_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_serve_SOURCES = tests/agg/serve.c tests/agg/sample.c tests/agg/sample.h
tests_agg_serve_LDADD = $(SERVICE_TEST_LIBS)
