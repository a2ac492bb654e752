# SPDX-License-Identifier: BSD-3-Clause
#
# fuzz_x.c defines LLVMFuzzerTestOneInput; its corpus is tests/fuzz/corpus/fuzz_x.tar. With
# --enable-fuzz it is linked with libFuzzer, otherwise with replay.c, which every check runs.
# To add a target, append it to fuzz_targets and create a corpus with scripts/fuzz-corpus.
fuzz_targets = tests/fuzz/fuzz_announce tests/fuzz/fuzz_boot tests/fuzz/fuzz_codec tests/fuzz/fuzz_codec_text \
	tests/fuzz/fuzz_config tests/fuzz/fuzz_control tests/fuzz/fuzz_feedback tests/fuzz/fuzz_frame tests/fuzz/fuzz_launch \
	tests/fuzz/fuzz_live tests/fuzz/fuzz_meet tests/fuzz/fuzz_message tests/fuzz/fuzz_newcomer tests/fuzz/fuzz_model \
	tests/fuzz/fuzz_page tests/fuzz/fuzz_encoded_pairs tests/fuzz/fuzz_plan_state tests/fuzz/fuzz_put tests/fuzz/fuzz_racks \
	tests/fuzz/fuzz_region tests/fuzz/fuzz_session tests/fuzz/fuzz_snapshot tests/fuzz/fuzz_start tests/fuzz/fuzz_store \
	tests/fuzz/fuzz_store_talk tests/fuzz/fuzz_tree tests/fuzz/fuzz_verbs_call
tests_fuzz_fuzz_put_LDADD = libput.la libtools.la libperf.la $(fuzz_link)
tests_fuzz_fuzz_session_SOURCES = tests/fuzz/fuzz_session.c tests/fuzz/edits.h tests/fuzz/nowhere.h \
	agg/daemon/worker.c agg/daemon/worker.h agg/daemon/aggregator.c agg/daemon/aggregator.h agg/daemon/aggregator_step.c \
	agg/daemon/job_settings.c agg/daemon/job_settings.h agg/daemon/aggregator_metrics.c agg/daemon/aggregator_metrics.h
tests_fuzz_fuzz_session_LDADD = libservice.la $(fuzz_link) $(MICROHTTPD_LIBS)
tests_fuzz_fuzz_snapshot_LDADD = libservice.la $(fuzz_link)
tests_fuzz_fuzz_store_LDADD = libservice.la $(fuzz_link)
tests_fuzz_fuzz_store_talk_LDADD = libservice.la $(fuzz_link)
check_PROGRAMS += $(fuzz_targets)
fuzz_programs = $(fuzz_targets)
check_LTLIBRARIES += libcorpus.la
libcorpus_la_SOURCES = tests/harness/corpus_tar.c tests/harness/corpus_tar.h
# Not the LDADD of the tests: its main would replace that of libFuzzer.
FUZZ_LIBS = libtributary_all.la $(TRIB_LIBS) $(CMOCKA_LIBS)
if TRIB_FUZZ
fuzz_link = $(FUZZ_LIBS)
$(fuzz_programs): private AM_LDFLAGS += -fsanitize=fuzzer
else
check_LTLIBRARIES += libreplay.la
libreplay_la_SOURCES = tests/fuzz/replay.c
fuzz_link = libreplay.la libcorpus.la $(FUZZ_LIBS)
$(fuzz_programs): libreplay.la libcorpus.la
TESTS += $(fuzz_targets)
endif
$(fuzz_targets): private LDADD = $(fuzz_link)
EXTRA_DIST += tests/fuzz/fuzz.sh tests/fuzz/reach.h tests/fuzz/corpus
