/* Decodes records.  Every field is taken from a cursor that can't run past the record.
 *
 * The order of a sample's fields is that of the kernel's perf_output_sample()
 * (kernel/events/core.c).  It differs from the comment in the kernel's header in the place of AUX,
 * which comes last. */
#include "abi/abi.h"

/* Linux's errno numbers, independent of libc: this file uses nothing but the language. */
enum { BAD_MESSAGE = 74, NOT_SUPPORTED = 95 };
enum { PROTECTION_READ = 1, PROTECTION_EXECUTE = 4 }; /* PROT_READ, PROT_EXEC */

/* The rest of a record.  Everything in a record is 8-byte aligned, except the halves of words. */
struct cursor {
	const uint8_t *at, *end;
	bool failed;
};

static const void *take(struct cursor *cursor, size_t size)
{
	if (cursor->failed || (size_t)(cursor->end - cursor->at) < size) {
		cursor->failed = true;
		return NULL;
	}
	const void *bytes = cursor->at;
	cursor->at += size;
	return bytes;
}

static uint64_t take_u64(struct cursor *cursor)
{
	const void *bytes = take(cursor, 8);
	uint64_t value = 0;
	if (bytes)
		__builtin_memcpy(&value, bytes, 8);
	return value;
}

static uint32_t take_u32(struct cursor *cursor)
{
	const void *bytes = take(cursor, 4);
	uint32_t value = 0;
	if (bytes)
		__builtin_memcpy(&value, bytes, 4);
	return value;
}

static uint16_t take_u16(struct cursor *cursor)
{
	const void *bytes = take(cursor, 2);
	uint16_t value = 0;
	if (bytes)
		__builtin_memcpy(&value, bytes, 2);
	return value;
}

/* Takes `count` items of `item` bytes each.  Fails if their total exceeds what is left. */
static const void *take_array(struct cursor *cursor, uint64_t count, size_t item)
{
	if (count > (size_t)(cursor->end - cursor->at) / item) {
		cursor->failed = true;
		return NULL;
	}
	return take(cursor, count * item);
}

static const char *take_string(struct cursor *cursor)
{
	const char *text = (const char *)cursor->at;
	size_t left = cursor->failed ? 0 : (size_t)(cursor->end - cursor->at), length = 0;
	while (length < left && text[length])
		length++;
	if (length == left) {
		cursor->failed = true;
		return "";
	}
	size_t padded = (length + 1 + 7) & ~(size_t)7;
	cursor->at += padded < left ? padded : left;
	return text;
}

static void take_read_values(struct cursor *cursor, uint64_t format, struct tally_read_values *out)
{
	bool group = format & TALLY_FORMAT_GROUP;
	*out = (struct tally_read_values){ .count = 1, .stride = 1 };
	if (group) {
		out->stride += !!(format & TALLY_FORMAT_ID) + !!(format & TALLY_FORMAT_LOST);
		out->count = take_u64(cursor);
		if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
			out->time_enabled = take_u64(cursor);
		if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
			out->time_running = take_u64(cursor);
		out->values = take_array(cursor, out->count, 8 * out->stride);
		return;
	}
	/* Without GROUP the times are between the value and its id: the stride is one word, and ids
	 * are skipped. */
	const uint8_t *value = take(cursor, 8);
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		out->time_enabled = take_u64(cursor);
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		out->time_running = take_u64(cursor);
	if (format & TALLY_FORMAT_ID)
		take_u64(cursor);
	if (format & TALLY_FORMAT_LOST)
		take_u64(cursor);
	out->values = (const uint64_t *)value;
}

long tally_read_values_parse(uint64_t read_format, const void *bytes, size_t size,
			     struct tally_read_values *out)
{
	struct cursor cursor = { .at = bytes, .end = (const uint8_t *)bytes + size };
	take_read_values(&cursor, read_format, out);
	if (cursor.failed)
		return -BAD_MESSAGE;
	return (long)(cursor.at - (const uint8_t *)bytes);
}

