# SPDX-License-Identifier: BSD-3-Clause
#
# fuzz_x.c defines LLVMFuzzerTestOneInput; its corpus is tests/fuzz/corpus/fuzz_x.tar. With
# --enable-fuzz it is linked with libFuzzer, otherwise with replay.c, which every check runs.
# To add a target, append it to fuzz_targets, add its three lines, and create a corpus with
# scripts/fuzz-corpus.
fuzz_targets = tests/fuzz/fuzz_announce tests/fuzz/fuzz_boot tests/fuzz/fuzz_codec \
	tests/fuzz/fuzz_codec_text \
	tests/fuzz/fuzz_config tests/fuzz/fuzz_control tests/fuzz/fuzz_feedback \
	tests/fuzz/fuzz_frame tests/fuzz/fuzz_launch tests/fuzz/fuzz_live \
	tests/fuzz/fuzz_meet \
	tests/fuzz/fuzz_message \
	tests/fuzz/fuzz_newcomer \
	tests/fuzz/fuzz_model tests/fuzz/fuzz_page tests/fuzz/fuzz_pair_word \
	tests/fuzz/fuzz_plan_state tests/fuzz/fuzz_put tests/fuzz/fuzz_racks \
	tests/fuzz/fuzz_region tests/fuzz/fuzz_session tests/fuzz/fuzz_snapshot \
	tests/fuzz/fuzz_start \
	tests/fuzz/fuzz_store tests/fuzz/fuzz_store_talk \
	tests/fuzz/fuzz_tree tests/fuzz/fuzz_verbs_call

tests_fuzz_fuzz_announce_LDADD = $(fuzz_link)
tests_fuzz_fuzz_announce_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_boot_LDADD = $(fuzz_link)
tests_fuzz_fuzz_boot_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_codec_LDADD = $(fuzz_link)
tests_fuzz_fuzz_codec_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_codec_text_LDADD = $(fuzz_link)
tests_fuzz_fuzz_codec_text_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_config_LDADD = $(fuzz_link)
tests_fuzz_fuzz_config_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_control_LDADD = $(fuzz_link)
tests_fuzz_fuzz_control_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_feedback_LDADD = $(fuzz_link)
tests_fuzz_fuzz_feedback_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_frame_LDADD = $(fuzz_link)
tests_fuzz_fuzz_frame_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_launch_LDADD = $(fuzz_link)
tests_fuzz_fuzz_launch_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_live_LDADD = $(fuzz_link)
tests_fuzz_fuzz_live_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_message_LDADD = $(fuzz_link)
tests_fuzz_fuzz_message_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_newcomer_LDADD = $(fuzz_link)
tests_fuzz_fuzz_newcomer_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_meet_LDADD = $(fuzz_link)
tests_fuzz_fuzz_meet_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_model_LDADD = $(fuzz_link)
tests_fuzz_fuzz_model_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_page_LDADD = $(fuzz_link)
tests_fuzz_fuzz_page_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_pair_word_LDADD = $(fuzz_link)
tests_fuzz_fuzz_pair_word_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_plan_state_LDADD = $(fuzz_link)
tests_fuzz_fuzz_plan_state_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_put_LDADD = libput.la libtools.la libperf.la $(fuzz_link)
tests_fuzz_fuzz_put_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_racks_LDADD = $(fuzz_link)
tests_fuzz_fuzz_racks_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_region_LDADD = $(fuzz_link)
tests_fuzz_fuzz_region_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_session_SOURCES = tests/fuzz/fuzz_session.c tests/fuzz/edits.h \
	tests/fuzz/nowhere.h \
	agg/daemon/worker.c agg/daemon/worker.h \
	agg/daemon/aggregator.c agg/daemon/aggregator.h \
	agg/daemon/aggregator_step.c \
	agg/daemon/job_settings.c agg/daemon/job_settings.h \
	agg/daemon/aggregator_metrics.c agg/daemon/aggregator_metrics.h
tests_fuzz_fuzz_session_LDADD = libservice.la $(fuzz_link) $(MICROHTTPD_LIBS)
tests_fuzz_fuzz_session_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_snapshot_LDADD = libservice.la $(fuzz_link)
tests_fuzz_fuzz_snapshot_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_start_LDADD = $(fuzz_link)
tests_fuzz_fuzz_start_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_store_LDADD = libservice.la $(fuzz_link)
tests_fuzz_fuzz_store_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_store_talk_LDADD = libservice.la $(fuzz_link)
tests_fuzz_fuzz_store_talk_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_tree_LDADD = $(fuzz_link)
tests_fuzz_fuzz_tree_LDFLAGS = $(fuzz_link_flags)

tests_fuzz_fuzz_verbs_call_LDADD = $(fuzz_link)
tests_fuzz_fuzz_verbs_call_LDFLAGS = $(fuzz_link_flags)

check_PROGRAMS += $(fuzz_targets)
check_LTLIBRARIES += libcorpus.la
libcorpus_la_SOURCES = tests/harness/corpus_tar.c tests/harness/corpus_tar.h
# Not LDADD: its main would take the place of libFuzzer's.
FUZZ_LIBS = libtributary_all.la $(TRIB_LIBS) $(CMOCKA_LIBS)
if TRIB_FUZZ
fuzz_link = $(FUZZ_LIBS)
fuzz_link_flags = $(AM_LDFLAGS) -fsanitize=fuzzer
else
check_LTLIBRARIES += libreplay.la
libreplay_la_SOURCES = tests/fuzz/replay.c
fuzz_link = libreplay.la libcorpus.la $(FUZZ_LIBS)
fuzz_link_flags = $(AM_LDFLAGS)
TESTS += $(fuzz_targets)
endif

EXTRA_DIST += tests/fuzz/fuzz.sh tests/fuzz/reach.h tests/fuzz/corpus
