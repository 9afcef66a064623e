/* The protocols of the ring and the user page, in every interleaving (interleave.h): the real
 * ring_buffer.c and userpage.c, and libtally's reader of user pages (library/user_page.h), with
 * their accesses to shared memory replaced.
 *
 * A writer at task level may be interrupted at any access by up to two interrupts, nested or one
 * after the other, that write to the same ring.  A reader on another CPU comes at any time, takes
 * any time, and sees stores as late as the memory model allows. */
#include "test.h"

#include "interleave.h"

#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_UNPOISON_MEMORY_REGION
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

/* --- the accesses, in place of engine/ring_access.h ----------------------- */

#define TALLY_ENGINE_RING_ACCESS_H

static struct walk *walk; /* static, since the accesses have no argument for it */

static void private_point(void)
{
	walk_point(walk, false);
}

static void shared_point(void)
{
	walk_point(walk, true);
}

static inline uintptr_t engine_shared_load(const uintptr_t *at)
{
	private_point();
	return walk_load(walk, at, false);
}

static inline void engine_shared_store(uintptr_t *at, uintptr_t value)
{
	private_point();
	walk_store(walk, at, value, false);
}

static inline bool engine_shared_compare_exchange(uintptr_t *at, uintptr_t *expected,
						  uintptr_t value)
{
	private_point();
	return walk_compare_exchange(walk, at, expected, value, false);
}

static inline bool engine_shared_compare_exchange_acquire(uintptr_t *at, uintptr_t *expected,
							  uintptr_t value)
{
	private_point();
	return walk_compare_exchange(walk, at, expected, value, true);
}

static inline void engine_shared_store_release(uintptr_t *at, uintptr_t value)
{
	private_point();
	walk_store(walk, at, value, true);
}

static inline uintptr_t engine_shared_exchange(uintptr_t *at, uintptr_t value)
{
	private_point();
	uintptr_t old = walk_value(walk, at);
	walk_saw(walk, old);
	walk_change(walk, at, value, false);
	return old;
}

static inline uintptr_t engine_shared_add(uintptr_t *at, uintptr_t more)
{
	private_point();
	uintptr_t value = walk_value(walk, at) + more;
	walk_saw(walk, value);
	walk_change(walk, at, value, false);
	return value;
}

static inline void engine_interrupt_fence(void)
{
	/* Empty: the compiler has already fixed the order of accesses. */
}

static inline void engine_store_fence(void)
{
	walk_release_fence(walk);
}

static inline uintptr_t engine_page_load_acquire(const uint64_t *at)
{
	shared_point();
	return walk_load(walk, at, true);
}

static inline void engine_page_store_release(uint64_t *at, uintptr_t value)
{
	shared_point();
	walk_store(walk, at, value, true);
}

static inline void engine_page_store64(uint64_t *at, uint64_t value)
{
	shared_point();
	walk_store(walk, at, value, false);
}

static inline void engine_shared_store32(uint32_t *at, uint32_t value)
{
	shared_point();
	walk_store(walk, at, value, false);
}

static inline void engine_shared_store32_release(uint32_t *at, uint32_t value)
{
	shared_point();
	walk_store(walk, at, value, true);
}

static inline uint32_t engine_shared_load32(const uint32_t *at)
{
	private_point();
	return (uint32_t)walk_load(walk, at, false);
}

static inline bool engine_shared_compare_exchange32(uint32_t *at, uint32_t *expected,
						    uint32_t value)
{
	private_point();
	uint64_t was = *expected;
	bool done = walk_compare_exchange(walk, at, &was, value, false);
	*expected = (uint32_t)was;
	return done;
}

static inline void engine_ring_write(uint8_t *to, const void *from, size_t size)
{
	const uint8_t *bytes = from;
	for (; size; size -= 8, to += 8, bytes += 8) {
		uint64_t word;
		memcpy(&word, bytes, 8);
		shared_point();
		walk_store(walk, to, word, false);
	}
}

static inline void engine_ring_zero(uint8_t *to, size_t size)
{
	for (; size; size -= 8, to += 8) {
		shared_point();
		walk_store(walk, to, 0, false);
	}
}

/* NOLINTBEGIN(bugprone-suspicious-include): the files under test, with the accesses above */
#include "engine/ring_buffer.c"
#include "engine/userpage.c"
/* NOLINTEND */

/* --- a ring, its writers and its reader ----------------------------------- */

