# SPDX-License-Identifier: BSD-3-Clause
"""Generated from the public headers by scripts/generate-python: do not edit."""
# ruff: noqa
from __future__ import annotations

from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int16, c_int32,
 c_int64, c_int8, c_long, c_size_t, c_ubyte, c_uint, c_uint16, c_uint32, c_uint64, c_uint8,
 c_ulong, c_void_p)
from typing import Any, List, Tuple

TRIB_OK = 0
TRIB_INPROGRESS = 1
TRIB_ERR_INVALID = -1
TRIB_ERR_UNSUPPORTED = -2
TRIB_ERR_OVERLAP = -3
TRIB_ERR_OVERFLOW = -4
TRIB_ERR_CODEC = -5
TRIB_ERR_BUSY = -6
TRIB_ERR_NO_RESOURCE = -20
TRIB_ERR_RANGE = -21
TRIB_ERR_PEER_LOST = -22
TRIB_ERR_TIMEOUT = -40
TRIB_ERR_MISMATCH = -41
TRIB_ERR_ABORTED = -42
TRIB_ERR_PROTOCOL = -43
TRIB_ERR_BOOT = -60
TRIB_ERR_CONFIG = -61
TRIB_ERR_NO_MEMORY = -62
TRIB_ERR_SYSTEM = -63
(TRIB_SCOPE_NONE, TRIB_SCOPE_OP, TRIB_SCOPE_ENDPOINT, TRIB_SCOPE_COMM,
 TRIB_SCOPE_CONTEXT) = range(5)
(TRIB_F32, TRIB_F64, TRIB_F16, TRIB_BF16, TRIB_I8, TRIB_I32, TRIB_I64, TRIB_U8, TRIB_I16, TRIB_U16,
 TRIB_U32, TRIB_U64, TRIB_BOOL, TRIB_F8_E4M3, TRIB_F8_E5M2, TRIB_DTYPE_COUNT) = range(16)
(TRIB_SUM, TRIB_MEAN, TRIB_MIN, TRIB_MAX, TRIB_PROD, TRIB_MEDIAN, TRIB_TRIMMED_MEAN,
 TRIB_CLIPPED_MEAN, TRIB_BAND, TRIB_BOR, TRIB_BXOR, TRIB_LAND, TRIB_LOR, TRIB_LXOR, TRIB_MINLOC,
 TRIB_MAXLOC, TRIB_OP_COUNT) = range(17)
(TRIB_ALLREDUCE, TRIB_REDUCE, TRIB_BROADCAST, TRIB_ALLGATHER, TRIB_REDUCE_SCATTER, TRIB_BARRIER,
 TRIB_GATHER, TRIB_SCATTER, TRIB_ALLTOALL, TRIB_SCAN, TRIB_EXSCAN, TRIB_COLL_COUNT) = range(12)
(TRIB_LOG_ERROR, TRIB_LOG_WARN, TRIB_LOG_INFO, TRIB_LOG_DEBUG) = range(4)
(TRIB_THREADS_ONE, TRIB_THREADS_MANY) = range(2)
(TRIB_FEED_WHOLE, TRIB_FEED_FORWARD, TRIB_FEED_BACKWARD) = range(3)
(TRIB_VERDICT_OK, TRIB_VERDICT_WARN, TRIB_VERDICT_FAIL) = range(3)
(TRIB_LIST_TRANSPORTS, TRIB_LIST_ALGORITHMS, TRIB_LIST_CODECS, TRIB_LIST_CONFIG,
 TRIB_LIST_TOPOLOGY, TRIB_LIST_CPU, TRIB_LIST_BOOTS, TRIB_LIST_MEMORY) = range(8)

trib_log_fn = CFUNCTYPE(None, c_void_p, c_int, c_char_p)

trib_idle_fn = CFUNCTYPE(c_int, c_void_p)

trib_allgather_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t)

trib_done_fn = CFUNCTYPE(None, c_void_p, c_int)

trib_group_fn = CFUNCTYPE(None, c_void_p, c_size_t, c_int)