static void take_regs(struct cursor *cursor, uint64_t mask, struct tally_sample_regs *regs)
{
	*regs = (struct tally_sample_regs){ .abi = take_u64(cursor) };
	if (!regs->abi)
		return;
	regs->count = (unsigned)__builtin_popcountll(mask);
	regs->words = take_array(cursor, regs->count, 8);
}

static void take_raw(struct cursor *cursor, struct tally_sample *sample)
{
	sample->raw_size = take_u32(cursor);
	sample->raw = take(cursor, sample->raw_size);
	/* The kernel pads so that size word and data together are whole words; accept what perf
	 * accepts. */
	size_t odd = (4 + (size_t)sample->raw_size) & 7;
	if (!cursor->failed && odd)
		take(cursor, 8 - odd);
}

static void take_branches(struct cursor *cursor, const struct tally_attr *attr,
			  struct tally_sample *sample)
{
	/* PERF_SAMPLE_BRANCH_HW_INDEX, _COUNTERS */
	const uint64_t hw_index = 1ull << 17, counters = 1ull << 19;
	sample->branch_count = take_u64(cursor);
	if (attr->branch_sample_type & hw_index)
		sample->branch_hw_index = take_u64(cursor);
	sample->branches = take_array(cursor, sample->branch_count, sizeof(struct tally_branch));
	if (attr->branch_sample_type & counters)
		take_array(cursor, sample->branch_count, 8);
}

static void take_stack(struct cursor *cursor, struct tally_sample *sample)
{
	sample->stack_size = take_u64(cursor);
	if (!sample->stack_size)
		return;
	sample->stack = take_array(cursor, sample->stack_size, 1);
	sample->stack_dynamic_size = take_u64(cursor);
	if (sample->stack_dynamic_size > sample->stack_size)
		cursor->failed = true;
}

static void take_sample(struct cursor *cursor, const struct tally_attr *attr,
			struct tally_sample *sample)
{
	uint64_t type = attr->sample_type;
	*sample = (struct tally_sample){ .type = type };
	if (type & TALLY_SAMPLE_IDENTIFIER)
		sample->id = take_u64(cursor);
	if (type & TALLY_SAMPLE_IP)
		sample->ip = take_u64(cursor);
	if (type & TALLY_SAMPLE_TID) {
		sample->pid = take_u32(cursor);
		sample->tid = take_u32(cursor);
	}
	if (type & TALLY_SAMPLE_TIME)
		sample->time = take_u64(cursor);
	if (type & TALLY_SAMPLE_ADDR)
		sample->addr = take_u64(cursor);
	if (type & TALLY_SAMPLE_ID)
		sample->id = take_u64(cursor);
	if (type & TALLY_SAMPLE_STREAM_ID)
		sample->stream_id = take_u64(cursor);
	if (type & TALLY_SAMPLE_CPU) {
		sample->cpu = take_u32(cursor);
		take_u32(cursor);
	}
	if (type & TALLY_SAMPLE_PERIOD)
		sample->period = take_u64(cursor);
	else
		sample->period = tally_attr_period(attr);
	if (type & TALLY_SAMPLE_READ)
		take_read_values(cursor, attr->read_format, &sample->read);
	if (type & TALLY_SAMPLE_CALLCHAIN) {
		sample->chain_length = take_u64(cursor);
		sample->chain = take_array(cursor, sample->chain_length, 8);
	}
	if (type & TALLY_SAMPLE_RAW)
		take_raw(cursor, sample);
	if (type & TALLY_SAMPLE_BRANCH_STACK)
		take_branches(cursor, attr, sample);
	const uint8_t *regs_user_start = cursor->at;
	if (type & TALLY_SAMPLE_REGS_USER)
		take_regs(cursor, attr->sample_regs_user, &sample->regs_user);
	if (type & TALLY_SAMPLE_STACK_USER)
		take_stack(cursor, sample);
	if (type & (TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER)) {
		sample->regs_user_start = regs_user_start;
		sample->stack_user_end = cursor->at;
	}
	if (type & (TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT))
		sample->weight = take_u64(cursor);
	if (type & TALLY_SAMPLE_DATA_SRC)
		sample->data_src = take_u64(cursor);
	if (type & TALLY_SAMPLE_TRANSACTION)
		sample->transaction = take_u64(cursor);
	if (type & TALLY_SAMPLE_REGS_INTR)
		take_regs(cursor, attr->sample_regs_intr, &sample->regs_intr);
	if (type & TALLY_SAMPLE_PHYS_ADDR)
		sample->phys_addr = take_u64(cursor);
	if (type & TALLY_SAMPLE_CGROUP)
		sample->cgroup = take_u64(cursor);
	if (type & TALLY_SAMPLE_DATA_PAGE_SIZE)
		sample->data_page_size = take_u64(cursor);
	if (type & TALLY_SAMPLE_CODE_PAGE_SIZE)
		sample->code_page_size = take_u64(cursor);
	if (type & TALLY_SAMPLE_AUX) {
		sample->aux_size = take_u64(cursor);
		sample->aux = take_array(cursor, sample->aux_size, 1);
	}
}