enum {
	RING_BYTES = 64,
	RECORD_BYTES = 16,
	LOST_BYTES = 24,
	POSITIONS = 64,
	INTERRUPT_ID = 0x100,
	STACK = 256 * 1024
};

struct scenario {
	const char *name;
	unsigned records;     /* records that each CPU writes at task level */
	unsigned interrupts;  /* interrupts on CPU 0 */
	unsigned writers;     /* CPUs that write; with two, the ring is not bound to a CPU */
	unsigned rounds;      /* how often the reader reads while they write */
	uint64_t position;    /* head and tail at the start */
	unsigned wakeup_events;
	bool overwrite, backward, paused_at_first;
};

/* Each step makes one access. */
struct reader {
	enum { READ_HEAD, READ_WORD, READ_TAIL } phase;
	unsigned rounds, word;
	uint64_t tail, head, at, header, lost, received;
};

struct program {
	struct walk walk;
	const struct scenario *scenario;
	struct tally_engine engine;
	struct engine_ring ring;
	struct engine_event event;
	struct tally_user_page page;
	uint64_t data[RING_BYTES / 8];

	unsigned attempts, interrupts_left;
	uint16_t placed[POSITIONS]; /* id + 1 of the record at this distance / 8 from the start */
	uint64_t pend_seen;         /* ring.wakeup at the last wake-up */
	unsigned written;
	unsigned pended;
	struct reader reader;
	uint64_t totals[3];         /* sums over all runs: records read, lost, wake-ups */

	/* For two CPUs that write. */
	ucontext_t scheduler, contexts[2];
	uint8_t *stacks[2];
	bool done[2], abandoned;
};

void engine_event_pend(struct engine_event *event, uint32_t what)
{
	struct program *program = (struct program *)walk->program;
	assert_ptr_equal(event, &program->event);
	assert_int_equal(what, ENGINE_PENDING_WAKEUP);
	program->pended++;
	program->pend_seen = walk_value(walk, &program->ring.wakeup);
}

size_t engine_sample_id(struct engine_event *event, uint8_t *bytes)
{
	(void)event, (void)bytes;
	return 0;
}

static unsigned this_cpu(void *host)
{
	(void)host;
	return walk->cpu;
}

/* Returns bytes from the start, in the direction of writing. */
static uint64_t distance(const struct program *program, uint64_t position)
{
	return program->scenario->backward ? program->scenario->position - position
					   : position - program->scenario->position;
}

static void write_record(struct program *program, unsigned id)
{
	struct engine_output output;
	uint64_t words[2] = { 0, id };
	struct tally_record_header header = { .type = TALLY_RECORD_SAMPLE, .size = RECORD_BYTES };

	program->attempts++;
	if (engine_output_begin(&output, &program->event, RECORD_BYTES))
		return;
	uint64_t from = distance(program, output.offset) / 8;
	assert_in_range(from, 0, POSITIONS - 1);
	program->placed[from] = (uint16_t)(id + 1);
	memcpy(words, &header, sizeof(header));
	engine_output_copy(&output, words, sizeof(words));
	engine_output_sampled(&output);
	engine_output_end(&output);
	program->written++;
}

static void interrupt(void *context, unsigned cpu)
{
	struct program *program = context;
	(void)cpu;
	write_record(program, INTERRUPT_ID + --program->interrupts_left);
}

static void check_record(struct program *program)
{
	struct reader *reader = &program->reader;
	struct tally_record_header header;
	uint64_t id = walk_value(walk, &program->data[(reader->at + 8) % RING_BYTES / 8]);

	memcpy(&header, &reader->header, sizeof(header));
	if (header.type == TALLY_RECORD_LOST) {
		reader->lost += walk_value(walk,
					   &program->data[(reader->at + 16) % RING_BYTES / 8]);
		return;
	}
	if (program->placed[distance(program, reader->at) / 8] != id + 1)
		walk_fail(walk, "a record is not where it was written");
	reader->received++;
}

