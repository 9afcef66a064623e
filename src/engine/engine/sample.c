/* Writes a sample: the fields of attr.sample_type, and what the hit brought.
 *
 * The size must be known before it is reserved in the ring.  So a first pass gathers the parts of
 * variable size (call chain, registers' ABI, group size, stack), and a second pass writes.  Nothing
 * may change the size in between: the call chain is in this CPU's scratch of this level, which a
 * hit of another level doesn't touch.  The group's size is taken once; if members are missing when
 * the group is walked, zeroes are written for them.
 *
 * Samples with the common fields only, as most hits on tracepoints give, are written directly into
 * the ring in one go.  All others, and those that wrap at the ring's end, are written field by
 * field. */
#include "engine/ring_buffer.h"
#include "engine/sample_record.h"

#define READ_MAX (16 * 1024) /* the kernel's limit for a group's values, in bytes */

/* PERF_MEM_NA: operation, level, snoop, lock, TLB and level number are all "not available". */
#define DATA_SOURCE_NONE 0x1e05080021ull
#define BRANCH_HW_INDEX (1ull << 17) /* PERF_SAMPLE_BRANCH_HW_INDEX */
#define HW_INDEX_UNKNOWN UINT64_MAX
#define STACK_PIECE 512u
#define BRANCH_SIZE 24u
#define HEAD_WORDS 10u

/* The fields that most samples are limited to: words, and a tracepoint's record. */
#define PLAIN \
	(TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | \
	 TALLY_SAMPLE_ADDR | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU | \
	 TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_RAW)

/* The parts of a sample that vary. */
struct sample {
	const struct tally_engine_hit *hit;
	const struct tally_engine_regs *regs;
	const struct engine_cpu *cpu;
	struct tally_engine_task *task; /* the current task; NULL: idle */
	uint64_t ip;
	uint64_t *chain;
	unsigned chain_length;
	unsigned siblings;
	uint64_t user_abi, interrupted_abi;
	size_t stack_size; /* bytes; 0: none */
	uint32_t raw_size;
	size_t size;
};

typedef uint64_t register_reader(void *host, const struct tally_engine_regs *regs, unsigned number,
				 uint64_t *abi);

static void put(struct engine_output *output, uint64_t word)
{
	engine_output_copy(output, &word, sizeof(word));
}

static unsigned bits(uint64_t word)
{
	unsigned count = 0;
	for (; word; word &= word - 1)
		count++;
	return count;
}

/* --- sizes ---------------------------------------------------------------- */

size_t engine_read_format_size(uint64_t format, unsigned siblings)
{
	size_t member = 1 + !!(format & TALLY_FORMAT_ID) + !!(format & TALLY_FORMAT_LOST);
	size_t words = !!(format & TALLY_FORMAT_TOTAL_TIME_ENABLED) +
		       !!(format & TALLY_FORMAT_TOTAL_TIME_RUNNING);

	if (format & TALLY_FORMAT_GROUP)
		words += 1 + member * (siblings + 1);
	else
		words += member;
	return 8 * words;
}

void engine_event_sizes(struct engine_event *event)
{
	const uint64_t id_fields = TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ID |
				   TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU |
				   TALLY_SAMPLE_IDENTIFIER;
	const uint64_t fixed = id_fields | TALLY_SAMPLE_IP | TALLY_SAMPLE_ADDR |
			       TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_WEIGHT |
			       TALLY_SAMPLE_WEIGHT_STRUCT | TALLY_SAMPLE_DATA_SRC |
			       TALLY_SAMPLE_TRANSACTION | TALLY_SAMPLE_PHYS_ADDR |
			       TALLY_SAMPLE_CGROUP | TALLY_SAMPLE_DATA_PAGE_SIZE |
			       TALLY_SAMPLE_CODE_PAGE_SIZE | TALLY_SAMPLE_AUX;
	uint64_t type = event->attr.sample_type;

	event->header_size = (uint32_t)sizeof(struct tally_record_header) + 8 * bits(type & fixed);
	event->id_header_size = 0;
	if (engine_event_flag(event, TALLY_ATTR_SAMPLE_ID_ALL))
		event->id_header_size = 8 * bits(type & id_fields);
}