/* Fields of the trailer, in order. */
static const uint64_t sample_id_fields[] = { TALLY_SAMPLE_TID, TALLY_SAMPLE_TIME, TALLY_SAMPLE_ID,
					     TALLY_SAMPLE_STREAM_ID, TALLY_SAMPLE_CPU,
					     TALLY_SAMPLE_IDENTIFIER };
enum { SAMPLE_ID_FIELDS = sizeof(sample_id_fields) / sizeof(sample_id_fields[0]) };

size_t tally_sample_id_size(const struct tally_attr *attr)
{
	size_t size = 0;
	if (!(attr->flags & TALLY_ATTR_SAMPLE_ID_ALL))
		return 0;
	for (unsigned i = 0; i < SAMPLE_ID_FIELDS; i++)
		if (attr->sample_type & sample_id_fields[i])
			size += 8;
	return size;
}

static void take_sample_id(const uint8_t *trailer, const struct tally_attr *attr,
			   struct tally_sample_id *id)
{
	struct cursor cursor = { .at = trailer, .end = trailer + tally_sample_id_size(attr) };
	id->present = true;
	if (attr->sample_type & TALLY_SAMPLE_TID) {
		id->pid = take_u32(&cursor);
		id->tid = take_u32(&cursor);
	}
	if (attr->sample_type & TALLY_SAMPLE_TIME)
		id->time = take_u64(&cursor);
	if (attr->sample_type & TALLY_SAMPLE_ID)
		id->id = take_u64(&cursor);
	if (attr->sample_type & TALLY_SAMPLE_STREAM_ID)
		id->stream_id = take_u64(&cursor);
	if (attr->sample_type & TALLY_SAMPLE_CPU) {
		id->cpu = take_u32(&cursor);
		take_u32(&cursor);
	}
	if (attr->sample_type & TALLY_SAMPLE_IDENTIFIER)
		id->id = take_u64(&cursor);
}

void tally_sample_id_encode(const struct tally_attr *attr, const struct tally_sample_id *id,
			    void *out)
{
	uint8_t *at = out;
	if (!(attr->flags & TALLY_ATTR_SAMPLE_ID_ALL))
		return;
	const uint64_t words[SAMPLE_ID_FIELDS] = { 0, id->time, id->id, id->stream_id, 0, id->id };
	const uint32_t halves[SAMPLE_ID_FIELDS][2] = {
		{ id->pid, id->tid }, { 0 }, { 0 }, { 0 }, { id->cpu, 0 }
	};
	for (unsigned i = 0; i < SAMPLE_ID_FIELDS; i++) {
		if (!(attr->sample_type & sample_id_fields[i]))
			continue;
		if (sample_id_fields[i] & (TALLY_SAMPLE_TID | TALLY_SAMPLE_CPU))
			__builtin_memcpy(at, halves[i], 8);
		else
			__builtin_memcpy(at, &words[i], 8);
		at += 8;
	}
}

