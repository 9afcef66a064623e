/* perf_event as data: attributes, records, call chains, byte orders and architectures.  Freestanding. */
#ifndef TALLY_ABI_H
#define TALLY_ABI_H

#include "tally/perf_event.h"
#include "tally/record.h"

#include <stdbool.h>

/* The machines that recordings come from, by the names that uname(2) gives them.  Freestanding. */

enum tally_arch {
	TALLY_ARCH_UNKNOWN,
	TALLY_ARCH_X86_64,
	TALLY_ARCH_I386,
	TALLY_ARCH_ARM64,
	TALLY_ARCH_ARM,
	TALLY_ARCH_RISCV,
	TALLY_ARCH_POWERPC,
	TALLY_ARCH_S390,
};

/* Returns the machine named "x86_64", "i686", "aarch64", "armv7l", "riscv64", "ppc64le", "s390x" …;
 * UNKNOWN for others and NULL. */
enum tally_arch tally_arch_named(const char *machine);

/* Returns the machine that this is compiled for. */
enum tally_arch tally_arch_host(void);

/* True if a kernel of one runs programs of the other: x86-64 and i386, arm64 and arm.  An unknown
 * machine counts as related to any. */
bool tally_arch_related(enum tally_arch one, enum tally_arch other);

/* Returns perf's name of the register for a bit of attr.sample_regs_user and sample_regs_intr (each
 * machine's asm/perf_regs.h), or NULL if there is none. */
const char *tally_arch_register(enum tally_arch arch, unsigned bit);

/* Helpers for attributes, which tally/perf_event.h defines.  Freestanding. */

/* Returns the smallest known size that holds every non-zero field.  Recordings are written with it,
 * since perf 6.1 refuses more than 128 bytes. */
uint32_t tally_attr_size_needed(const struct tally_attr *attr);

/* Returns the period of samples without PERF_SAMPLE_PERIOD: the fixed period, or 1 with a
 * frequency. */
static inline uint64_t tally_attr_period(const struct tally_attr *attr)
{
	if (attr->flags & TALLY_ATTR_FREQ)
		return 1;
	return attr->sample_period;
}

/* True if the event counts time on a CPU, in ns. */
static inline bool tally_attr_is_clock(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK);
}

/* Removes PERF_SAMPLE_PERIOD if it would undo a fixed period.  If the flag is set, the kernel makes
 * one sample of every hit of a software event, tracepoint or breakpoint, and the sample has the
 * hit's weight (SPEC C7).  That suits a period of 1: a hit with a weight of a million is one
 * sample.  A larger period would have no effect; without the flag, readers take the period from the
 * attribute.  Clocks keep the flag: it changes nothing for them, and a late sample may weigh more than
 * a period (docs/process.md). */
static inline void tally_attr_honour_period(struct tally_attr *attr)
{
	if (!(attr->flags & TALLY_ATTR_FREQ) && attr->sample_period > 1 && !tally_attr_is_clock(attr))
		attr->sample_type &= ~TALLY_SAMPLE_PERIOD;
}

/* Helpers for records, which tally/record.h defines and decodes.  Freestanding. */

/* Set by tally's recorder in a SAMPLE whose user stack does not reach the start of its thread.  The
 * kernel never sets these bits in samples, and tools use them only in MMAP2 records. */
/* the copied bytes, or the room for frames, ended first */
#define TALLY_MISC_STACK_CUT TALLY_MISC_PROC_MAP_PARSE_TIMEOUT
#define TALLY_MISC_STACK_ENDED \
	TALLY_MISC_MMAP_DATA /* with _CUT: the kernel copied fewer bytes than requested */
#define TALLY_MISC_STACK_LOST \
	TALLY_MISC_MMAP_DATA /* without _CUT: the caller of the last frame can't be found */
#define TALLY_MISC_STACK_INCOMPLETE (TALLY_MISC_STACK_CUT | TALLY_MISC_STACK_LOST)

/* Positions of the fields in an event's samples, if they are the same in each sample: only words,
 * followed by a call chain and raw data.  Most recordings are like that, and such samples are
 * decoded by a few loads. */