static void read_word(struct program *program)
{
	struct reader *reader = &program->reader;
	struct tally_record_header header;
	const uint64_t *at = &program->data[(reader->at + 8 * reader->word) % RING_BYTES / 8];
	uint64_t value = walk_load(walk, at, false);

	if (value != walk_value(walk, at))
		walk_fail(walk, "the reader sees bytes older than the head");
	if (!reader->word)
		reader->header = value;
	memcpy(&header, &reader->header, sizeof(header));
	if (header.type == TALLY_RECORD_SAMPLE
		    ? header.size != RECORD_BYTES
		    : header.type != TALLY_RECORD_LOST || header.size != LOST_BYTES)
		walk_fail(walk, "what lies before the head is no record");
	if (reader->head - reader->at < header.size)
		walk_fail(walk, "a record reaches over the head");
	if (++reader->word * 8 < header.size)
		return;
	check_record(program);
	reader->at += header.size;
	reader->word = 0;
	if (reader->at == reader->head)
		reader->phase = READ_TAIL;
}

static void read_head(struct program *program)
{
	struct reader *reader = &program->reader;
	uint64_t head = walk_load(walk, &program->page.data_head, true); /* C */

	if ((int64_t)(head - reader->head) < 0)
		walk_fail(walk, "data_head went backwards");
	if (head - reader->tail > RING_BYTES)
		walk_fail(walk, "the writer overtook the reader");
	reader->head = head;
	reader->at = reader->tail;
	reader->word = 0;
	if (head != reader->tail)
		reader->phase = READ_WORD;
	else if (reader->rounds)
		reader->rounds--;
}

static void reader_step(void *context, unsigned cpu)
{
	struct program *program = context;
	struct reader *reader = &program->reader;
	unsigned reads = program->walk.cpu_count - 1;

	walk->cpu = reads;
	switch (reader->phase) {
	case READ_HEAD:
		read_head(program);
		break;
	case READ_WORD:
		read_word(program);
		break;
	case READ_TAIL:
		walk_store(walk, &program->page.data_tail, reader->head, true); /* D */
		reader->tail = reader->head;
		reader->phase = READ_HEAD;
		if (reader->rounds)
			reader->rounds--;
		break;
	}
	walk->cpus[reads].local[0] = 0; /* all of its state is in struct reader */
	walk->cpu = cpu;
}

static unsigned ring_options(void *context, unsigned cpu, bool shared)
{
	struct program *program = context;
	unsigned options = 0;

	if (program->interrupts_left && cpu == 0)
		options |= WALK_INTERRUPT;
	if (program->scenario->writers == 2 ? !program->done[!cpu]
					    : shared && program->reader.rounds)
		options |= WALK_OTHER;
	return options;
}

static uint64_t ring_state(void *context)
{
	const struct program *program = context;
	const struct reader *reader = &program->reader;
	uint64_t hash = walk_mix(program->interrupts_left, program->attempts);

	hash = walk_mix(hash, program->pend_seen);
	hash = walk_mix(hash, program->written);
	hash = walk_mix(hash, program->pended != 0);
	hash = walk_mix(hash, program->done[0] + 2 * program->done[1]);
	hash = walk_mix(hash, reader->phase * 256 + reader->rounds * 16 + reader->word);
	hash = walk_mix(hash, reader->tail);
	hash = walk_mix(hash, reader->head);
	hash = walk_mix(hash, reader->at);
	hash = walk_mix(hash, reader->header);
	hash = walk_mix(hash, reader->lost);
	hash = walk_mix(hash, reader->received);
	for (unsigned i = 0; i < POSITIONS; i++)
		hash = program->placed[i] ? walk_mix(hash, (uint64_t)i << 32 | program->placed[i])
					  : hash;
	return hash;
}

static void ring_start(struct walk *started)
{
	struct program *program = started->program;
	const struct scenario *scenario = program->scenario;
	struct engine_ring *ring = &program->ring;
	uintptr_t *words[] = { &ring->paused,  &ring->nest, &ring->owner,
			       &ring->samples, &ring->lost, &ring->poll };

	program->engine.host.this_cpu = this_cpu;
	program->engine.host.cpus = 2;
	*ring = (struct engine_ring){ .engine = &program->engine,
				      .page = &program->page,
				      .data = (uint8_t *)program->data,
				      .size = RING_BYTES,
				      .cpu = scenario->writers == 2 ? -1 : 0,
				      .overwrite = scenario->overwrite,
				      .backward = scenario->backward,
				      .watermark = RING_BYTES / 2 };
	program->event = (struct engine_event){ .engine = &program->engine,
						.ring = ring,
						.id = 77 };
	program->event.attr.wakeup_events = scenario->wakeup_events;
	program->attempts = program->written = program->pended = 0;
	program->pend_seen = scenario->position;
	program->interrupts_left = scenario->interrupts;
	memset(program->placed, 0, sizeof(program->placed));
	program->done[0] = program->done[1] = false;
	program->reader = (struct reader){ .rounds = scenario->rounds, .tail = scenario->position,
					   .head = scenario->position };

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		walk_location(started, words[i], 0);
	walk_location(started, &ring->head, scenario->position);
	walk_location(started, &ring->wakeup, scenario->position);
	walk_location(started, &program->page.data_head, scenario->position);
	walk_location(started, &program->page.data_tail, scenario->position);
	for (unsigned i = 0; i < RING_BYTES / 8; i++)
		walk_location(started, &program->data[i], 0);
	for (unsigned i = 0; i < started->cpu_count; i++)
		started->cpus[i].running = true;
}

