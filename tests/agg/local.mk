# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/agg/protocol/authtest.h
check_tests += tests/agg/jobs/test_drr tests/agg/jobs/test_jobs tests/agg/jobs/test_jobs_fair \
	tests/agg/jobs/test_jobs_queue tests/agg/metrics/test_http tests/agg/metrics/test_metrics \
	tests/agg/metrics/test_metrics_prometheus tests/agg/protocol/test_auth tests/agg/protocol/test_control \
	tests/agg/protocol/test_handshake tests/agg/protocol/test_question tests/agg/protocol/test_session \
	tests/agg/store/test_store_form tests/agg/store/test_store_peer tests/agg/store/test_store_table \
	tests/agg/store/test_store_walk
check_scripts += tests/agg/metrics/test_consumers.sh
check_PROGRAMS += tests/agg/metrics/serve

SERVICE_TEST_LIBS = $(SERVICE_LIBS) $(TEST_LIBS)
tests_agg_jobs_test_jobs_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_jobs_test_jobs_fair_LDADD = $(SERVICE_TEST_LIBS) -lm
tests_agg_jobs_test_jobs_queue_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_jobs_test_drr_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_metrics_test_metrics_SOURCES = tests/agg/metrics/test_metrics.c tests/agg/metrics/sample.c \
	tests/agg/metrics/sample.h
tests_agg_metrics_test_metrics_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_metrics_test_metrics_prometheus_SOURCES = tests/agg/metrics/test_metrics_prometheus.c \
	tests/agg/metrics/sample.c tests/agg/metrics/sample.h
tests_agg_metrics_test_metrics_prometheus_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_metrics_test_http_SOURCES = tests/agg/metrics/test_http.c tests/agg/metrics/sample.c \
	tests/agg/metrics/sample.h
tests_agg_metrics_test_http_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_metrics_serve_SOURCES = tests/agg/metrics/serve.c tests/agg/metrics/sample.c tests/agg/metrics/sample.h
tests_agg_metrics_serve_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_store_test_store_form_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_store_test_store_peer_LDADD = $(SERVICE_TEST_LIBS)
tests_agg_store_test_store_table_LDADD = $(SERVICE_TEST_LIBS) -lm
tests_agg_store_test_store_walk_LDADD = $(SERVICE_TEST_LIBS) -lm

EXTRA_DIST += tests/agg/jobs/jobs_rig.h tests/agg/store/peer_rig.h