/* True if an MMAP2 record has a build-id: u8 size, 3 reserved bytes, 20 bytes, where it may have
 * device, inode and generation.  Its bit in `misc` does not tell: while any event of the machine has
 * attr.build_id, kernels set the bit in the records of all events (perf_event_mmap_output() does not
 * restore it; seen on 6.18).  An event without attr.build_id has build-ids only by tools that add
 * them. */
static bool has_build_id(const struct tally_attr *attr, const struct tally_record_header *header,
			 const uint8_t bytes[24])
{
	enum { FULL = 20, HALF = 16 };
	uint8_t size = bytes[0], others = bytes[1] | bytes[2] | bytes[3];
	if (!(header->misc & TALLY_MISC_MMAP_BUILD_ID) || !size || size > FULL)
		return false;
	for (unsigned i = size; i < FULL; i++)
		others |= bytes[4 + i];
	return !others && (attr->flags & TALLY_ATTR_BUILD_ID || size == FULL || size == HALF);
}

static void take_mmap(struct cursor *cursor, const struct tally_attr *attr,
		      const struct tally_record_header *header, struct tally_record_mmap *mmap)
{
	*mmap = (struct tally_record_mmap){ .pid = take_u32(cursor) };
	mmap->tid = take_u32(cursor);
	mmap->start = take_u64(cursor);
	mmap->length = take_u64(cursor);
	mmap->file_offset = take_u64(cursor);
	if (header->type == TALLY_RECORD_MMAP2 && cursor->end - cursor->at >= 24 &&
	    has_build_id(attr, header, cursor->at)) {
		const uint8_t *bytes = take(cursor, 24);
		mmap->build_id_size = bytes[0];
		__builtin_memcpy(mmap->build_id, bytes + 4, sizeof(mmap->build_id));
	} else if (header->type == TALLY_RECORD_MMAP2) {
		mmap->has_inode = true;
		mmap->major = take_u32(cursor);
		mmap->minor = take_u32(cursor);
		mmap->inode = take_u64(cursor);
		mmap->inode_generation = take_u64(cursor);
	}
	bool has_inode = mmap->has_inode && !cursor->failed;
	if (has_inode && tally_mmap2_is_early(cursor->at, (size_t)(cursor->end - cursor->at))) {
		bool is_data = header->misc & TALLY_MISC_MMAP_DATA;
		mmap->protection = PROTECTION_READ;
		if (!is_data)
			mmap->protection |= PROTECTION_EXECUTE;
	} else if (header->type == TALLY_RECORD_MMAP2) {
		mmap->protection = take_u32(cursor);
		mmap->flags = take_u32(cursor);
	}
	mmap->filename = take_string(cursor);
}

static void take_task(struct cursor *cursor, struct tally_record_task *task)
{
	task->pid = take_u32(cursor);
	task->parent_pid = take_u32(cursor);
	task->tid = take_u32(cursor);
	task->parent_tid = take_u32(cursor);
	task->time = take_u64(cursor);
}

