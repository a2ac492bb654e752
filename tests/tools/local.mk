# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += \
	tests/tools/test_arguments \
	tests/tools/test_loss \
	tests/tools/test_oracle \
	tests/tools/test_putargs \
	tests/tools/test_putsides \
	tests/tools/test_putwire \
	tests/tools/test_samples \
	tests/tools/test_sizes \
	tests/tools/test_tally \
	tests/tools/test_writer
TESTS += \
	tests/tools/test_arguments \
	tests/tools/test_loss \
	tests/tools/test_oracle \
	tests/tools/test_putargs \
	tests/tools/test_putsides \
	tests/tools/test_putwire \
	tests/tools/test_samples \
	tests/tools/test_sizes \
	tests/tools/test_tally \
	tests/tools/test_writer

PERF_TEST_LIBS = $(PERF_LIBS) $(CMOCKA_LIBS)
tests_tools_test_arguments_SOURCES = tests/tools/test_arguments.c tests/tools/parse.h
tests_tools_test_arguments_LDADD = $(PERF_TEST_LIBS)
tests_tools_test_loss_SOURCES = tests/tools/test_loss.c
tests_tools_test_loss_LDADD = $(PERF_TEST_LIBS)
tests_tools_test_oracle_SOURCES = tests/tools/test_oracle.c
tests_tools_test_oracle_LDADD = $(PERF_TEST_LIBS)
tests_tools_test_putargs_SOURCES = tests/tools/test_putargs.c tests/tools/parse.h
tests_tools_test_putargs_LDADD = $(PUT_LIBS) $(CMOCKA_LIBS)
tests_tools_test_putsides_SOURCES = tests/tools/test_putsides.c
tests_tools_test_putsides_LDADD = $(PUT_LIBS) $(CMOCKA_LIBS)
tests_tools_test_putwire_SOURCES = tests/tools/test_putwire.c
tests_tools_test_putwire_LDADD = $(PUT_LIBS) $(CMOCKA_LIBS)
tests_tools_test_samples_SOURCES = tests/tools/test_samples.c
tests_tools_test_samples_LDADD = $(PERF_TEST_LIBS)
tests_tools_test_sizes_SOURCES = tests/tools/test_sizes.c
tests_tools_test_sizes_LDADD = $(PERF_TEST_LIBS)
tests_tools_test_tally_SOURCES = tests/tools/test_tally.c
tests_tools_test_tally_LDADD = libaggperf.la $(PERF_TEST_LIBS)
tests_tools_test_writer_SOURCES = tests/tools/test_writer.c
tests_tools_test_writer_LDADD = $(PERF_TEST_LIBS)

dist_check_SCRIPTS += \
	tests/tools/test_bench_service.sh \
	tests/tools/test_agg.sh \
	tests/tools/test_codec.sh \
	tests/tools/test_namespaces.sh \
	tests/tools/test_put.sh \
	tests/tools/test_reach.sh \
	tests/tools/test_schedule.sh \
	tests/tools/test_topo.sh \
	tests/tools/test_trib_info.sh \
	tests/tools/test_seal.sh \
	tests/tools/test_trib_perf.sh \
	tests/tools/test_trib_run.sh
TESTS += \
	tests/tools/test_bench_service.sh \
	tests/tools/test_agg.sh \
	tests/tools/test_codec.sh \
	tests/tools/test_namespaces.sh \
	tests/tools/test_put.sh \
	tests/tools/test_reach.sh \
	tests/tools/test_schedule.sh \
	tests/tools/test_topo.sh \
	tests/tools/test_trib_info.sh \
	tests/tools/test_seal.sh \
	tests/tools/test_trib_perf.sh \
	tests/tools/test_trib_run.sh