trib_line_fn = CFUNCTYPE(None, c_void_p, c_char_p)


class trib_opts_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("rank_plus_1", c_int),
        ("ranks", c_int),
        ("root", c_char_p),
        ("config", c_char_p),
        ("log", trib_log_fn),
        ("log_arg", c_void_p),
        ("idle", trib_idle_fn),
        ("idle_arg", c_void_p),
        ("allgather", trib_allgather_fn),
        ("allgather_arg", c_void_p),
        ("threads", c_int),
        ("rewind", c_int),
    ]


class trib_reach_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("transport", c_char * 16),
        ("why", c_char * 240),
    ]


class trib_stats_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("operations", c_uint64),
        ("wire_bytes", c_uint64),
        ("payload_bytes", c_uint64),
        ("dense_bytes", c_uint64),
        ("copied_bytes", c_uint64),
        ("messages", c_uint64),
        ("shared_bytes", c_uint64),
        ("slot_bytes", c_uint64),
        ("peers", c_uint64),
        ("wait_ns", c_uint64),
        ("encode_ns", c_uint64),
        ("served", c_uint64),
        ("input_bytes", c_uint64),
        ("input_dense_bytes", c_uint64),
    ]


class trib_desc_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("send", c_void_p),
        ("recv", c_void_p),
        ("count", c_size_t),
        ("dtype", c_int),
        ("op", c_int),
        ("root", c_int),
        ("codec", c_char_p),
        ("feedback", c_char_p),
        ("algorithm", c_char_p),
        ("chunk", c_size_t),
        ("feed", c_int),
        ("quorum", c_char_p),
        ("name", c_char_p),
        ("seed", c_uint64),
        ("parameter", c_double),
        ("send_counts", POINTER(c_size_t)),
        ("send_offsets", POINTER(c_size_t)),
        ("recv_counts", POINTER(c_size_t)),
        ("recv_offsets", POINTER(c_size_t)),
        ("prescale", c_double),
        ("postscale", c_double),
        ("weighted", c_int),
        ("timeout_ms", c_int),
    ]


class trib_plan_stats_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("results", c_uint64),
        ("elements", c_uint64),
        ("zeros", c_uint64),
        ("not_finite", c_uint64),
        ("norm", c_double),
        ("mean_norm", c_double),
        ("largest", c_double),
        ("not_finite_in_all", c_uint64),
    ]


class trib_finding_t(Structure):
    _fields_ = [
        ("verdict", c_int),
        ("where", c_char_p),
        ("topic", c_char_p),
        ("text", c_char_p),
        ("cure", c_char_p),
    ]


class trib_doctor_opts_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("join", POINTER(trib_opts_t)),
        ("folder", c_char_p),
    ]


class trib_tensor_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("send", c_void_p),
        ("recv", c_void_p),
        ("count", c_size_t),
        ("dtype", c_int),
        ("dims", c_int),
        ("priority", c_int),
        ("codec", c_char_p),
        ("feedback", c_char_p),
    ]


class trib_group_rule_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("count_min", c_size_t),
        ("count_max", c_size_t),
        ("dims_min", c_int),
        ("dims_max", c_int),
        ("codec", c_char_p),
        ("feedback", c_char_p),
    ]


class trib_group_opts_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("op", c_int),
        ("parameter", c_double),
        ("feed", c_int),
        ("bucket_bytes", c_size_t),
        ("alone_bytes", c_size_t),
        ("cycle_us", c_uint),
        ("rules", POINTER(trib_group_rule_t)),
        ("n_rules", c_size_t),
        ("codec", c_char_p),
        ("feedback", c_char_p),
        ("algorithm", c_char_p),
        ("seed", c_uint64),
        ("done", trib_group_fn),
        ("arg", c_void_p),
        ("timeout_ms", c_int),
        ("reserved", c_int),
    ]