static void take_other(struct cursor *cursor, const struct tally_attr *attr,
		       struct tally_record *record)
{
	switch (record->header.type) {
	case TALLY_RECORD_LOST:
		record->lost.id = take_u64(cursor);
		record->lost.lost = take_u64(cursor);
		break;
	case TALLY_RECORD_LOST_SAMPLES:
		record->lost.lost = take_u64(cursor);
		break;
	case TALLY_RECORD_COMM:
		record->comm.pid = take_u32(cursor);
		record->comm.tid = take_u32(cursor);
		record->comm.comm = take_string(cursor);
		break;
	case TALLY_RECORD_THROTTLE:
	case TALLY_RECORD_UNTHROTTLE:
		record->throttle.time = take_u64(cursor);
		record->throttle.id = take_u64(cursor);
		record->throttle.stream_id = take_u64(cursor);
		break;
	case TALLY_RECORD_READ:
		record->read.pid = take_u32(cursor);
		record->read.tid = take_u32(cursor);
		take_read_values(cursor, attr->read_format, &record->read.values);
		break;
	case TALLY_RECORD_AUX:
		record->aux.offset = take_u64(cursor);
		record->aux.size = take_u64(cursor);
		record->aux.flags = take_u64(cursor);
		break;
	case TALLY_RECORD_ITRACE_START:
		record->itrace_start.pid = take_u32(cursor);
		record->itrace_start.tid = take_u32(cursor);
		break;
	case TALLY_RECORD_SWITCH_CPU_WIDE:
		record->switched.has_next = true;
		record->switched.next_prev_pid = take_u32(cursor);
		record->switched.next_prev_tid = take_u32(cursor);
		break;
	case TALLY_RECORD_NAMESPACES:
		record->namespaces.pid = take_u32(cursor);
		record->namespaces.tid = take_u32(cursor);
		record->namespaces.count = take_u64(cursor);
		record->namespaces.dev_inode = take_array(cursor, record->namespaces.count, 16);
		break;
	case TALLY_RECORD_KSYMBOL:
		record->ksymbol.address = take_u64(cursor);
		record->ksymbol.length = take_u32(cursor);
		record->ksymbol.type = take_u16(cursor);
		record->ksymbol.flags = take_u16(cursor);
		record->ksymbol.name = take_string(cursor);
		break;
	case TALLY_RECORD_BPF_EVENT:
		record->bpf.type = take_u16(cursor);
		record->bpf.flags = take_u16(cursor);
		record->bpf.id = take_u32(cursor);
		record->bpf.tag = take(cursor, 8);
		break;
	case TALLY_RECORD_CGROUP:
		record->cgroup.id = take_u64(cursor);
		record->cgroup.path = take_string(cursor);
		break;
	case TALLY_RECORD_TEXT_POKE:
		record->text_poke.address = take_u64(cursor);
		record->text_poke.old_length = take_u16(cursor);
		record->text_poke.new_length = take_u16(cursor);
		record->text_poke.bytes = take(cursor, (size_t)record->text_poke.old_length +
							       record->text_poke.new_length);
		break;
	case TALLY_RECORD_AUX_OUTPUT_HW_ID:
		record->hw_id = take_u64(cursor);
		break;
	case TALLY_RECORD_CALLCHAIN_DEFERRED:
		record->deferred.cookie = take_u64(cursor);
		record->deferred.chain_length = take_u64(cursor);
		record->deferred.chain = take_array(cursor, record->deferred.chain_length, 8);
		break;
	default: /* SWITCH has no fields */
		break;
	}
}

size_t tally_record_true_size(const struct tally_record_header *header, const void *bytes,
			      size_t trailer)
{
	enum { FIXED_BYTES = sizeof(*header) + 16 }; /* header and fixed fields of both types */
	if (header->type != TALLY_RECORD_KSYMBOL && header->type != TALLY_RECORD_BPF_EVENT)
		return header->size;
	size_t at = FIXED_BYTES;
	if (header->type == TALLY_RECORD_KSYMBOL) {
		while (at < header->size && ((const char *)bytes)[at])
			at++;
		at = (at + 8) & ~(size_t)7;
	}
	if (at + trailer < header->size)
		return at + trailer;
	return header->size;
}

int tally_record_decode(const struct tally_attr *attr, const void *bytes, size_t size,
			struct tally_record *record)
{
	if (size < sizeof(record->header))
		return -BAD_MESSAGE;
	__builtin_memcpy(&record->header, bytes, sizeof(record->header));
	if (record->header.size < sizeof(record->header) || record->header.size > size)
		return -BAD_MESSAGE;
	if (!record->header.type || record->header.type >= TALLY_RECORD_KERNEL_MAX)
		return -NOT_SUPPORTED;

