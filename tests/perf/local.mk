# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/perf/coll/test_loss tests/perf/coll/test_overlap_bounds tests/perf/coll/test_perf_oracle \
	tests/perf/coll/test_writer tests/perf/common/test_columns tests/perf/common/test_samples \
	tests/perf/common/test_sizes tests/perf/test_classes tests/perf/test_putargs tests/perf/test_putendpoints \
	tests/perf/test_putwire tests/perf/test_report tests/perf/test_results
check_scripts += tests/perf/coll/test_calibrate.sh tests/perf/test_agg.sh \
	tests/perf/test_bench_interrupted.sh tests/perf/test_bench_service.sh tests/perf/test_bench_tables.sh \
	tests/perf/test_versus.sh tests/perf/test_codec.sh tests/perf/test_perf_overlap.sh tests/perf/test_perf_report.sh \
	tests/perf/test_put.sh tests/perf/test_store_pushes.sh tests/perf/test_trib_perf.sh
dist_check_SCRIPTS += tests/perf/test_sim.sh
EXTRA_DIST += tests/regress/classes.csv

PERF_TEST_LIBS = $(PERF_LIBS) $(TEST_LIBS)
tests_perf_test_classes_LDADD = libcodecperf.la libcompress.la $(PUT_LIBS) $(HTSCODECS_LIBS) $(TEST_LIBS)
tests_perf_coll_test_loss_LDADD = $(PERF_TEST_LIBS)
tests_perf_coll_test_overlap_bounds_LDADD = $(PERF_TEST_LIBS)
tests_perf_coll_test_perf_oracle_LDADD = $(PERF_TEST_LIBS)
tests_perf_test_putargs_LDADD = $(PUT_LIBS) $(TEST_LIBS)
tests_perf_test_putendpoints_LDADD = $(PUT_LIBS) $(TEST_LIBS)
tests_perf_test_putwire_LDADD = $(PUT_LIBS) $(TEST_LIBS)
tests_perf_common_test_columns_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_perf_common_test_columns_LDADD = $(PERF_TEST_LIBS)
tests_perf_common_test_samples_LDADD = $(PERF_TEST_LIBS)
tests_perf_common_test_sizes_LDADD = $(PERF_TEST_LIBS)
tests_perf_test_report_LDADD = libperfreport.la $(PERF_TEST_LIBS)
tests_perf_test_results_LDADD = libaggperf.la $(PERF_TEST_LIBS)
tests_perf_coll_test_writer_LDADD = $(PERF_TEST_LIBS)

if TRIB_SIMGRID
TESTS += tests/perf/test_sim.sh
endif

EXTRA_DIST += tests/tools/parse.h