struct tally_sample_layout {
	bool is_plain;   /* false: use tally_record_decode() */
	uint8_t words;   /* number of words before the chain, the header's included */
	/* Index of each field's word, the header being 0; 0: absent. */
	uint8_t identifier, ip, tid, time, addr, id, stream_id, cpu, period;
	bool has_chain, has_raw;
	uint64_t type; /* attr.sample_type */
	uint64_t fixed_period; /* the period if there is no `period` word */
};

void tally_sample_layout_init(struct tally_sample_layout *layout, const struct tally_attr *attr);

/* Same as tally_record_decode() of a SAMPLE, for a plain layout. */
int tally_sample_decode(const struct tally_sample_layout *layout, const void *bytes, size_t size,
			struct tally_record *record);

/* Finds the id of the event that wrote a record without decoding it, by `sample_type` of any event
 * of the recording (they agree on its place).  Returns false if the records carry no id. */
bool tally_record_id(const struct tally_attr *attr, const void *bytes, size_t size, uint64_t *id);

/* True if a MMAP2 record is one of Linux 3.12's first kernels.  There the file's name follows the
 * inode directly, where later kernels have `prot` and `flags`.  The second byte of a protection is
 * 0 in either byte order. */
static inline bool tally_mmap2_is_early(const uint8_t *at, size_t left)
{
	return left >= 2 && at[0] >= ' ' && at[0] < 0x7f && at[1] >= ' ' && at[1] < 0x7f;
}

/* Returns the bytes of the sample_id trailer in records of `attr`. */
size_t tally_sample_id_size(const struct tally_attr *attr);

/* Returns the real bytes of the record, trailer included, which may be fewer than its header says.
 * Linux (6.18: perf_event_ksymbol_output() and perf_event_bpf_output() of kernel/events/core.c)
 * adds the trailer of every event that gets a KSYMBOL or BPF_EVENT record to one length, and so
 * writes the record too long: the rest is old content of the ring. */
size_t tally_record_true_size(const struct tally_record_header *header, const void *bytes,
			      size_t trailer);

/* Writes the sample_id trailer for `attr` at `out` (tally_sample_id_size() bytes). */
void tally_sample_id_encode(const struct tally_attr *attr, const struct tally_sample_id *id,
			    void *out);

/* Names of bits, for dumps.  Tables end with a NULL name. */
struct tally_bit_name { uint64_t bit; const char *name; };
extern const struct tally_bit_name tally_sample_type_names[]; /* "IP" … */
extern const struct tally_bit_name tally_read_format_names[]; /* "TOTAL_TIME_ENABLED" … */
extern const struct tally_bit_name
	tally_branch_type_names[]; /* "USER" …: attr.branch_sample_type */
extern const struct tally_bit_name
	tally_attr_flag_names[]; /* "disabled" … (precise_ip is not a bit) */

/* Converts perf_event's data from the other byte order, in place, so that decoders see only this
 * machine's order.
 *
 * Swapping must know the layout: a record's fields have 2, 4 or 8 bytes, while strings, build-ids,
 * code and a tracepoint's data stay as they are.  Bit-fields need more than swapped bytes:
 * compilers begin them at a word's lowest bit on little-endian machines, at the highest on
 * big-endian ones.  The kernel's headers declare some in both ways (data_src); the others are
 * mirrored here: attr.flags, and the flags of branches.
 *
 * The input is untrusted: swapping stops at the first thing that doesn't fit, and decoding fails at
 * the same place.  Freestanding. */

/* A cursor over bytes to be swapped.  Once something does not fit, it stays at the end. */
struct tally_swapper {
	uint8_t *at, *end;
};

/* Swap one field (of any alignment), and return its value in this machine's order; 0 if it doesn't
 * fit. */
uint16_t tally_swap_u16(struct tally_swapper *swapper);
uint32_t tally_swap_u32(struct tally_swapper *swapper);
uint64_t tally_swap_u64(struct tally_swapper *swapper);
/* Skips bytes without byte order. */
void tally_swap_skip(struct tally_swapper *swapper, uint64_t bytes);

/* Swaps fields that a string describes: '2', '4', '8' is a field of that size; 's' a string of
 * perf.data's features (a u32 with the room, then the room); '*' repeats the field before it up to
 * the end; "{…}" is a u32 count, and the fields in the braces that many times. */
