# SPDX-License-Identifier: BSD-3-Clause
libcompress_la_SOURCES += \
	compress/models/model_codec.c \
	compress/models/model_parts.c \
	compress/models/autoencoder.c compress/models/autoencoder.h \
	compress/models/autoencoder_bytes.c \
	compress/models/autoencoder_parts.h \
	compress/models/conv1d.c compress/models/conv1d.h \
	compress/models/gradiveq.c \
	compress/models/lgc.c compress/models/lgc.h \
	compress/models/lgc_ps.c \
	compress/models/lgc_ring.c \
	compress/models/model.c compress/models/model.h \
	compress/models/model_ops.h \
	compress/models/model_train.c \
	compress/models/orthonormal.c compress/models/orthonormal.h \
	compress/models/pca.c compress/models/pca.h \
	compress/models/powersgd.c \
	compress/models/linear_decoder.c \
	compress/models/model_slots.c
EXTRA_DIST += compress/models/README.md