static void write_all(struct program *program, unsigned cpu)
{
	for (unsigned i = 0; i < program->scenario->records; i++) {
		walk->cpus[cpu].local[0] = i; /* no other state remains from earlier records */
		write_record(program, cpu * 16 + i);
	}
	/* The last point for interrupts. */
	private_point();
	walk->cpus[cpu].running = false;
}

/* Checks that ring.wakeup advances by the watermark as bytes are written, never beyond them, and by
 * 1 after the set number of samples. */
static void check_wakeups(struct program *program)
{
	struct engine_ring *ring = &program->ring;
	uint64_t bytes = distance(program, walk_value(walk, &ring->head));
	uint64_t moved = walk_value(walk, &ring->wakeup) - program->scenario->position;
	uint64_t by_samples = program->scenario->wakeup_events
				      ? program->written / program->scenario->wakeup_events
				      : 0;

	if (moved - by_samples > bytes || (moved - by_samples) % ring->watermark)
		walk_fail(walk, "wake-ups that are not due");
}

/* Reads from the head on, newest first, as far as there are whole records. */
static void read_backward(struct program *program)
{
	struct reader *reader = &program->reader;
	uint64_t end = walk_value(walk, &program->ring.head) + RING_BYTES;

	if ((int64_t)(end - program->scenario->position) > 0)
		end = program->scenario->position;
	reader->at = walk_value(walk, &program->ring.head);
	while (reader->at != end && end - reader->at >= RECORD_BYTES) {
		reader->head = end;
		reader->tail = reader->at;
		do
			read_word(program);
		while (reader->word);
	}
	program->totals[0] += reader->received;
}

/* Checks the state when all writers are done and the reader has seen everything. */
static void ring_finish(struct program *program)
{
	struct reader *reader = &program->reader;
	struct engine_ring *ring = &program->ring;

	if (walk_value(walk, &program->page.data_head) != walk_value(walk, &ring->head))
		walk_fail(walk, "what was reserved has not been published");
	if (walk_value(walk, &ring->nest) || walk_value(walk, &ring->owner))
		walk_fail(walk, "a writer is still under way");
	if (program->pend_seen != walk_value(walk, &ring->wakeup))
		walk_fail(walk, "a wake-up was forgotten");
	if (program->pended && !walk_value(walk, &ring->poll))
		walk_fail(walk, "poll has nothing to tell");
	check_wakeups(program);

	program->totals[2] += program->pended;
	for (unsigned i = 0; i < walk->location_count; i++)
		walk->cpus[walk->cpu_count - 1].view.seen[i] = (uint8_t)(walk->locations[i].count -
									 1);
	if (program->scenario->backward)
		read_backward(program);
	if (program->scenario->overwrite)
		return;
	while (reader->phase != READ_HEAD || reader->tail != walk_value(walk, &ring->head))
		reader_step(program, 0);
	if (reader->received + reader->lost + walk_value(walk, &ring->lost) != program->attempts)
		walk_fail(walk, "records read and records lost are not all that were written");
	if (program->scenario->writers == 1 && program->attempts * RECORD_BYTES < RING_BYTES &&
	    reader->received != program->attempts)
		walk_fail(walk, "a record was dropped though there is room for all");
	program->totals[0] += reader->received;
	program->totals[1] += reader->lost + walk_value(walk, &ring->lost);
}

static void ring_run(struct walk *running)
{
	struct program *program = running->program;
	write_all(program, 0);
	ring_finish(program);
}

/* --- two CPUs: each on a stack of its own, under a scheduler that goes back and forth as they
 * choose ---- */