/* True if every event of the group stays readable when `new_siblings` more join. */
bool engine_event_size_fits(const struct engine_event *event, unsigned new_siblings)
{
	const struct engine_event *leader = event->leader;
	unsigned siblings = new_siblings + (leader ? leader->sibling_count : 0);

	if (engine_read_format_size(event->attr.read_format, siblings) > READ_MAX)
		return false;
	if (!leader || leader == event)
		return true;
	if (engine_read_format_size(leader->attr.read_format, siblings) > READ_MAX)
		return false;
	for (const struct engine_list *at = leader->siblings.next; at != &leader->siblings;
	     at = at->next) {
		const struct engine_event *member = ENGINE_CONTAINER(at, struct engine_event,
								     sibling_link);
		if (engine_read_format_size(member->attr.read_format, siblings) > READ_MAX)
			return false;
	}
	return true;
}

/* --- the parts that vary -------------------------------------------------- */

struct chain {
	uint64_t *words;
	unsigned length, addresses, contexts;
	unsigned max_addresses, max_contexts;
};

/* Adds one context's marker and addresses.  Markers have a limit of their own, past which nothing
 * follows. */
static void gather_context(struct chain *chain, const struct engine_event *event,
			   const struct sample *sample, bool user)
{
	const struct tally_engine_host *host = &event->engine->host;

	if (chain->contexts >= chain->max_contexts)
		return;
	chain->words[chain->length++] = user ? TALLY_CONTEXT_USER : TALLY_CONTEXT_KERNEL;
	chain->contexts++;
	unsigned room = chain->max_addresses - chain->addresses;
	if (!room)
		return;
	unsigned count = host->callchain(host->host, sample->regs, user,
					 chain->words + chain->length, room);
	if (count > room)
		count = room;
	chain->length += count;
	chain->addresses += count;
}

/* SPEC C3.  The user part of a task that is not the event's is not shown. */
static void gather_chain(const struct engine_event *event, struct sample *sample, uint64_t *scratch)
{
	const struct tally_engine *engine = event->engine;
	const struct engine_settings *settings = &engine->settings;
	struct chain chain = { .words = scratch,
			       .max_contexts = (unsigned)settings->max_contexts_per_stack };

	if (!scratch || !engine->host.callchain)
		return;
	chain.max_addresses = event->attr.sample_max_stack;
	if (!chain.max_addresses)
		chain.max_addresses = (unsigned)settings->max_stack;
	if (chain.max_addresses > ENGINE_STACK_LIMIT)
		chain.max_addresses = ENGINE_STACK_LIMIT;
	if (!engine_event_flag(event, TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL) &&
	    sample->regs->mode != TALLY_MODE_USER)
		gather_context(&chain, event, sample, false);
	bool foreign = event->task && event->task != sample->task;
	if (!engine_event_flag(event, TALLY_ATTR_EXCLUDE_CALLCHAIN_USER) && sample->task &&
	    !foreign)
		gather_context(&chain, event, sample, true);
	sample->chain = scratch;
	sample->chain_length = chain.length;
}

static uint64_t registers_abi(const struct engine_event *event, register_reader *reader,
			      uint64_t mask, const struct tally_engine_regs *regs)
{
	uint64_t abi = 0;
	if (reader && mask)
		reader(event->engine->host.host, regs, (unsigned)__builtin_ctzll(mask), &abi);
	return abi;
}

/* Returns the bytes of stack that fit into a record that has `size` bytes without them: a record's
 * size has 16 bits. */
static size_t stack_that_fits(const struct engine_event *event, const struct sample *sample,
			      size_t size)
{
	const struct tally_engine_host *host = &event->engine->host;
	/* the requested size, and how many bytes were copied */
	size_t words = 2 * sizeof(uint64_t);

	if (!host->user_stack || !sample->task || size + words > ENGINE_RECORD_MAX)
		return 0;
	if (host->user_stack_pointer && !host->user_stack_pointer(host->host, sample->regs))
		return 0;
	size_t room = ENGINE_RECORD_MAX - size - words;
	if (event->attr.sample_stack_user < room)
		room = event->attr.sample_stack_user;
	if (host->user_stack_size)
		room = host->user_stack_size(host->host, sample->regs, room) & ~(size_t)7;
	return room;
}

static size_t branches_size(const struct engine_event *event, const struct tally_engine_hit *hit)
{
	size_t words = 1 + !!(event->attr.branch_sample_type & BRANCH_HW_INDEX);
	if (hit->branches)
		return 8 * words + (size_t)hit->branch_count * BRANCH_SIZE;
	return 8 * words;
}