	struct cursor cursor = { .at = (const uint8_t *)bytes + sizeof(record->header),
				 .end = (const uint8_t *)bytes + record->header.size };
	record->sample_id = (struct tally_sample_id){ 0 };
	if (record->header.type == TALLY_RECORD_SAMPLE) {
		take_sample(&cursor, attr, &record->sample);
		if (cursor.failed)
			return -BAD_MESSAGE;
		return 0;
	}
	/* Records that perf synthesizes may lack the trailer: without room for it, there is
	 * none. */
	size_t trailer = tally_sample_id_size(attr);
	cursor.end = (const uint8_t *)bytes +
		     tally_record_true_size(&record->header, bytes, trailer);
	if (trailer && (size_t)(cursor.end - cursor.at) >= trailer) {
		cursor.end -= trailer;
		take_sample_id(cursor.end, attr, &record->sample_id);
	}
	__builtin_memset(&record->sample, 0, sizeof(record->sample));
	if (record->header.type == TALLY_RECORD_MMAP || record->header.type == TALLY_RECORD_MMAP2)
		take_mmap(&cursor, attr, &record->header, &record->mmap);
	else if (record->header.type == TALLY_RECORD_FORK ||
		 record->header.type == TALLY_RECORD_EXIT)
		take_task(&cursor, &record->task);
	else
		take_other(&cursor, attr, record);
	if (cursor.failed)
		return -BAD_MESSAGE;
	return 0;
}

bool tally_record_id(const struct tally_attr *attr, const void *bytes, size_t size, uint64_t *id)
{
	struct tally_record_header header;
	if (size < sizeof(header))
		return false;
	__builtin_memcpy(&header, bytes, sizeof(header));
	size_t at, type = attr->sample_type;
	if (header.size > size || !(type & (TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_ID)))
		return false;
	if (header.type == TALLY_RECORD_SAMPLE) {
		at = sizeof(header);
		if (!(type & TALLY_SAMPLE_IDENTIFIER))
			at += 8 * (unsigned)__builtin_popcountll(
					  type & (TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
						  TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR));
	} else {
		if (!(attr->flags & TALLY_ATTR_SAMPLE_ID_ALL))
			return false;
		size_t behind = 8; /* IDENTIFIER is last; STREAM_ID and CPU follow ID */
		if (!(type & TALLY_SAMPLE_IDENTIFIER))
			behind += 8 * (unsigned)__builtin_popcountll(
					      type & (TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU));
		size_t end = tally_record_true_size(&header, bytes, tally_sample_id_size(attr));
		if (end < sizeof(header) + behind)
			return false;
		at = end - behind;
	}
	if (at + 8 > header.size)
		return false;
	__builtin_memcpy(id, (const uint8_t *)bytes + at, 8);
	return true;
}

/* The quick decoder: the places of fields are known before the sample is seen. */

void tally_sample_layout_init(struct tally_sample_layout *layout, const struct tally_attr *attr)
{
	struct tally_sample_layout out = { .type = attr->sample_type,
					   .fixed_period = tally_attr_period(attr) };
	const struct {
		uint64_t bit;
		uint8_t *place;
	} fields[] = {
		{ TALLY_SAMPLE_IDENTIFIER, &out.identifier },
		{ TALLY_SAMPLE_IP, &out.ip },
		{ TALLY_SAMPLE_TID, &out.tid },
		{ TALLY_SAMPLE_TIME, &out.time },
		{ TALLY_SAMPLE_ADDR, &out.addr },
		{ TALLY_SAMPLE_ID, &out.id },
		{ TALLY_SAMPLE_STREAM_ID, &out.stream_id },
		{ TALLY_SAMPLE_CPU, &out.cpu },
		{ TALLY_SAMPLE_PERIOD, &out.period },
	};
	uint64_t known = TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_RAW;
	uint8_t word = 1;
	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		known |= fields[i].bit;
		if (out.type & fields[i].bit)
			*fields[i].place = word++;
	}
	out.words = word;
	out.has_chain = out.type & TALLY_SAMPLE_CALLCHAIN;
	out.has_raw = out.type & TALLY_SAMPLE_RAW;
	out.is_plain = !(out.type & ~known);
	*layout = out;
}