class trib_group_stats_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("tensors", c_uint64),
        ("buckets", c_uint64),
        ("fused", c_uint64),
        ("coded", c_uint64),
        ("steps", c_uint64),
        ("copied_bytes", c_uint64),
        ("agreements", c_uint64),
        ("overtaken", c_uint64),
    ]


class trib_item_t(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("value", c_char_p),
        ("detail", c_char_p),
        ("origin", c_char_p),
        ("unit", c_char_p),
        ("fault", c_char_p),
    ]


class trib_codec_param_t(Structure):
    _fields_ = [
        ("row", c_char_p),
        ("key", c_char_p),
        ("value", c_char_p),
        ("fallback", c_char_p),
        ("range", c_char_p),
        ("meaning", c_char_p),
        ("reserved", c_char_p * 2),
    ]


class trib_codec_sheet_t(Structure):
    _fields_ = [
        ("row", c_char_p),
        ("grammar", c_char_p),
        ("detail", c_char_p),
        ("text", c_char_p),
        ("stages", c_char_p * 4),
        ("linear", c_int),
        ("unbiased", c_int),
        ("sparse", c_int),
        ("feedback", c_int),
        ("learns", c_int),
        ("delta", c_double),
        ("shared", c_char_p),
        ("bytes", c_double),
        ("bytes_most", c_double),
        ("paper", c_char_p),
        ("example", c_char_p),
        ("params", POINTER(trib_codec_param_t)),
        ("n_params", c_size_t),
        ("vote", c_int),
        ("error", c_double),
        ("rounding", c_double),
        ("least", c_double),
    ]


class trib_rank_state_t(Structure):
    _fields_ = [
        ("pid", c_int),
        ("rank", c_int),
        ("ranks", c_int),
        ("root_pid", c_int),
        ("host", c_char_p),
        ("root_host", c_char_p),
        ("part", c_char_p),
        ("text", c_char_p),
        ("stopped", c_int),
        ("failed", c_int),
        ("busy", c_int),
        ("operation", c_char_p),
        ("algorithm", c_char_p),
        ("plan", c_char_p),
        ("phase", c_char_p),
        ("awaits", c_char_p),
        ("number", c_uint64),
        ("bytes", c_uint64),
        ("waits_for", c_int),
        ("at_most", c_int),
        ("age_s", c_double),
        ("operations", c_uint64),
        ("sent", c_uint64),
        ("received", c_uint64),
        ("user", c_uint64),
        ("cache", c_char_p),
    ]


class trib_neighbors_desc_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("count", c_size_t),
        ("dtype", c_int),
        ("peers", POINTER(c_int)),
        ("n_peers", c_int),
        ("late", c_int),
        ("codec", c_char_p),
    ]


class trib_neighbors_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("to", POINTER(c_int)),
        ("shares", c_void_p),
        ("n_to", c_size_t),
        ("from", POINTER(c_int)),
        ("n_from", c_size_t),
    ]


class trib_in_flight_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("steps", c_uint64),
        ("given", c_uint64),
        ("added", c_uint64),
        ("unsent", c_uint64),
        ("awaited", c_uint64),
        ("arrived", c_uint64),
        ("weight_given", c_double),
        ("weight_added", c_double),
    ]


class trib_sparse_desc_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("length", c_size_t),
        ("dtype", c_int),
        ("op", c_int),
        ("most", c_size_t),
        ("algorithm", c_char_p),
        ("name", c_char_p),
    ]


class trib_store_opts_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("key", c_char_p),
        ("snapshot_pushes", c_uint64),
        ("snapshot_s", c_double),
    ]


class trib_store_stats_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("pushes", c_uint64),
        ("pulls", c_uint64),
        ("sent_bytes", c_uint64),
        ("received_bytes", c_uint64),
        ("wait_ns", c_uint64),
    ]


class trib_vector_desc_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("count", c_size_t),
        ("dtype", c_int),
        ("shards", c_int),
        ("rule", c_char_p),
        ("initial", c_void_p),
        ("push_codec", c_char_p),
        ("pull_codec", c_char_p),
    ]