/* SPEC E5: the data are padded so that they and their size word fill whole words. */
static uint32_t padded_raw_size(const struct tally_engine_hit *hit)
{
	size_t size = hit->raw ? hit->raw_size : 0;
	if (size > ENGINE_RECORD_MAX)
		size = ENGINE_RECORD_MAX;
	return (uint32_t)(((size + 4 + 7) & ~(size_t)7) - 4);
}

static void measure(struct engine_event *event, struct sample *sample)
{
	const struct tally_attr *attr = &event->attr;
	const struct tally_engine_host *host = &event->engine->host;
	size_t size = event->header_size;

	if (attr->sample_type & TALLY_SAMPLE_READ) {
		sample->siblings = event->leader->sibling_count;
		size += engine_read_format_size(attr->read_format, sample->siblings);
	}
	if (attr->sample_type & TALLY_SAMPLE_CALLCHAIN) {
		gather_chain(event, sample, sample->cpu->chains[host->level(host->host)]);
		size += 8 + 8 * (size_t)sample->chain_length;
	}
	if (attr->sample_type & TALLY_SAMPLE_RAW) {
		sample->raw_size = padded_raw_size(sample->hit);
		size += 4 + sample->raw_size;
	}
	if (attr->sample_type & TALLY_SAMPLE_BRANCH_STACK)
		size += branches_size(event, sample->hit);
	if (attr->sample_type & TALLY_SAMPLE_REGS_USER) {
		if (sample->task)
			sample->user_abi = registers_abi(event, host->user_register,
							 attr->sample_regs_user, sample->regs);
		size += 8;
		if (sample->user_abi)
			size += 8 * bits(attr->sample_regs_user);
	}
	if (attr->sample_type & TALLY_SAMPLE_REGS_INTR) {
		sample->interrupted_abi = registers_abi(event, host->interrupted_register,
							attr->sample_regs_intr, sample->regs);
		size += 8;
		if (sample->interrupted_abi)
			size += 8 * bits(attr->sample_regs_intr);
	}
	if (attr->sample_type & TALLY_SAMPLE_STACK_USER) {
		sample->stack_size = stack_that_fits(event, sample, size);
		size += 8;
		if (sample->stack_size)
			size += sample->stack_size + 8;
	}
	sample->size = size;
}

/* --- writing -------------------------------------------------------------- */

static uint64_t halves(uint32_t first, uint32_t second)
{
	const uint32_t both[2] = { first, second };
	uint64_t word;
	__builtin_memcpy(&word, both, sizeof(word));
	return word;
}

static uint64_t task_word(const struct tally_engine_task *task)
{
	if (task)
		return halves((uint32_t)task->identity.pid, (uint32_t)task->identity.tid);
	return 0;
}

static unsigned cpu_number(struct tally_engine *engine)
{
	const struct tally_engine_host *host = &engine->host;
	if (host->cpu_number)
		return host->cpu_number(host->host);
	return host->this_cpu(host->host);
}

/* Writes the header and the fields of one word, up to PERIOD.  Returns the end. */
static inline __attribute__((always_inline)) uint64_t *put_head(uint64_t *words,
								struct engine_event *event,
								const struct sample *sample)
{
	uint64_t type = event->attr.sample_type;
	const struct tally_record_header header = {
		.type = TALLY_RECORD_SAMPLE,
		.misc = (uint16_t)(sample->regs->mode |
				   (sample->hit->has_exact_ip ? TALLY_MISC_EXACT_IP : 0)),
		.size = (uint16_t)sample->size,
	};

	__builtin_memcpy(words++, &header, sizeof(header));
	if (type & TALLY_SAMPLE_IDENTIFIER)
		*words++ = engine_primary_id(event);
	if (type & TALLY_SAMPLE_IP)
		*words++ = sample->ip;
	if (type & TALLY_SAMPLE_TID)
		*words++ = task_word(sample->task);
	if (type & TALLY_SAMPLE_TIME)
		*words++ = engine_event_clock(event);
	if (type & TALLY_SAMPLE_ADDR)
		*words++ = sample->hit->address;
	if (type & TALLY_SAMPLE_ID)
		*words++ = engine_primary_id(event);
	if (type & TALLY_SAMPLE_STREAM_ID)
		*words++ = event->id;
	if (type & TALLY_SAMPLE_CPU)
		*words++ = halves(cpu_number(event->engine), 0);
	if (type & TALLY_SAMPLE_PERIOD)
		*words++ = sample->hit->period;
	return words;
}

