/* What this house does with records besides decoding them; records themselves are the public
 * header's.  Freestanding. */
#ifndef TALLY_ABI_RECORD_H
#define TALLY_ABI_RECORD_H

#include "abi/attr.h"
#include "tally/record.h"

/* Set by tally's recorder in a SAMPLE whose user stack does not reach the start of its thread.  The
 * kernel never writes these bits into samples; tools give them to MMAP2 records alone. */
#define TALLY_MISC_STACK_CUT \
	TALLY_MISC_PROC_MAP_PARSE_TIMEOUT /* the copy of the stack, or the room for frames, ended */
#define TALLY_MISC_STACK_ENDED \
	TALLY_MISC_MMAP_DATA /* with _CUT: the kernel copied less than it was asked for */
#define TALLY_MISC_STACK_LOST \
	TALLY_MISC_MMAP_DATA /* without _CUT: nothing tells the caller of the last frame */
#define TALLY_MISC_STACK_INCOMPLETE (TALLY_MISC_STACK_CUT | TALLY_MISC_STACK_LOST)

/* The places of the fields in an event's samples, where they are the same in each: nothing but
 * words and, behind them, a call chain and raw data.  Most recordings are like that, and such a
 * sample is decoded by a few loads. */
struct tally_sample_layout {
	bool is_plain;   /* else tally_record_decode() is the way */
	uint8_t words;   /* before the chain, the header's among them */
	/* Which word a field is, the header being 0; 0: not there. */
	uint8_t identifier, ip, tid, time, addr, id, stream_id, cpu, period;
	bool has_chain, has_raw;
	uint64_t type; /* attr.sample_type */
	uint64_t fixed_period; /* without `period` */
};

void tally_sample_layout_init(struct tally_sample_layout *layout, const struct tally_attr *attr);

/* What tally_record_decode() does with a SAMPLE, and its answer, for a layout that is plain. */
int tally_sample_decode(const struct tally_sample_layout *layout, const void *bytes, size_t size,
			struct tally_record *record);

/* The id that says which event wrote a record, without decoding it: by `sample_type` of any event
 * of the recording (they agree on its place).  False when the records carry none. */
bool tally_record_id(const struct tally_attr *attr, const void *bytes, size_t size, uint64_t *id);

/* Whether a MMAP2 record is of Linux 3.12's first kernels, by what lies behind its inode: the
 * file's name, where later ones have `prot` and `flags`.  Of a protection the second byte is 0 in
 * either byte order. */
static inline bool tally_mmap2_is_early(const uint8_t *at, size_t left)
{
	return left >= 2 && at[0] >= ' ' && at[0] < 0x7f && at[1] >= ' ' && at[1] < 0x7f;
}

/* Bytes of the sample_id trailer that records of `attr` carry. */
size_t tally_sample_id_size(const struct tally_attr *attr);

/* Bytes of the record, trailer included, of those that its header says.  Linux (6.18:
 * perf_event_ksymbol_output() and perf_event_bpf_output() of kernel/events/core.c) adds each
 * event's trailer to the length of a KSYMBOL or BPF_EVENT that several take, and so writes them
 * longer than they are: what lies behind is what the ring held before. */
size_t tally_record_true_size(const struct tally_record_header *header, const void *bytes,
			      size_t trailer);

/* Writes the sample_id trailer for `attr` at `out` (tally_sample_id_size() bytes). */
void tally_sample_id_encode(const struct tally_attr *attr, const struct tally_sample_id *id,
			    void *out);

/* Names of bits, for dumps: a table ends with a NULL name. */
struct tally_bit_name { uint64_t bit; const char *name; };
extern const struct tally_bit_name tally_sample_type_names[]; /* "IP" … */
extern const struct tally_bit_name tally_read_format_names[]; /* "TOTAL_TIME_ENABLED" … */
extern const struct tally_bit_name
	tally_branch_type_names[]; /* "USER" …: attr.branch_sample_type */
extern const struct tally_bit_name
	tally_attr_flag_names[]; /* "disabled" … (precise_ip is not a bit) */

#endif
