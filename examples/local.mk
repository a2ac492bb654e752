# SPDX-License-Identifier: BSD-3-Clause
noinst_PROGRAMS += examples/elements examples/overlap
examples_overlap_SOURCES = examples/overlap.c
examples_overlap_LDADD = libtributary.la
examples_elements_SOURCES = examples/elements.c
examples_elements_LDADD = libtributary.la
noinst_PROGRAMS += examples/exact examples/grouped examples/looked examples/robust examples/sum
noinst_PROGRAMS += examples/sparse
examples_grouped_SOURCES = examples/grouped.c
examples_grouped_LDADD = libtributary.la
noinst_PROGRAMS += examples/grouped_loop
examples_grouped_loop_SOURCES = examples/grouped_loop.c
examples_grouped_loop_LDADD = libtributary.la
noinst_PROGRAMS += examples/interrupt
examples_interrupt_SOURCES = examples/interrupt.c
examples_interrupt_LDADD = libtributary.la
noinst_PROGRAMS += examples/ragged examples/transpose
examples_ragged_SOURCES = examples/ragged.c
examples_ragged_LDADD = libtributary.la
examples_transpose_SOURCES = examples/transpose.c
examples_transpose_LDADD = libtributary.la
noinst_PROGRAMS += examples/slowest
examples_slowest_SOURCES = examples/slowest.c
examples_slowest_LDADD = libtributary.la
noinst_PROGRAMS += examples/uneven
examples_uneven_SOURCES = examples/uneven.c
examples_uneven_LDADD = libtributary.la
noinst_PROGRAMS += examples/team
examples_team_SOURCES = examples/team.c
examples_team_LDADD = libtributary.la -lpthread
noinst_PROGRAMS += examples/firewall
examples_firewall_SOURCES = examples/firewall.c
examples_firewall_LDADD = libtributary.la
noinst_PROGRAMS += examples/rebucket
examples_rebucket_SOURCES = examples/rebucket.c
examples_rebucket_LDADD = libtributary.la
noinst_PROGRAMS += examples/store
examples_store_SOURCES = examples/store.c
examples_store_LDADD = libtributary.la
EXTRA_DIST += examples/mpi_allgather.c
noinst_PROGRAMS += examples/epoll
examples_epoll_SOURCES = examples/epoll.c
examples_epoll_LDADD = libtributary.la
noinst_PROGRAMS += examples/gossip examples/pass_on
examples_gossip_SOURCES = examples/gossip.c
examples_gossip_LDADD = libtributary.la
noinst_PROGRAMS += examples/gossip_late
examples_gossip_late_SOURCES = examples/gossip_late.c
examples_gossip_late_LDADD = libtributary.la
examples_pass_on_SOURCES = examples/pass_on.c
examples_pass_on_LDADD = libtributary.la
examples_looked_SOURCES = examples/looked.c
examples_looked_LDADD = libtributary.la
examples_robust_SOURCES = examples/robust.c
examples_robust_LDADD = libtributary.la -lm
examples_exact_SOURCES = examples/exact.c
examples_exact_LDADD = libtributary.la
examples_sparse_SOURCES = examples/sparse.c
examples_sparse_LDADD = libtributary.la
examples_sum_SOURCES = examples/sum.c
examples_sum_LDADD = libtributary.la

noinst_PROGRAMS += examples/same
examples_same_SOURCES = examples/same.c
examples_same_LDADD = libtributary.la
noinst_PROGRAMS += examples/resume examples/lost_rank
examples_lost_rank_SOURCES = examples/lost_rank.c
examples_lost_rank_LDADD = libtributary.la
noinst_PROGRAMS += examples/redo
noinst_PROGRAMS += examples/abort_all
examples_abort_all_SOURCES = examples/abort_all.c
examples_abort_all_LDADD = libtributary.la
examples_redo_SOURCES = examples/redo.c
examples_redo_LDADD = libtributary.la
examples_resume_SOURCES = examples/resume.c
examples_resume_LDADD = libtributary.la

EXTRA_DIST += examples/demo.gp examples/demo.sh examples/mpi_root.c

if TRIB_EXAMPLES
noinst_PROGRAMS += examples/train
examples_train_SOURCES = \
	examples/draw.h \
	examples/mlp.c examples/mlp.h \
	examples/mnist.c examples/mnist.h \
	examples/record.c examples/record.h \
	examples/report.c examples/report.h \
	examples/train.c \
	examples/train_options.c examples/train_options.h
examples_train_CFLAGS = $(AM_CFLAGS) $(OPENBLAS_CFLAGS) $(ZLIB_CFLAGS)
examples_train_LDADD = libtributary.la $(OPENBLAS_LIBS) $(ZLIB_LIBS) -lm
endif
EXTRA_DIST += examples/README.md

noinst_PROGRAMS += examples/parameters
examples_parameters_SOURCES = examples/parameters.c
examples_parameters_LDADD = libtributary.la
noinst_PROGRAMS += examples/safe
examples_safe_SOURCES = examples/safe.c
examples_safe_LDADD = libtributary.la
noinst_PROGRAMS += examples/embedding
examples_embedding_SOURCES = examples/embedding.c
examples_embedding_LDADD = libtributary.la

noinst_PROGRAMS += examples/replacement
examples_replacement_SOURCES = examples/replacement.c
examples_replacement_LDADD = libtributary.la
noinst_PROGRAMS += examples/shards
examples_shards_SOURCES = examples/shards.c
examples_shards_LDADD = libtributary.la
noinst_PROGRAMS += examples/notified
examples_notified_SOURCES = examples/notified.c
examples_notified_LDADD = libtributary.la -lpthread
noinst_PROGRAMS += examples/strategy
examples_strategy_SOURCES = examples/strategy.c
examples_strategy_LDADD = libtributary-train.la libtributary.la
noinst_PROGRAMS += examples/replicator/agent examples/replicator/classifier examples/replicator/gan
examples_replicator_agent_SOURCES = examples/replicator/agent.c examples/draw.h
examples_replicator_agent_LDADD = libtributary-train.la libtributary.la -lm
examples_replicator_classifier_SOURCES = examples/replicator/classifier.c examples/draw.h
examples_replicator_classifier_LDADD = libtributary-train.la libtributary.la -lm
examples_replicator_gan_SOURCES = examples/replicator/gan.c examples/draw.h
examples_replicator_gan_LDADD = libtributary-train.la libtributary.la -lm
if TRIB_ISAL
noinst_PROGRAMS += examples/coded
examples_coded_SOURCES = examples/coded.c
examples_coded_LDADD = libtributary-train.la libtributary.la -lm
endif