static void write_head(struct engine_output *output, struct engine_event *event,
		       const struct sample *sample)
{
	uint64_t words[HEAD_WORDS];
	engine_output_copy(output, words,
			   (size_t)(put_head(words, event, sample) - words) * sizeof(words[0]));
}

/* 6.18: if the reader has attr.inherit and READ in its samples, values are without the children's
 * counts. */
static uint64_t member_value(const struct engine_event *reader, struct engine_event *member)
{
	bool alone = engine_event_flag(reader, TALLY_ATTR_INHERIT) &&
		     reader->attr.sample_type & TALLY_SAMPLE_READ;
	if (alone)
		return engine_load64(&member->count);
	return engine_event_count(member);
}

static void write_member(struct engine_output *output, const struct engine_event *reader,
			 struct engine_event *member)
{
	uint64_t words[3], format = reader->attr.read_format;
	unsigned count = 0;

	if (member != reader && member->state == ENGINE_EVENT_ACTIVE)
		member->hw.pmu->ops->read(&member->hw);
	words[count++] = member_value(reader, member);
	if (format & TALLY_FORMAT_ID)
		words[count++] = engine_primary_id(member);
	if (format & TALLY_FORMAT_LOST)
		words[count++] = engine_load64(&member->lost_samples);
	engine_output_copy(output, words, count * sizeof(words[0]));
}

static void write_group(struct engine_output *output, struct engine_event *event, uint64_t enabled,
			uint64_t running, unsigned siblings)
{
	uint64_t format = event->attr.read_format;
	struct engine_event *leader = event->leader;
	unsigned left = siblings;

	put(output, 1 + (uint64_t)siblings);
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		put(output, enabled);
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		put(output, running);
	write_member(output, event, leader);
	for (struct engine_list *at = leader->siblings.next; left && at != &leader->siblings;
	     at = at->next, left--)
		write_member(output, event,
			     ENGINE_CONTAINER(at, struct engine_event, sibling_link));
	engine_output_skip(output, left * (engine_read_format_size(format, 1) -
					   engine_read_format_size(format, 0)));
}

void engine_output_read_format(struct engine_output *output, struct engine_event *event,
			       unsigned siblings)
{
	uint64_t now, enabled, running, words[5], format = event->attr.read_format;
	unsigned count = 0;

	engine_event_times(event, &now, &enabled, &running);
	if (format & TALLY_FORMAT_GROUP) {
		write_group(output, event, enabled, running, siblings);
		return;
	}
	words[count++] = member_value(event, event);
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		words[count++] = enabled;
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		words[count++] = running;
	if (format & TALLY_FORMAT_ID)
		words[count++] = engine_primary_id(event);
	if (format & TALLY_FORMAT_LOST)
		words[count++] = engine_load64(&event->lost_samples);
	engine_output_copy(output, words, count * sizeof(words[0]));
}

static void write_raw(struct engine_output *output, const struct sample *sample)
{
	uint32_t given = sample->hit->raw ? sample->hit->raw_size : 0;

	engine_output_copy(output, &sample->raw_size, sizeof(sample->raw_size));
	if (given)
		engine_output_copy(output, sample->hit->raw, given);
	engine_output_skip(output, sample->raw_size - given);
}

static void write_branches(struct engine_output *output, const struct engine_event *event,
			   const struct tally_engine_hit *hit)
{
	uint64_t count = hit->branches ? hit->branch_count : 0;

	put(output, count);
	if (event->attr.branch_sample_type & BRANCH_HW_INDEX)
		put(output, HW_INDEX_UNKNOWN);
	if (count)
		engine_output_copy(output, hit->branches, count * BRANCH_SIZE);
}

static void write_registers(struct engine_output *output, const struct sample *sample, uint64_t abi,
			    uint64_t mask, register_reader *reader)
{
	void *host = output->event->engine->host.host;
	uint64_t unused;

	put(output, abi);
	for (uint64_t left = abi ? mask : 0; left; left &= left - 1)
		put(output, reader(host, sample->regs, (unsigned)__builtin_ctzll(left), &unused));
}

