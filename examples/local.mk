# SPDX-License-Identifier: BSD-3-Clause
noinst_PROGRAMS += examples/abort_all examples/checked examples/elements examples/embedding examples/epoll \
	examples/exact examples/firewall examples/gossip examples/gossip_late examples/grouped \
	examples/grouped_loop examples/interrupt examples/lost_rank examples/notified examples/overlap \
	examples/parameters examples/pass_on examples/ragged examples/rebucket examples/replacement \
	examples/replicator/agent examples/replicator/classifier examples/replicator/gan examples/resume \
	examples/rewind examples/robust examples/safe examples/same examples/shards examples/slowest \
	examples/sparse examples/store examples/strategy examples/sum examples/team examples/transpose \
	examples/uneven
EXTRA_DIST += examples/mpi_allgather.c examples/mpi_root.c examples/README.md
examples_abort_all_LDADD = libtributary.la
examples_checked_LDADD = libtributary.la
examples_elements_LDADD = libtributary.la
examples_embedding_LDADD = libtributary.la
examples_epoll_LDADD = libtributary.la
examples_exact_LDADD = libtributary.la
examples_firewall_LDADD = libtributary.la
examples_gossip_LDADD = libtributary.la
examples_gossip_late_LDADD = libtributary.la
examples_grouped_LDADD = libtributary.la
examples_grouped_loop_LDADD = libtributary.la
examples_interrupt_LDADD = libtributary.la
examples_lost_rank_LDADD = libtributary.la
examples_notified_LDADD = libtributary.la -lpthread
examples_overlap_LDADD = libtributary.la
examples_parameters_LDADD = libtributary.la
examples_pass_on_LDADD = libtributary.la
examples_ragged_LDADD = libtributary.la
examples_rebucket_LDADD = libtributary.la
examples_replacement_LDADD = libtributary.la
examples_replicator_agent_SOURCES = examples/replicator/agent.c examples/draw.h
examples_replicator_agent_LDADD = libtributary-train.la libtributary.la -lm
examples_replicator_classifier_SOURCES = examples/replicator/classifier.c examples/draw.h
examples_replicator_classifier_LDADD = libtributary-train.la libtributary.la -lm
examples_replicator_gan_SOURCES = examples/replicator/gan.c examples/draw.h
examples_replicator_gan_LDADD = libtributary-train.la libtributary.la -lm
examples_resume_LDADD = libtributary.la
examples_rewind_LDADD = libtributary.la
examples_robust_LDADD = libtributary.la -lm
examples_safe_LDADD = libtributary.la
examples_same_LDADD = libtributary.la
examples_shards_LDADD = libtributary.la
examples_slowest_LDADD = libtributary.la
examples_sparse_LDADD = libtributary.la
examples_store_LDADD = libtributary.la
examples_strategy_LDADD = libtributary-train.la libtributary.la
examples_sum_LDADD = libtributary.la
examples_team_LDADD = libtributary.la -lpthread
examples_transpose_LDADD = libtributary.la
examples_uneven_LDADD = libtributary.la
if TRIB_ISAL
noinst_PROGRAMS += examples/coded
examples_coded_LDADD = libtributary-train.la libtributary.la -lm
endif
