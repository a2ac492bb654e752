# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/train/test_async_push_sum tests/train/test_properties tests/train/test_replicator \
	tests/train/test_replicator_faults tests/train/test_settle tests/train/trainer/test_estimate \
	tests/train/trainer/test_optimizer tests/train/trainer/test_trainer tests/train/trainer/test_trainer_move
tests_train_trainer_test_trainer_SOURCES = tests/train/trainer/test_trainer.c tests/train/quadratic.c \
	tests/train/quadratic.h
tests_train_trainer_test_trainer_LDADD = libtrain.la $(LDADD)
tests_train_test_replicator_SOURCES = tests/train/test_replicator.c tests/train/replicas.c tests/train/replicas.h
tests_train_test_replicator_LDADD = libtrain.la $(LDADD)
tests_train_test_replicator_faults_SOURCES = tests/train/test_replicator_faults.c tests/train/replicas.c \
	tests/train/replicas.h
tests_train_test_replicator_faults_LDADD = libtrain.la $(LDADD)
tests_train_trainer_test_trainer_move_SOURCES = tests/train/trainer/test_trainer_move.c tests/comm/growing.h \
	tests/train/quadratic.c tests/train/quadratic.h
tests_train_trainer_test_trainer_move_LDADD = libtrain.la $(LDADD)
tests_train_test_properties_SOURCES = tests/train/test_properties.c tests/train/quadratic.c tests/train/quadratic.h
tests_train_test_properties_LDADD = libtrain.la $(LDADD)
tests_train_test_async_push_sum_LDADD = libtrain.la $(LDADD)
tests_train_trainer_test_estimate_SOURCES = tests/train/trainer/test_estimate.c tests/train/quadratic.c \
	tests/train/quadratic.h
tests_train_trainer_test_estimate_LDADD = libtrain.la $(LDADD)
tests_train_trainer_test_optimizer_LDADD = libtrain.la $(LDADD)
tests_train_test_settle_SOURCES = tests/train/test_settle.c tests/train/quadratic.c tests/train/quadratic.h
tests_train_test_settle_LDADD = libtrain.la $(LDADD)