/* Copies piece by piece: the ring may wrap within, and a whole stack is too large for this
 * function's stack. */
static void write_stack(struct engine_output *output, const struct sample *sample)
{
	const struct tally_engine_host *host = &output->event->engine->host;
	uint64_t words[STACK_PIECE / 8];
	size_t done = 0;

	put(output, sample->stack_size);
	if (!sample->stack_size)
		return;
	while (done < sample->stack_size) {
		size_t left = sample->stack_size - done,
		       piece = left < sizeof(words) ? left : sizeof(words);
		size_t got = host->user_stack(host->host, sample->regs, done, words, piece);
		if (got > piece)
			got = piece;
		engine_output_copy(output, words, got);
		done += got;
		if (got < piece)
			break;
	}
	engine_output_skip(output, sample->stack_size - done);
	put(output, done);
}

static uint64_t page_size_of(const struct tally_engine_host *host, uint64_t address)
{
	if (address && host->page_size_of)
		return host->page_size_of(host->host, address);
	return 0;
}

static uint64_t physical_address_of(const struct tally_engine_host *host, uint64_t address)
{
	if (address && host->physical_address)
		return host->physical_address(host->host, address);
	return 0;
}

static void write_tail(struct engine_output *output, const struct engine_event *event,
		       const struct sample *sample)
{
	const struct tally_engine_host *host = &event->engine->host;
	const struct tally_engine_hit *hit = sample->hit;
	uint64_t words[5], type = event->attr.sample_type;
	unsigned count = 0;

	if (type & TALLY_SAMPLE_PHYS_ADDR)
		words[count++] = physical_address_of(host, hit->address);
	if (type & TALLY_SAMPLE_CGROUP)
		words[count++] = host->cgroup ? host->cgroup(host->host, sample->task) : 0;
	if (type & TALLY_SAMPLE_DATA_PAGE_SIZE)
		words[count++] = page_size_of(host, hit->address);
	if (type & TALLY_SAMPLE_CODE_PAGE_SIZE)
		words[count++] = page_size_of(host, sample->ip);
	if (type & TALLY_SAMPLE_AUX)
		words[count++] = 0;
	engine_output_copy(output, words, count * sizeof(words[0]));
}

static void write_sample(struct engine_output *output, struct engine_event *event,
			 const struct sample *sample)
{
	const struct tally_engine_host *host = &event->engine->host;
	const struct tally_engine_hit *hit = sample->hit;
	uint64_t type = event->attr.sample_type;

	write_head(output, event, sample);
	if (type & TALLY_SAMPLE_READ)
		engine_output_read_format(output, event, sample->siblings);
	if (type & TALLY_SAMPLE_CALLCHAIN) {
		put(output, sample->chain_length);
		engine_output_copy(output, sample->chain, 8 * (size_t)sample->chain_length);
	}
	if (type & TALLY_SAMPLE_RAW)
		write_raw(output, sample);
	if (type & TALLY_SAMPLE_BRANCH_STACK)
		write_branches(output, event, hit);
	if (type & TALLY_SAMPLE_REGS_USER)
		write_registers(output, sample, sample->user_abi, event->attr.sample_regs_user,
				host->user_register);
	if (type & TALLY_SAMPLE_STACK_USER)
		write_stack(output, sample);
	if (type & (TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT))
		put(output, hit->weight);
	if (type & TALLY_SAMPLE_DATA_SRC)
		put(output, hit->data_src ? hit->data_src : DATA_SOURCE_NONE);
	if (type & TALLY_SAMPLE_TRANSACTION)
		put(output, hit->transaction);
	if (type & TALLY_SAMPLE_REGS_INTR)
		write_registers(output, sample, sample->interrupted_abi,
				event->attr.sample_regs_intr, host->interrupted_register);
	write_tail(output, event, sample);
}

static inline struct sample sample_of(const struct engine_event *event,
				      const struct engine_cpu *cpu,
				      const struct tally_engine_hit *hit,
				      const struct tally_engine_regs *regs)
{
	return (struct sample){
		.hit = hit,
		.regs = regs,
		.cpu = cpu,
		.task = engine_current_task(event->engine),
		.ip = hit->has_exact_ip ? hit->exact_ip : regs->ip,
	};
}