void tally_swap_fields(struct tally_swapper *swapper, const char *fields);

/* Swaps an attribute of `size` bytes, which may be of any version. */
void tally_attr_swap(void *attr, size_t size);

/* Swaps a record of one of the kernel's types.  The fields of its header are swapped already, and
 * all `header.size` bytes are present.  `attr`, in this machine's order, is that of the event that
 * wrote it.  A copied stack is treated as words of 8 bytes. */
void tally_record_swap(const struct tally_attr *attr, void *record);

/* Converts the flags of a branch, from a word that was swapped, to the order of this machine's
 * bit-fields. */
uint64_t tally_branch_flags_mirror(uint64_t flags);

/* Turns the words of PERF_SAMPLE_CALLCHAIN into addresses, leaf first: perf_event_open(2),
 * linux/perf_event.h's enum perf_callchain_context.
 *
 *     struct tally_chain_walk walk = tally_chain_walk_of(&sample, is_kernel_mode);
 *     while (tally_chain_walk_next(&walk, &address)) … walk.kernel, walk.is_return
 *
 * Inline, since recordings have hundreds of millions of these words. */

struct tally_chain_walk {
	const uint64_t *at, *end;
	bool kernel;         /* the last address is the kernel's */
	bool is_return; /* the last address is a return address, not the context's own position */
	bool has_innermost;  /* the context's first address has been given */
};

/* `kernel`: the context of addresses before the first marker, by the record's cpumode. */
static inline struct tally_chain_walk tally_chain_walk_of(const struct tally_sample *sample,
							  bool kernel)
{
	struct tally_chain_walk walk = { .at = sample->chain, .kernel = kernel };
	if (sample->chain)
		walk.end = sample->chain + sample->chain_length;
	return walk;
}

/* True for a defined marker.  Wrong frame pointers leave garbage in a chain, which may look like an
 * undefined marker. */
static inline bool tally_is_context_marker(uint64_t word)
{
	return word == TALLY_CONTEXT_HV || word == TALLY_CONTEXT_KERNEL ||
	       word == TALLY_CONTEXT_USER || word == TALLY_CONTEXT_USER_DEFERRED ||
	       word == TALLY_CONTEXT_GUEST || word == TALLY_CONTEXT_GUEST_KERNEL ||
	       word == TALLY_CONTEXT_GUEST_USER;
}

/* Returns false at the end.  Markers switch the context; the first address behind one is the
 * context's position, not a return address. */
static inline bool tally_chain_walk_next(struct tally_chain_walk *walk, uint64_t *address)
{
	while (walk->at < walk->end) {
		*address = *walk->at++;
		if (__builtin_expect(*address < TALLY_CONTEXT_MAX, 1)) {
			walk->is_return = walk->has_innermost;
			walk->has_innermost = true;
			return true;
		}
		if (!tally_is_context_marker(*address))
			continue;
		walk->kernel = *address == TALLY_CONTEXT_KERNEL ||
			       *address == TALLY_CONTEXT_GUEST_KERNEL ||
			       *address == TALLY_CONTEXT_HV;
		walk->has_innermost = false;
		/* The next word is a cookie; the stack itself is in a later record. */
		if (*address == TALLY_CONTEXT_USER_DEFERRED && walk->at < walk->end)
			walk->at++;
	}
	return false;
}

/* Returns the largest number of frames that the kernel puts into a chain: the attribute's, else the
 * default of kernel.perf_event_max_stack. */
static inline uint32_t tally_chain_limit(const struct tally_attr *attr)
{
	enum { DEFAULT_MAX_STACK = 127 };
	if (attr->sample_max_stack)
		return attr->sample_max_stack;
	return DEFAULT_MAX_STACK;
}

/* Returns the number of frames in a chain.  Markers don't count against the limit
 * (kernel/events/callchain.c). */
static inline uint64_t tally_chain_frames(const struct tally_sample *sample)
{
	uint64_t frames = 0;
	for (uint64_t i = 0; sample->chain && i < sample->chain_length; i++)
		frames += sample->chain[i] < TALLY_CONTEXT_MAX;
	return frames;
}

#endif