class trib_push_opts_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("rate", c_double),
        ("result", c_void_p),
        ("codec", c_char_p),
        ("indices", POINTER(c_uint64)),
        ("count", c_size_t),
    ]


class trib_pull_opts_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("first", c_size_t),
        ("count", c_size_t),
        ("at_least", c_uint64),
        ("timeout_ms", c_int),
        ("codec", c_char_p),
        ("indices", POINTER(c_uint64)),
    ]


class trib_vector_state_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("version", c_uint64),
        ("saved", c_uint64),
        ("pushes", c_uint64),
        ("lost", c_int),
        ("reserved", c_int),
    ]


class trib_topology_opts_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("xml", c_char_p),
        ("racks", c_char_p),
        ("format", c_char_p),
        ("dot", c_int),
        ("reserved", c_int),
    ]


class trib_schedule_opts_t(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("algorithm", c_char_p),
        ("ranks", c_int),
        ("bytes", c_size_t),
        ("ranks_per_host", c_int),
        ("leaders", c_int),
        ("dot", c_int),
        ("service", c_char_p),
        ("groups", c_char_p),
        ("xml", c_char_p),
    ]


trib_finding_fn = CFUNCTYPE(None, c_void_p, POINTER(trib_finding_t))
trib_item_fn = CFUNCTYPE(None, c_void_p, POINTER(trib_item_t))
trib_codec_sheet_fn = CFUNCTYPE(None, c_void_p, POINTER(trib_codec_sheet_t))
trib_rank_state_fn = CFUNCTYPE(None, c_void_p, POINTER(trib_rank_state_t))