static int begin_sample(struct engine_output *output, struct engine_event *event, size_t size)
{
	if (size <= ENGINE_RECORD_MAX)
		return engine_output_begin(output, event, (uint32_t)size);
	engine_add64(event->parent ? &event->parent->lost_samples : &event->lost_samples, 1);
	return -ENGINE_E2BIG;
}

static void end_sample(struct engine_output *output)
{
	if (output->event->attr.wakeup_events)
		engine_output_sampled(output);
	engine_output_end(output);
}

static __attribute__((noinline)) void output_any(struct engine_event *event,
						 const struct engine_cpu *cpu,
						 const struct tally_engine_hit *hit,
						 const struct tally_engine_regs *regs)
{
	struct engine_output output;
	struct sample sample = sample_of(event, cpu, hit, regs);

	measure(event, &sample);
	if (begin_sample(&output, event, sample.size))
		return;
	write_sample(&output, event, &sample);
	end_sample(&output);
}

/* Writes the size word, the record, and zeroes up to `end`. */
static inline void put_raw(uint64_t *words, const struct tally_engine_hit *hit, const uint8_t *end)
{
	uint8_t *at = (uint8_t *)words + sizeof(uint32_t);
	uint32_t given = hit->raw ? hit->raw_size : 0, size = (uint32_t)(end - at);
	__builtin_memcpy(words, &size, sizeof(size));
	if (given)
		__builtin_memcpy(at, hit->raw, given);
	if (given < size)
		__builtin_memset(at + given, 0, size - given);
}

/* Writes a plain sample that wraps at the ring's end, field by field. */
static __attribute__((noinline, cold)) void write_plain(
	struct engine_output *output, struct engine_event *event, const struct engine_cpu *cpu,
	const struct tally_engine_hit *hit, const struct tally_engine_regs *regs, size_t size)
{
	struct sample sample = sample_of(event, cpu, hit, regs);
	sample.raw_size = padded_raw_size(hit);
	sample.size = size;
	write_sample(output, event, &sample);
}

/* Writes a sample that has no fields but those of PLAIN. */
static void output_plain(struct engine_event *event, const struct engine_cpu *cpu,
			 const struct tally_engine_hit *hit, const struct tally_engine_regs *regs)
{
	struct engine_output output;
	struct sample sample = sample_of(event, cpu, hit, regs);
	bool raw = event->attr.sample_type & TALLY_SAMPLE_RAW;

	/* `sample` stays in registers, since it is only passed to functions that are inlined. */
	sample.size = event->header_size + (raw ? sizeof(uint32_t) + padded_raw_size(hit) : 0);
	if (begin_sample(&output, event, sample.size))
		return;
	uint64_t *words = engine_output_whole(&output, sample.size);
	if (words) {
		uint64_t *rest = put_head(words, event, &sample);
		if (raw)
			put_raw(rest, hit, (uint8_t *)words + sample.size);
	} else
		write_plain(&output, event, cpu, hit, regs, sample.size);
	end_sample(&output);
}

void engine_output_sample(struct engine_event *event, struct engine_cpu *cpu,
			  const struct tally_engine_hit *hit, const struct tally_engine_regs *regs)
{
	if (event->attr.sample_type & ~(uint64_t)PLAIN)
		output_any(event, cpu, hit, regs);
	else
		output_plain(event, cpu, hit, regs);
}

/* --- the trailer of other records ----------------------------------------- */

size_t engine_sample_id(struct engine_event *event, uint8_t *bytes)
{
	struct tally_engine *engine = event->engine;
	uint64_t words[6], type = event->attr.sample_type;
	unsigned count = 0;

	if (!event->id_header_size)
		return 0;
	if (type & TALLY_SAMPLE_TID)
		words[count++] = task_word(engine_current_task(engine));
	if (type & TALLY_SAMPLE_TIME)
		words[count++] = engine_event_clock(event);
	if (type & TALLY_SAMPLE_ID)
		words[count++] = engine_primary_id(event);
	if (type & TALLY_SAMPLE_STREAM_ID)
		words[count++] = event->id;
	if (type & TALLY_SAMPLE_CPU)
		words[count++] = halves(cpu_number(engine), 0);
	if (type & TALLY_SAMPLE_IDENTIFIER)
		words[count++] = engine_primary_id(event);
	__builtin_memcpy(bytes, words, count * sizeof(words[0]));
	return count * sizeof(words[0]);
}