static void cpu_main(int number)
{
	struct program *program = walk->program;
	write_all(program, (unsigned)number);
	program->done[number] = true;
	swapcontext(&program->contexts[number], &program->scheduler);
}

/* Continues the other CPU at a point of this one. */
static void other_cpu(void *context, unsigned cpu)
{
	struct program *program = context;
	swapcontext(&program->contexts[cpu], &program->scheduler);
}

static void leave_cpu(void *context)
{
	struct program *program = context;
	if (program->abandoned || program->done[0 + walk->cpu])
		return;
	program->abandoned = true;
	setcontext(&program->scheduler);
}

static void two_cpus_run(struct walk *running)
{
	struct program *program = running->program;

	program->abandoned = false;
	for (int i = 0; i < 2; i++) {
		ASAN_UNPOISON_MEMORY_REGION(program->stacks[i], STACK);
		getcontext(&program->contexts[i]);
		program->contexts[i].uc_stack.ss_sp = program->stacks[i];
		program->contexts[i].uc_stack.ss_size = STACK;
		program->contexts[i].uc_link = NULL;
		makecontext(&program->contexts[i], (void (*)(void))cpu_main, 1, i);
	}
	while (!program->done[0] || !program->done[1]) {
		swapcontext(&program->scheduler, &program->contexts[running->cpu]);
		if (program->abandoned)
			longjmp(running->given_up, 1);
		running->cpu = !running->cpu;
		if (program->done[running->cpu])
			running->cpu = !running->cpu;
	}
	running->cpu = 0;
	program->abandoned = true; /* from here on, this runs on the first stack */
	ring_finish(program);
}

/* Walks a scenario completely, and prints its numbers. */
static const char *walk_scenario(const struct scenario *scenario)
{
	struct program *program = calloc(1, sizeof(*program));
	const char *failure;

	program->scenario = scenario;
	program->walk = (struct walk){ .options = ring_options,
				       .interrupt = interrupt,
				       .other = scenario->writers == 2 ? other_cpu : reader_step,
				       .state = ring_state,
				       .program = program,
				       .cpu_count = scenario->writers + 1 };
	walk = &program->walk;
	if (scenario->writers == 2) {
		program->walk.leave = leave_cpu;
		program->stacks[0] = malloc(STACK);
		program->stacks[1] = malloc(STACK);
	}
	failure = walk_all(&program->walk, ring_start,
			   scenario->writers == 2 ? two_cpus_run : ring_run);
	print_message(
		"# %s: %llu states, %llu runs; to their ends: %llu records read, %llu lost, %llu "
		"wake-ups%s%s\n",
		scenario->name, (unsigned long long)walk->states, (unsigned long long)walk->runs,
		(unsigned long long)program->totals[0], (unsigned long long)program->totals[1],
		(unsigned long long)program->totals[2], failure ? ": " : "",
		failure ? failure : "");
	free(program->stacks[0]);
	free(program->stacks[1]);
	walk_release(walk);
	free(program);
	return failure;
}

/* Position 56 puts a record's header into the ring's last word; at -24, the free-running positions
 * wrap. */
static const struct scenario scenarios[] = {
	{ "one writer, a reader", .records = 6, .writers = 1, .rounds = 3 },
	{ "an interrupt, a reader", .records = 4, .interrupts = 1, .writers = 1, .rounds = 2 },
	{ "two interrupts, room for all", .records = 1, .interrupts = 2, .writers = 1,
	  .rounds = 1 },
	{ "two interrupts, a reader", .records = 2, .interrupts = 2, .writers = 1, .rounds = 2 },
	{ "two interrupts, a reader that looks once", .records = 3, .interrupts = 2, .writers = 1,
	  .rounds = 1 },
	{ "an interrupt, a reader, wrapping", .records = 4, .interrupts = 1, .writers = 1,
	  .rounds = 2, .position = 56 },
	{ "an interrupt, a reader, over 2^64", .records = 4, .interrupts = 1, .writers = 1,
	  .rounds = 2, .position = 0 - (uint64_t)24 },
	{ "three interrupts, full", .records = 5, .interrupts = 3, .writers = 1 },
	{ "two interrupts, wake-up each second record", .records = 4, .interrupts = 2, .writers = 1,
	  .wakeup_events = 2, .overwrite = true },
	{ "two interrupts, overwriting", .records = 6, .interrupts = 2, .writers = 1,
	  .overwrite = true },
	{ "two interrupts, overwriting backward", .records = 6, .interrupts = 2, .writers = 1,
	  .overwrite = true, .backward = true },
	{ "two CPUs", .records = 2, .writers = 2 },
	{ "two CPUs, an interrupt on one", .records = 1, .interrupts = 1, .writers = 2 },
};