#: Each function: name, result type, argument types.
FUNCTIONS: List[Tuple[str, Any, List[Any]]] = [
    ("trib_status_str", c_char_p, [c_int]),
    ("trib_status_name", c_char_p, [c_int]),
    ("trib_status_scope", c_int, [c_int]),
    ("trib_dtype_size", c_size_t, [c_int]),
    ("trib_dtype_name", c_char_p, [c_int]),
    ("trib_op_name", c_char_p, [c_int]),
    ("trib_coll_name", c_char_p, [c_int]),
    ("trib_op_takes", c_int, [c_int, c_int]),
    ("trib_dtype_parse", c_int, [c_char_p, POINTER(c_int)]),
    ("trib_op_parse", c_int, [c_char_p, POINTER(c_int)]),
    ("trib_coll_parse", c_int, [c_char_p, POINTER(c_int)]),
    ("trib_init", c_int, [POINTER(trib_opts_t), POINTER(c_void_p)]),
    ("trib_split", c_int, [c_void_p, c_int, c_int, POINTER(c_void_p)]),
    ("trib_free_comm", c_int, [c_void_p]),
    ("trib_try_free_comm", c_int, [c_void_p]),
    ("trib_rank", c_int, [c_void_p]),
    ("trib_size", c_int, [c_void_p]),
    ("trib_last_error", c_char_p, [c_void_p]),
    ("trib_alloc", c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    ("trib_free", c_int, [c_void_p, c_void_p]),
    ("trib_register", c_int, [c_void_p, c_void_p, c_size_t]),
    ("trib_deregister", c_int, [c_void_p, c_void_p]),
    ("trib_register_dmabuf", c_int, [c_void_p, c_int, c_size_t, c_void_p, c_size_t]),
    ("trib_progress", c_int, [c_void_p]),
    ("trib_reach", c_int, [c_void_p, c_int, POINTER(trib_reach_t)]),
    ("trib_stats", c_int, [c_void_p, POINTER(trib_stats_t)]),
    ("trib_local_create", c_int, [c_int, POINTER(c_void_p)]),
    ("trib_local_root", c_char_p, [c_void_p]),
    ("trib_local_set_pid", None, [c_void_p, c_int, c_int]),
    ("trib_local_inherit", None, [c_void_p]),
    ("trib_local_destroy", None, [c_void_p]),
    ("trib_root_create", c_int, [POINTER(c_void_p)]),
    ("trib_root_create_at", c_int, [c_char_p, POINTER(c_void_p)]),
    ("trib_root_text", c_char_p, [c_void_p]),
    ("trib_root_destroy", None, [c_void_p]),
    ("trib_allreduce", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int]),
    ("trib_reduce", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_int]),
    ("trib_broadcast", c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int]),
    ("trib_allgather", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int]),
    ("trib_reduce_scatter", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int]),
    ("trib_barrier", c_int, [c_void_p]),
    ("trib_gather", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int]),
    ("trib_scatter", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int]),
    ("trib_alltoall", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int]),
    ("trib_scan", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int]),
    ("trib_exscan", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int]),
    ("trib_allgatherv", c_int, [c_void_p, c_void_p, c_void_p, POINTER(c_size_t), POINTER(c_size_t), c_int]),
    ("trib_reduce_scatterv", c_int, [c_void_p, c_void_p, c_void_p, POINTER(c_size_t), POINTER(c_size_t), c_int, c_int]),
    ("trib_gatherv", c_int, [c_void_p, c_void_p, c_size_t, c_void_p, POINTER(c_size_t), POINTER(c_size_t), c_int, c_int]),
    ("trib_scatterv", c_int, [c_void_p, c_void_p, POINTER(c_size_t), POINTER(c_size_t), c_void_p, c_size_t, c_int, c_int]),
    ("trib_alltoallv", c_int, [c_void_p, c_void_p, POINTER(c_size_t), POINTER(c_size_t), c_void_p, POINTER(c_size_t), POINTER(c_size_t), c_int]),
    ("trib_allreduce_named", c_int, [c_void_p, c_char_p, c_void_p, c_void_p, c_size_t, c_int, c_int]),
    ("trib_plan_create", c_int, [c_void_p, c_int, POINTER(trib_desc_t), POINTER(c_void_p)]),
    ("trib_plan_allreduce", c_int, [c_void_p, POINTER(trib_desc_t), POINTER(c_void_p)]),
    ("trib_plan_start", c_int, [c_void_p]),
    ("trib_plan_start_with", c_int, [c_void_p, c_void_p, c_void_p]),
    ("trib_plan_set_scale", c_int, [c_void_p, c_double, c_double]),
    ("trib_plan_ready", c_int, [c_void_p, c_size_t, c_size_t]),
    ("trib_plan_test", c_int, [c_void_p]),
    ("trib_plan_wait", c_int, [c_void_p]),
    ("trib_plan_notify", c_int, [c_void_p, trib_done_fn, c_void_p]),
    ("trib_plan_fd", c_int, [c_void_p, POINTER(c_int)]),
    ("trib_plan_free", c_int, [c_void_p]),
    ("trib_plan_explain", c_int, [c_void_p, c_char_p, c_size_t]),
    ("trib_plan_awaits", c_int, [c_void_p, c_char_p, c_size_t]),
    ("trib_plan_sent", c_int, [c_void_p, POINTER(POINTER(c_ubyte)), POINTER(c_size_t)]),
    ("trib_plan_absent", c_int, [c_void_p, POINTER(c_size_t)]),
    ("trib_plan_stats", c_int, [c_void_p, POINTER(trib_plan_stats_t)]),
    ("trib_plan_residual_get", c_int, [c_void_p, c_size_t, c_size_t, c_void_p]),
    ("trib_plan_residual_set", c_int, [c_void_p, c_size_t, c_size_t, c_void_p]),
    ("trib_plan_state_save", c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    ("trib_plan_state_load", c_int, [c_void_p, c_void_p, c_size_t]),
    ("trib_plan_state_load_from", c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t), c_size_t]),
    ("trib_doctor", c_int, [POINTER(trib_doctor_opts_t), trib_finding_fn, c_void_p, POINTER(c_int)]),
    ("trib_comm_lost", c_int, [c_void_p, POINTER(c_int), c_int, POINTER(c_int)]),
    ("trib_comm_shrink", c_int, [c_void_p, POINTER(c_void_p)]),
    ("trib_listener_open", c_int, [c_void_p, c_char_p, POINTER(c_void_p)]),
    ("trib_listener_text", c_char_p, [c_void_p]),
    ("trib_listener_waiting", c_int, [c_void_p]),
    ("trib_listener_close", None, [c_void_p]),
    ("trib_comm_grow", c_int, [c_void_p, c_void_p, c_int, POINTER(c_void_p)]),
    ("trib_join", c_int, [c_char_p, POINTER(trib_opts_t), POINTER(c_void_p)]),
    ("trib_comm_members", c_int, [c_void_p]),
    ("trib_comm_abort", c_int, [c_void_p, c_char_p]),
    ("trib_plan_state_move", c_int, [c_void_p, c_void_p, c_uint64]),
    ("trib_plan_move", c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_uint64, POINTER(c_void_p)]),
    ("trib_allreduce_named_move", c_int, [c_void_p, c_void_p, c_char_p, c_uint64]),
    ("trib_hash", c_uint64, [c_void_p, c_size_t, c_uint64]),
    ("trib_comm_same", c_int, [c_void_p, c_uint64, POINTER(c_int), c_int, POINTER(c_int)]),
    ("trib_comm_sync", c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_int)]),
    ("trib_group_create", c_int, [c_void_p, POINTER(trib_tensor_t), c_size_t, POINTER(trib_group_opts_t), POINTER(c_void_p)]),
    ("trib_group_start", c_int, [c_void_p]),
    ("trib_group_start_with", c_int, [c_void_p, POINTER(c_void_p), POINTER(c_void_p)]),
    ("trib_group_ready", c_int, [c_void_p, c_size_t]),
    ("trib_group_test", c_int, [c_void_p]),
    ("trib_group_test_tensor", c_int, [c_void_p, c_size_t]),
    ("trib_group_wait", c_int, [c_void_p]),
    ("trib_group_wait_tensor", c_int, [c_void_p, c_size_t]),
    ("trib_group_notify", c_int, [c_void_p, trib_done_fn, c_void_p]),
    ("trib_group_fd", c_int, [c_void_p, POINTER(c_int)]),
    ("trib_group_stats", c_int, [c_void_p, POINTER(trib_group_stats_t)]),
    ("trib_group_explain", c_int, [c_void_p, c_char_p, c_size_t]),
    ("trib_group_state_save", c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    ("trib_group_state_load", c_int, [c_void_p, c_void_p, c_size_t]),
    ("trib_group_state_move", c_int, [c_void_p, c_void_p, c_uint64]),
    ("trib_group_move", c_int, [c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_void_p), c_uint64, POINTER(c_void_p)]),
    ("trib_group_free", c_int, [c_void_p]),
    ("trib_version", c_char_p, []),
    ("trib_list_each", c_int, [c_int, trib_item_fn, c_void_p]),
    ("trib_codec_check", c_int, [c_char_p, c_char_p, c_size_t]),
    ("trib_codec_describe", c_int, [c_char_p, trib_codec_sheet_fn, c_void_p]),
    ("trib_feedback_check", c_int, [c_char_p, c_char_p, c_char_p, c_size_t]),
    ("trib_ranks_each", c_int, [c_int, trib_rank_state_fn, c_void_p]),
    ("trib_iallreduce", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, POINTER(c_void_p)]),
    ("trib_ireduce", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, POINTER(c_void_p)]),
    ("trib_ibroadcast", c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, POINTER(c_void_p)]),
    ("trib_iallgather", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, POINTER(c_void_p)]),
    ("trib_ireduce_scatter", c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int, POINTER(c_void_p)]),
    ("trib_ibarrier", c_int, [c_void_p, POINTER(c_void_p)]),
    ("trib_request_test", c_int, [c_void_p]),
    ("trib_request_wait", c_int, [c_void_p]),
    ("trib_request_free", c_int, [c_void_p]),
    ("trib_plan_send", c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, POINTER(c_void_p)]),
    ("trib_plan_recv", c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, POINTER(c_void_p)]),
    ("trib_send", c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_int]),
    ("trib_recv", c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_int]),
    ("trib_isend", c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, POINTER(c_void_p)]),
    ("trib_irecv", c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, POINTER(c_void_p)]),
    ("trib_plan_neighbors", c_int, [c_void_p, POINTER(trib_neighbors_desc_t), POINTER(c_void_p)]),
    ("trib_plan_start_neighbors", c_int, [c_void_p, POINTER(trib_neighbors_t), c_void_p, c_void_p]),
    ("trib_plan_start_drain", c_int, [c_void_p, c_void_p, c_void_p]),
    ("trib_plan_in_flight", c_int, [c_void_p, POINTER(trib_in_flight_t)]),
    ("trib_plan_sparse", c_int, [c_void_p, POINTER(trib_sparse_desc_t), POINTER(c_void_p)]),
    ("trib_plan_start_sparse", c_int, [c_void_p, POINTER(c_uint64), c_void_p, c_size_t]),
    ("trib_plan_sparse_count", c_int, [c_void_p, POINTER(c_size_t)]),
    ("trib_plan_sparse_pairs", c_int, [c_void_p, POINTER(c_uint64), c_void_p, c_size_t]),
    ("trib_plan_sparse_dense", c_int, [c_void_p, c_void_p]),
    ("trib_store_open", c_int, [c_void_p, POINTER(c_void_p)]),
    ("trib_store_open_with", c_int, [c_void_p, POINTER(trib_store_opts_t), POINTER(c_void_p)]),
    ("trib_store_free", c_int, [c_void_p]),
    ("trib_store_error", c_char_p, [c_void_p]),
    ("trib_store_stats", c_int, [c_void_p, POINTER(trib_store_stats_t)]),
    ("trib_store_create", c_int, [c_void_p, POINTER(trib_vector_desc_t), POINTER(c_void_p)]),
    ("trib_store_push", c_int, [c_void_p, c_void_p, POINTER(trib_push_opts_t), POINTER(c_uint64)]),
    ("trib_store_pull", c_int, [c_void_p, c_void_p, POINTER(trib_pull_opts_t), POINTER(c_uint64)]),
    ("trib_store_wait", c_int, [c_void_p, c_uint64, c_int, POINTER(c_uint64)]),
    ("trib_store_snapshot", c_int, [c_void_p, c_void_p, POINTER(c_uint64)]),
    ("trib_store_restore", c_int, [c_void_p, c_void_p, c_int, c_void_p, POINTER(c_uint64)]),
    ("trib_store_state", c_int, [c_void_p, POINTER(trib_vector_state_t)]),
    ("trib_store_residual_get", c_int, [c_void_p, c_size_t, c_size_t, c_void_p]),
    ("trib_store_residual_set", c_int, [c_void_p, c_size_t, c_size_t, c_void_p]),
    ("trib_store_set_staleness", c_int, [c_void_p, c_int]),
    ("trib_topology_draw", c_int, [POINTER(trib_topology_opts_t), trib_line_fn, c_void_p]),
    ("trib_schedule_draw", c_int, [POINTER(trib_schedule_opts_t), trib_line_fn, c_void_p]),
    ("trib_host_of", c_int, [c_void_p, c_int]),
]

#: All structs, for the test that compares their layouts with C's.
STRUCTS: List[Any] = [trib_opts_t, trib_reach_t, trib_stats_t, trib_desc_t, trib_plan_stats_t, trib_finding_t, trib_doctor_opts_t, trib_tensor_t, trib_group_rule_t, trib_group_opts_t, trib_group_stats_t, trib_item_t, trib_codec_param_t, trib_codec_sheet_t, trib_rank_state_t, trib_neighbors_desc_t, trib_neighbors_t, trib_in_flight_t, trib_sparse_desc_t, trib_store_opts_t, trib_store_stats_t, trib_vector_desc_t, trib_push_opts_t, trib_pull_opts_t, trib_vector_state_t, trib_topology_opts_t, trib_schedule_opts_t]