/* Clears in pieces, which become a few wide stores: for the whole struct, compilers choose an
 * instruction that is slow to start. */
static inline void clear(struct tally_sample *sample)
{
	enum { PIECE = 64, ALL = sizeof(*sample) };
	uint8_t *bytes = (uint8_t *)sample;
	for (unsigned at = 0; at + PIECE <= ALL; at += PIECE) {
		__builtin_memset(bytes + at, 0, PIECE);
		__asm__("" ::: "memory"); /* so that the compiler doesn't join them again */
	}
	__builtin_memset(bytes + ALL / PIECE * PIECE, 0, ALL % PIECE);
}

static inline uint64_t word_at(const uint8_t *bytes, unsigned index)
{
	uint64_t value;
	__builtin_memcpy(&value, bytes + 8 * index, sizeof(value));
	return value;
}

static inline void halves_at(const uint8_t *bytes, unsigned index, uint32_t halves[2])
{
	__builtin_memcpy(halves, bytes + 8 * index, 2 * sizeof(*halves));
}

/* Takes size and bytes.  The padding to whole words must be present as well. */
static int raw_at(struct tally_sample *sample, const uint8_t *bytes, size_t left)
{
	const size_t head = sizeof(sample->raw_size);
	if (left < head)
		return -BAD_MESSAGE;
	__builtin_memcpy(&sample->raw_size, bytes, head);
	if (sample->raw_size > left - head || ((head + sample->raw_size + 7) & ~(size_t)7) > left)
		return -BAD_MESSAGE;
	sample->raw = bytes + head;
	return 0;
}

int tally_sample_decode(const struct tally_sample_layout *layout, const void *record_bytes,
			size_t size, struct tally_record *record)
{
	const uint8_t *bytes = record_bytes;
	struct tally_sample *sample = &record->sample;
	size_t fixed = 8 * (size_t)layout->words, least = fixed + (layout->has_chain ? 8 : 0);
	uint32_t halves[2];
	if (size < sizeof(record->header))
		return -BAD_MESSAGE;
	__builtin_memcpy(&record->header, bytes, sizeof(record->header));
	if (record->header.size > size || record->header.size < least)
		return -BAD_MESSAGE;
	record->sample_id = (struct tally_sample_id){ 0 };
	clear(sample);
	sample->type = layout->type;
	if (layout->identifier)
		sample->id = word_at(bytes, layout->identifier);
	if (layout->ip)
		sample->ip = word_at(bytes, layout->ip);
	if (layout->tid) {
		halves_at(bytes, layout->tid, halves);
		sample->pid = halves[0];
		sample->tid = halves[1];
	}
	if (layout->time)
		sample->time = word_at(bytes, layout->time);
	if (layout->addr)
		sample->addr = word_at(bytes, layout->addr);
	if (layout->id)
		sample->id = word_at(bytes, layout->id);
	if (layout->stream_id)
		sample->stream_id = word_at(bytes, layout->stream_id);
	if (layout->cpu) {
		halves_at(bytes, layout->cpu, halves);
		sample->cpu = halves[0];
	}
	sample->period = layout->fixed_period;
	if (layout->period)
		sample->period = word_at(bytes, layout->period);
	if (layout->has_chain) {
		sample->chain_length = word_at(bytes, layout->words);
		if (sample->chain_length > (record->header.size - least) / 8)
			return -BAD_MESSAGE;
		sample->chain = (const uint64_t *)(const void *)(bytes + least);
		least += 8 * (size_t)sample->chain_length;
	}
	if (layout->has_raw)
		return raw_at(sample, bytes + least, record->header.size - least);
	return 0;
}