/* --- the user page: writers that interrupt one another, and a reader on another CPU ---- */

enum { EVENTS_MAX = 3, NUMBERS = 16, WRAPPED = 0x10000 };

struct page_program {
	struct walk walk;
	struct tally_engine engine;
	struct engine_ring rings[EVENTS_MAX];
	struct engine_event events[EVENTS_MAX];
	struct tally_engine_pmu pmu;
	struct tally_engine_pmu_ops ops;
	struct tally_user_page pages[EVENTS_MAX];
	unsigned event_count;
	uint64_t off_at; /* the generation in which the events are on no counter; 0: none */
	/* How often the last event's counter overflowed: the kernel moves WRAPPED from the counter
	 * to the offset, and writes this page alone.  Overflows only if may_overflow. */
	bool may_overflow;
	uint64_t overflows;

	unsigned updates, interrupts, interrupts_left, rounds;
	uint64_t generation; /* changes before each update: index, count and times belong to it */
	unsigned step;       /* step of the reader */
	uint64_t read[5];
	uint64_t snapshots, retries; /* sums over all runs */
};

static uint64_t generation(void)
{
	struct page_program *program = (struct page_program *)walk->program;
	private_point();
	walk_saw(walk, program->generation);
	return program->generation;
}

static uint64_t overflows(void)
{
	struct page_program *program = (struct page_program *)walk->program;
	private_point();
	walk_saw(walk, program->overflows);
	return program->overflows;
}

void engine_event_times(struct engine_event *event, uint64_t *now, uint64_t *enabled,
			uint64_t *running)
{
	(void)event;
	*now = *enabled = generation();
	*running = generation();
}

uint64_t engine_event_count(struct engine_event *event)
{
	const struct page_program *program = (const struct page_program *)walk->program;
	uint64_t number = (uint64_t)(event - program->events), count = 1000 * (number + 1);
	if (number == program->event_count - 1)
		count += WRAPPED * overflows();
	return count + generation();
}

static int page_index(const struct tally_pmu_event *event)
{
	const struct page_program *program = (const struct page_program *)walk->program;
	uint64_t at = generation();
	if (program->off_at && at == program->off_at)
		return -1;
	for (unsigned i = 0; i < program->event_count; i++)
		if (event == &program->events[i].hw)
			at += (uint64_t)NUMBERS * i;
	return (int)at;
}

static void page_interrupt(void *context, unsigned cpu)
{
	struct page_program *program = context;
	(void)cpu;
	program->interrupts_left--;
	if (program->may_overflow && walk_choose(walk, 2, 4)) {
		program->overflows++;
		engine_user_page_update(&program->events[program->event_count - 1]);
		return;
	}
	program->generation++;
	for (unsigned i = 0; i < program->event_count; i++)
		engine_user_page_update(&program->events[i]);
}

/* The readers' loop in tally/perf_event.h, one access a step. */
static void page_reader_step(void *context, unsigned cpu)
{
	struct page_program *program = context;
	const struct tally_user_page *page = &program->pages[0];
	const void *fields[] = { &page->lock, &page->index, &page->offset, &page->time_enabled,
				 &page->time_running };

	walk->cpu = 1;
	if (program->step < 5) {
		program->read[program->step] = walk_load(walk, fields[program->step],
							 program->step == 0);
		program->step++;
		if (program->read[0] & 1) { /* an update is in progress: try again */
			program->step = 0;
			program->rounds--;
			program->retries++;
		}
	} else {
		walk_acquire_fence(walk);
		uint64_t lock = walk_load(walk, &page->lock, false), at = program->read[3];
		program->step = 0;
		program->rounds--;
		if (lock != program->read[0]) {
			program->retries++;
		} else if (lock) {
			program->snapshots++;
			if (program->read[1] != at + 1 || program->read[2] != 1000 + at ||
			    program->read[4] != at)
				walk_fail(walk, "a page that is of two times");
		}
	}
	walk->cpus[1].local[0] = 0;
	walk->cpu = cpu;
}

/* Gives the reader no turn.  Its actions don't affect the writers, and when it runs after them, it
 * may still see any store that it could have seen earlier. */
