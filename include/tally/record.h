/* perf_event's records as data: perf_event_open(2) "MMAP layout", linux/perf_event.h.
 *
 * The same decoder reads records from a live ring (tally/ring.h), a file or a pipe (tally/data.h).
 * Nothing is copied: decoded structs point into the record's bytes.  The functions are in libtally,
 * or in the program of those who build src/engine/abi themselves.  They keep no state, so any thread may
 * call them.  C99, C++. */
#ifndef TALLY_RECORD_H
#define TALLY_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tally/perf_event.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values that read(2) returns and PERF_SAMPLE_READ carries, by read_format. */
struct tally_read_values {
	uint64_t time_enabled, time_running; /* ns; 0 if not in read_format */
	uint64_t count;                      /* number of members; 1 without FORMAT_GROUP */
	const uint64_t *values;              /* `stride` words per member: value [id] [lost] */
	unsigned stride;
};

/* User or interrupted registers: perf_event_open(2), PERF_SAMPLE_REGS_USER. */
struct tally_sample_regs {
	uint64_t abi;          /* 0 none, 1 32-bit, 2 64-bit */
	/* a word for each bit of the attr's mask, low bit first; NULL if abi is 0 */
	const uint64_t *words;
	unsigned count;
};

/* One branch of PERF_SAMPLE_BRANCH_STACK. */
struct tally_branch {
	uint64_t from, to, flags;
};

struct tally_sample {
	uint64_t type; /* attr.sample_type: says which of the fields below are present */
	uint64_t id;   /* IDENTIFIER or ID */
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time; /* ns of the event's clock */
	uint64_t addr, stream_id;
	uint32_t cpu;
	uint64_t period; /* without SAMPLE_PERIOD: the attribute's if it is fixed, else 1 */
	struct tally_read_values read;
	const uint64_t *chain; /* leaf first, with context markers */
	uint64_t chain_length;
	const void *raw;
	uint32_t raw_size;
	const struct tally_branch *branches;
	uint64_t branch_count;
	uint64_t branch_hw_index;
	struct tally_sample_regs regs_user, regs_intr;
	const void *stack;         /* copy of the user stack, from the stack pointer up */
	uint64_t stack_size;       /* bytes requested */
	uint64_t stack_dynamic_size; /* bytes that are valid */
	/* start and end of these two fields together; NULL if neither is present */
	const uint8_t *regs_user_start, *stack_user_end;
	uint64_t weight, data_src, transaction, phys_addr, cgroup, data_page_size, code_page_size;
	const void *aux;
	uint64_t aux_size;
};

/* Place and time of a record other than SAMPLE (with attr.sample_id_all). */
struct tally_sample_id {
	bool present;
	uint32_t pid, tid;
	uint64_t time, id, stream_id;
	uint32_t cpu;
};

struct tally_record_mmap { /* of MMAP and MMAP2 */
	uint32_t pid, tid;
	uint64_t start, length, file_offset;
	bool has_inode; /* MMAP2 without MISC_MMAP_BUILD_ID */
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	uint8_t build_id_size; /* 0: none */
	uint8_t build_id[20];
	uint32_t protection, flags; /* mmap(2)'s; only in MMAP2 */
	const char *filename;
};

struct tally_record_task { /* of FORK and EXIT */
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time;
};

struct tally_record_comm { uint32_t pid, tid; const char *comm; };
struct tally_record_lost { uint64_t id, lost; };
struct tally_record_throttle { uint64_t time, id, stream_id; };
struct tally_record_read { uint32_t pid, tid; struct tally_read_values values; };
struct tally_record_aux { uint64_t offset, size, flags; };
struct tally_record_switch { bool has_next; uint32_t next_prev_pid, next_prev_tid; };
struct tally_record_namespaces { uint32_t pid, tid; uint64_t count; const uint64_t *dev_inode; };
struct tally_record_ksymbol {
	uint64_t address;
	uint32_t length;
	uint16_t type, flags;
	const char *name;
};
struct tally_record_bpf { uint16_t type, flags; uint32_t id; const uint8_t *tag; };
struct tally_record_cgroup { uint64_t id; const char *path; };
/* CALLCHAIN_DEFERRED: the user part of those chains of the thread that end in CONTEXT_USER_DEFERRED
 * and this cookie. */
struct tally_record_deferred { uint64_t cookie, chain_length; const uint64_t *chain; };
struct tally_record_text_poke {
	uint64_t address;
	uint16_t old_length, new_length;
	const uint8_t *bytes;
};

/* A decoded record of one of the kernel's types; `header.type` says which union member is valid. */
struct tally_record {
	struct tally_record_header header;
	struct tally_sample_id sample_id; /* of all types but SAMPLE */
	__extension__ union {
		struct tally_sample sample;
		struct tally_record_mmap mmap;
		struct tally_record_task task;
		struct tally_record_comm comm;
		struct tally_record_lost lost; /* LOST; also LOST_SAMPLES, without id */
		struct tally_record_throttle throttle;
		struct tally_record_read read;
		struct tally_record_aux aux;
		struct { uint32_t pid, tid; } itrace_start;
		struct tally_record_switch switched;
		struct tally_record_namespaces namespaces;
		struct tally_record_ksymbol ksymbol;
		struct tally_record_bpf bpf;
		struct tally_record_cgroup cgroup;
		struct tally_record_text_poke text_poke;
		uint64_t hw_id; /* AUX_OUTPUT_HW_ID */
		struct tally_record_deferred deferred;
	};
};

/* Decodes one record of the kernel's types (below TALLY_RECORD_KERNEL_MAX), in native byte order.
 * `bytes` is 8-byte aligned and holds `size` bytes, which the header's size must not exceed.
 * `attr` is that of the event that wrote the record, and determines its layout.  Returns 0,
 * -EBADMSG if the fields don't fit in the record, or -ENOTSUP for a type that isn't the
 * kernel's. */
int tally_record_decode(const struct tally_attr *attr, const void *bytes, size_t size,
			struct tally_record *record);

/* Parses `size` bytes at `bytes` that read(2) returned, or the READ field of a sample.  Returns the
 * number of bytes used, or -EBADMSG. */
long tally_read_values_parse(uint64_t read_format, const void *bytes, size_t size,
			     struct tally_read_values *out);

/* Returns the name of a record type, for example "SAMPLE" for 9; NULL if the type is undefined. */
const char *tally_record_type_name(uint32_t type);

#ifdef __cplusplus
}
#endif

#endif