static unsigned page_options(void *context, unsigned cpu, bool shared)
{
	struct page_program *program = context;
	(void)shared;
	return program->interrupts_left && cpu == 0 ? WALK_INTERRUPT : 0;
}

static uint64_t page_state(void *context)
{
	const struct page_program *program = context;
	uint64_t hash = walk_mix(program->interrupts_left, program->rounds * 8 + program->step);
	hash = walk_mix(hash, program->generation);
	hash = walk_mix(hash, program->overflows);
	for (unsigned i = 0; i < program->step; i++)
		hash = walk_mix(hash, program->read[i]);
	return hash;
}

static void page_start(struct walk *started)
{
	struct page_program *program = started->program;

	program->ops.user_index = page_index;
	program->pmu.ops = &program->ops;
	for (unsigned i = 0; i < program->event_count; i++) {
		const struct tally_user_page *page = &program->pages[i];
		struct engine_event *event = &program->events[i];
		const void *words[] = {
			&event->page_lock, &page->lock,         &page->index,
			&page->offset,     &page->time_enabled, &page->time_running
		};
		program->rings[i] = (struct engine_ring){ .page = &program->pages[i],
							  .engine = &program->engine };
		*event = (struct engine_event){ .engine = &program->engine,
						.ring = &program->rings[i],
						.mapped = 1,
						.state = ENGINE_EVENT_ACTIVE,
						.hw.pmu = &program->pmu };
		for (unsigned k = 0; k < sizeof(words) / sizeof(words[0]); k++)
			walk_location(started, words[k], 0);
	}
	program->interrupts_left = program->interrupts;
	program->rounds = 1;
	program->generation = 0;
	program->overflows = 0;
	program->step = 0;
	for (unsigned i = 0; i < started->cpu_count; i++)
		started->cpus[i].running = true;
}

static void page_run(struct walk *running)
{
	struct page_program *program = running->program;
	const struct tally_user_page *page = &program->pages[0];

	for (unsigned i = 0; i < program->updates; i++) {
		running->cpus[0].local[0] = i;
		program->generation++;
		engine_user_page_update(&program->events[0]);
		if (walk_value(walk, &page->lock) & 1)
			walk_fail(walk, "the lock is left odd");
	}
	private_point();
	uint64_t last = program->generation;
	if (walk_value(walk, &page->index) != last + 1 ||
	    walk_value(walk, &page->offset) != 1000 + last ||
	    walk_value(walk, &page->time_enabled) != last ||
	    walk_value(walk, &page->time_running) != last)
		walk_fail(walk, "what stays on the page is not the newest");
	running->cpus[0].running = false;
	while (program->rounds)
		page_reader_step(program, 0);
}

static const char *walk_page(unsigned updates, unsigned interrupts)
{
	struct page_program *program = calloc(1, sizeof(*program));
	const char *failure;

	program->event_count = 1;
	program->updates = updates;
	program->interrupts = interrupts;
	program->walk = (struct walk){ .options = page_options,
				       .interrupt = page_interrupt,
				       .state = page_state,
				       .program = program,
				       .cpu_count = 2 };
	walk = &program->walk;
	failure = walk_all(walk, page_start, page_run);
	print_message(
		"# user page, %u updates, %u interrupts: %llu states, %llu runs, %llu snapshots, "
		"%llu retries%s%s\n",
		updates, interrupts, (unsigned long long)walk->states,
		(unsigned long long)walk->runs, (unsigned long long)program->snapshots,
		(unsigned long long)program->retries, failure ? ": " : "", failure ? failure : "");
	walk_release(walk);
	free(program);
	return failure;
}

/* --- libtally's reader, interrupted by the writer at any access --------------------------- */

/* The pages' words are in the walk; what does not change is in memory alone. */
static uint64_t load_for_reader(const void *at, size_t size)
{
	uint64_t value = 0;
	private_point();
	for (unsigned i = 0; i < walk->location_count; i++)
		if (walk->locations[i].at == at)
			return walk_load(walk, at, false);
	memcpy(&value, at, size);
	walk_saw(walk, value);
	return value;
}

#define TALLY_PAGE_LOAD(member) ((__typeof__(member))load_for_reader(&(member), sizeof(member)))
#include "library/user_page.h"

enum { COUNTED = 3 * WRAPPED };

/* In generation G event E is on counter G + NUMBERS * E, which holds COUNTED; less after each
 * overflow.  The other counters hold what another program counts. */
static uint64_t counter_now(void *context, uint32_t number)
{
	const struct page_program *program = (const struct page_program *)walk->program;
	uint64_t event = number / NUMBERS, now = generation();
	(void)context;
	if (number % NUMBERS != now)
		return 0x5555;
	return COUNTED - (event == program->event_count - 1 ? WRAPPED * program->overflows : 0);
}

/* The clock says which generation it is, too. */
static uint64_t clock_now(void *context)
{
	(void)context;
	return generation();
}

static void page_clock(void *host, struct tally_user_page *page)
{
	(void)host;
	page->capabilities |= TALLY_CAP_USER_TIME;
	page->time_mult = 1;
}

static void readable(const struct tally_pmu_event *event, struct tally_user_page *page)
{
	(void)event;
	page->capabilities |= TALLY_CAP_USER_RDPMC;
	page->pmc_width = 48;
}

static bool is_counter(uint32_t number)
{
	return number < NUMBERS * EVENTS_MAX;
}

static void reader_run(struct walk *running)
{
	static const struct tally_user_counters cpu = { is_counter, counter_now, clock_now, NULL };
	struct page_program *program = running->program;
	struct tally_user_page *pages[EVENTS_MAX];
	struct tally_page_times times;
	uint64_t values[EVENTS_MAX];

	for (unsigned i = 0; i < program->event_count; i++)
		pages[i] = &program->pages[i];
	program->may_overflow = false;
	program->interrupts_left = 1;
	page_interrupt(program, 0); /* the first generation, written undisturbed */
	program->may_overflow = true;
	program->interrupts_left = program->interrupts;
	bool is_read = tally_pages_read(pages, program->event_count, &cpu, values, &times);
	uint64_t last = program->generation;
	if (!is_read) {
		program->retries++;
		if (!program->off_at || last < program->off_at)
			walk_fail(walk, "events on counters are not read");
		return;
	}
	uint64_t at = times.enabled_ns;
	program->snapshots++;
	if (at < 1 || at > last || at == program->off_at)
		walk_fail(walk, "times that never were");
	if (times.running_ns != at)
		walk_fail(walk, "two times of different moments");
	for (unsigned i = 0; i < program->event_count; i++)
		if (values[i] != 1000 * (i + 1) + at + COUNTED)
			walk_fail(walk, "a value of another moment");
}

static const char *walk_reader(unsigned events, unsigned interrupts, uint64_t off_at)
{
	struct page_program *program = calloc(1, sizeof(*program));
	const char *failure;

	program->event_count = events;
	program->interrupts = interrupts;
	program->off_at = off_at;
	program->engine.host.user_clock = page_clock;
	program->ops.user_page = readable;
	program->walk = (struct walk){ .options = page_options,
				       .interrupt = page_interrupt,
				       .state = page_state,
				       .program = program,
				       .cpu_count = 1 };
	walk = &program->walk;
	failure = walk_all(walk, page_start, reader_run);
	print_message("# reader of %u pages, %u interrupts%s: %llu states, %llu runs, %llu read, "
		      "%llu left to read(2)%s%s\n",
		      events, interrupts, off_at ? ", off in one generation" : "",
		      (unsigned long long)walk->states, (unsigned long long)walk->runs,
		      (unsigned long long)program->snapshots, (unsigned long long)program->retries,
		      failure ? ": " : "", failure ? failure : "");
	walk_release(walk);
	free(program);
	return failure;
}

static void what_libtally_reads_was_true_at_one_moment(void **state)
{
	(void)state;
	for (unsigned events = 1; events <= EVENTS_MAX; events++)
		for (unsigned interrupts = 1; interrupts <= (events < 3 ? 3u : 2u); interrupts++)
			for (uint64_t off_at = 0; off_at <= 3; off_at++)
				assert_null(walk_reader(events, interrupts, off_at));
}

static void user_page_is_of_one_time(void **state)
{
	(void)state;
	assert_null(walk_page(3, 0));
	assert_null(walk_page(2, 1));
	assert_null(walk_page(1, 2));
}

static void ring_is_legal_in_every_interleaving(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		assert_null(walk_scenario(&scenarios[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_page_is_of_one_time),
		cmocka_unit_test(what_libtally_reads_was_true_at_one_moment),
		cmocka_unit_test(ring_is_legal_in_every_interleaving),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
