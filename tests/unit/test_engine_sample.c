/* SPEC C2, C3: the fields of samples and their order, read with the decoder that reads the
 * kernel's. */
#include "test.h"

#include "engine_driver.h"

enum {
	TID = 1000,
	CHAIN_KERNEL = 40,
	CHAIN_USER = 90,
	STACK_THERE = 5000,
	SIBLINGS = 3,
	RANDOM_SAMPLES = 1000
};

#define REGISTERS 0xff0fffull
#define DATA_SOURCE_NONE 0x1e05080021ull
#define HW_INDEX (1ull << 17)

/* --- the truth, as the host tells it -------------------------------------- */

static uint64_t chain_address(bool user, unsigned at)
{
	return (user ? 0x400000 : 0xffffffff81000000) + 16 * at;
}

static unsigned truth_chain(void *host, const struct tally_engine_regs *regs, bool user,
			    uint64_t *addresses, unsigned max)
{
	unsigned count = user ? CHAIN_USER : CHAIN_KERNEL;
	(void)host, (void)regs;
	count = count < max ? count : max;
	for (unsigned i = 0; i < count; i++)
		addresses[i] = chain_address(user, i);
	return count;
}

static uint64_t truth_user_register(void *host, const struct tally_engine_regs *regs,
				    unsigned number, uint64_t *abi)
{
	(void)host, (void)regs;
	*abi = 2;
	return 0x1000 + number;
}

static uint64_t truth_interrupted_register(void *host, const struct tally_engine_regs *regs,
					   unsigned number, uint64_t *abi)
{
	(void)host;
	*abi = 1;
	return (regs->ip << 8) + number;
}

static uint8_t stack_byte(size_t at)
{
	return (uint8_t)(at * 7 + at / 256);
}

static size_t truth_stack(void *host, const struct tally_engine_regs *regs, size_t offset, void *to,
			  size_t size)
{
	(void)host, (void)regs;
	size_t left = offset < STACK_THERE ? STACK_THERE - offset : 0,
	       count = size < left ? size : left;
	for (size_t i = 0; i < count; i++)
		((uint8_t *)to)[i] = stack_byte(offset + i);
	return count;
}

static uint64_t truth_stack_pointer(void *host, const struct tally_engine_regs *regs)
{
	(void)host, (void)regs;
	return 0x7ffff000;
}

static uint64_t truth_physical(void *host, uint64_t address)
{
	(void)host;
	return address ^ 0x5000000000;
}

static uint64_t truth_page_size(void *host, uint64_t address)
{
	(void)host;
	return address < 0x10000 ? 4096 : 2u << 20;
}

static uint64_t truth_cgroup(void *host, struct tally_engine_task *task)
{
	(void)host;
	return task ? 77 : 1;
}

struct bench {
	struct engine_fixture fixture;
	struct driver_pmu driver;
	struct driver_ring ring;
	uint64_t random;
};

static uint64_t next_random(struct bench *bench)
{
	bench->random ^= bench->random << 13;
	bench->random ^= bench->random >> 7;
	bench->random ^= bench->random << 17;
	return bench->random;
}

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	bench->random = 0x9e3779b97f4a7c15;
	fixture_init(&bench->fixture, 2);
	struct tally_engine_host *host = &bench->fixture.host;
	host->callchain = truth_chain;
	host->user_register = truth_user_register;
	host->interrupted_register = truth_interrupted_register;
	host->register_mask = REGISTERS;
	host->user_stack = truth_stack;
	host->user_stack_pointer = truth_stack_pointer;
	host->physical_address = truth_physical;
	host->page_size_of = truth_page_size;
	host->cgroup = truth_cgroup;
	assert_true(fixture_start(&bench->fixture));
	driver_register(&bench->driver, &bench->fixture);
	*state = bench;
	return 0;
}

/* --- one sample ----------------------------------------------------------- */

/* The inputs of one sample, and its expected content. */
struct trial {
	struct tally_attr attr;
	struct tally_engine_hit hit;
	struct tally_engine_regs regs;
	unsigned siblings;
	int fds[1 + SIBLINGS];
	uint64_t ids[1 + SIBLINGS], counts[1 + SIBLINGS];
	uint64_t opened_ns;
	uint8_t raw[64];
	struct tally_engine_branch branches[3];
};

static struct tally_attr plain_attr(const struct bench *bench, uint64_t sample_type)
{
	struct tally_attr attr = fixture_attr(bench->driver.pmu.type, 0);
	attr.sample_period = 1000;
	attr.sample_type = sample_type;
	if (sample_type & TALLY_SAMPLE_REGS_USER)
		attr.sample_regs_user = 0xc0305;
	if (sample_type & TALLY_SAMPLE_REGS_INTR)
		attr.sample_regs_intr = 0x21;
	if (sample_type & TALLY_SAMPLE_STACK_USER)
		attr.sample_stack_user = 8192;
	if (sample_type & TALLY_SAMPLE_BRANCH_STACK)
		attr.branch_sample_type = 8; /* any */
	return attr;
}

static void fill_hit(struct trial *trial)
{
	for (unsigned i = 0; i < sizeof(trial->raw); i++)
		trial->raw[i] = (uint8_t)(i + 1);
	for (unsigned i = 0; i < 3; i++)
		trial->branches[i] = (struct tally_engine_branch){ 0x100 + i, 0x200 + i, 1 + i };
	trial->hit = (struct tally_engine_hit){
		.address = 0x7008, .weight = 0x1234567890, .data_src = 0x68100142, .transaction = 9,
		.raw = trial->raw, .raw_size = 28, .branches = trial->branches, .branch_count = 3,
	};
	trial->regs = fixture_user_regs(0x401000);
}

static void open_trial(struct bench *bench, struct trial *trial)
{
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr sibling = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);

	trial->opened_ns = fixture->now_ns;
	trial->fds[0] = fixture_open(fixture, &trial->attr, -1);
	assert_true(trial->fds[0] >= 0);
	for (unsigned i = 1; i <= trial->siblings; i++) {
		trial->fds[i] = fixture_open(fixture, &sibling, trial->fds[0]);
		assert_true(trial->fds[i] >= 0);
		fixture_hit(fixture, TALLY_SW_PAGE_FAULTS, i);
	}
	for (unsigned i = 1; i <= trial->siblings; i++)
		trial->counts[i] = fixture_value(fixture, trial->fds[i]);
	for (unsigned i = 0; i <= trial->siblings; i++)
		trial->ids[i] = driver_id(fixture, trial->fds[i]);
	driver_map(fixture, trial->fds[0], &trial->attr, &bench->ring);
}

static void close_trial(struct bench *bench, struct trial *trial)
{
	struct engine_fixture *fixture = &bench->fixture;
	assert_int_equal(tally_engine_munmap(fixture->engine, bench->ring.page,
					     (1 + DRIVER_RING_PAGES) * (size_t)FIXTURE_PAGE), 0);
	for (unsigned i = trial->siblings + 1; i-- > 0;)
		assert_int_equal(tally_engine_close(fixture->engine, trial->fds[i]), 0);
}

static void expect_read(const struct bench *bench, const struct trial *trial,
			const struct tally_read_values *read)
{
	uint64_t format = trial->attr.read_format,
		 passed = bench->fixture.now_ns - trial->opened_ns;
	unsigned members = format & TALLY_FORMAT_GROUP ? 1 + trial->siblings : 1;

	assert_int_equal(read->count, members);
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		assert_int_equal(read->time_enabled, passed);
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		assert_int_equal(read->time_running, passed);
	for (unsigned i = 0; i < members; i++) {
		const uint64_t *words = read->values + (size_t)i * read->stride;
		assert_int_equal(words[0], trial->counts[i]);
		if (read->stride > 1 && format & TALLY_FORMAT_ID)
			assert_int_equal(words[1], trial->ids[i]);
		if (format & TALLY_FORMAT_LOST && format & TALLY_FORMAT_GROUP)
			assert_int_equal(words[read->stride - 1], 0);
	}
}

static void expect_chain(const struct trial *trial, const struct tally_sample *sample)
{
	uint64_t flags = trial->attr.flags;
	unsigned left = trial->attr.sample_max_stack ? trial->attr.sample_max_stack : 127, at = 0;

	for (int user = 0; user < 2; user++) {
		if (flags & (user ? TALLY_ATTR_EXCLUDE_CALLCHAIN_USER
				  : TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL))
			continue;
		if (!user && trial->regs.mode == TALLY_MODE_USER)
			continue;
		assert_true(at < sample->chain_length);
		assert_int_equal(sample->chain[at++],
				 user ? TALLY_CONTEXT_USER : TALLY_CONTEXT_KERNEL);
		for (unsigned i = 0; i < (user ? CHAIN_USER : CHAIN_KERNEL) && left; i++, left--) {
			assert_true(at < sample->chain_length);
			assert_int_equal(sample->chain[at++], chain_address(user, i));
		}
	}
	assert_int_equal(sample->chain_length, at);
}

static void expect_registers(const struct trial *trial, const struct tally_sample_regs *regs,
			     uint64_t mask, bool user)
{
	unsigned at = 0;
	assert_int_equal(regs->abi, user ? 2 : 1);
	for (unsigned number = 0; number < 64; number++)
		if (mask >> number & 1)
			assert_int_equal(regs->words[at++],
					 user ? 0x1000 + number : (trial->regs.ip << 8) + number);
	assert_int_equal(regs->count, at);
}

static void expect_raw(const struct trial *trial, const struct tally_sample *sample)
{
	uint32_t given = trial->hit.raw ? trial->hit.raw_size : 0,
		 padded = (given + 4 + 7) / 8 * 8 - 4;
	assert_int_equal(sample->raw_size, padded);
	for (unsigned i = 0; i < padded; i++)
		assert_int_equal(((const uint8_t *)sample->raw)[i], i < given ? trial->raw[i] : 0);
}

static void expect_branches(const struct trial *trial, const struct tally_sample *sample)
{
	assert_int_equal(sample->branch_count, trial->hit.branches ? trial->hit.branch_count : 0);
	for (unsigned i = 0; i < sample->branch_count; i++) {
		assert_int_equal(sample->branches[i].from, trial->branches[i].from);
		assert_int_equal(sample->branches[i].to, trial->branches[i].to);
		assert_int_equal(sample->branches[i].flags, trial->branches[i].flags);
	}
}

static void expect_stack(const struct trial *trial, const struct tally_sample *sample,
			 unsigned record_size)
{
	size_t asked = trial->attr.sample_stack_user,
	       there = asked < STACK_THERE ? asked : STACK_THERE;
	/* it was cut, so that the record has the largest possible size */
	if (sample->stack_size != asked) {
		assert_true(sample->stack_size < asked);
		assert_int_equal(record_size, 65528);
	}
	assert_int_equal(sample->stack_dynamic_size, asked ? there : 0);
	for (size_t i = 0; i < sample->stack_size; i++)
		assert_int_equal(((const uint8_t *)sample->stack)[i],
				 i < there ? stack_byte(i) : 0);
}

static void expect_where(const struct bench *bench, const struct trial *trial,
			 const struct tally_sample *sample)
{
	uint64_t type = sample->type,
		 ip = trial->hit.has_exact_ip ? trial->hit.exact_ip : trial->regs.ip;

	if (type & (TALLY_SAMPLE_ID | TALLY_SAMPLE_IDENTIFIER))
		assert_int_equal(sample->id, trial->ids[0]);
	if (type & TALLY_SAMPLE_IP)
		assert_int_equal(sample->ip, ip);
	if (type & TALLY_SAMPLE_TID) {
		assert_int_equal(sample->pid, TID);
		assert_int_equal(sample->tid, TID);
	}
	if (type & TALLY_SAMPLE_TIME)
		assert_int_equal(sample->time, bench->fixture.now_ns);
	if (type & TALLY_SAMPLE_ADDR)
		assert_int_equal(sample->addr, trial->hit.address);
	if (type & TALLY_SAMPLE_STREAM_ID)
		assert_int_equal(sample->stream_id, trial->ids[0]);
	if (type & TALLY_SAMPLE_CPU)
		assert_int_equal(sample->cpu, 0);
	if (type & TALLY_SAMPLE_PERIOD)
		assert_int_equal(sample->period, 1000);
	if (type & TALLY_SAMPLE_CODE_PAGE_SIZE)
		assert_int_equal(sample->code_page_size, truth_page_size(NULL, ip));
}

static void expect_access(const struct trial *trial, const struct tally_sample *sample)
{
	uint64_t type = sample->type, address = trial->hit.address;

	if (type & (TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT))
		assert_int_equal(sample->weight, trial->hit.weight);
	if (type & TALLY_SAMPLE_DATA_SRC)
		assert_int_equal(sample->data_src,
				 trial->hit.data_src ? trial->hit.data_src : DATA_SOURCE_NONE);
	if (type & TALLY_SAMPLE_TRANSACTION)
		assert_int_equal(sample->transaction, trial->hit.transaction);
	if (type & TALLY_SAMPLE_PHYS_ADDR)
		assert_int_equal(sample->phys_addr, address ? truth_physical(NULL, address) : 0);
	if (type & TALLY_SAMPLE_CGROUP)
		assert_int_equal(sample->cgroup, 77);
	if (type & TALLY_SAMPLE_DATA_PAGE_SIZE)
		assert_int_equal(sample->data_page_size,
				 address ? truth_page_size(NULL, address) : 0);
	if (type & TALLY_SAMPLE_AUX)
		assert_int_equal(sample->aux_size, 0);
}

static void expect_sample(const struct bench *bench, const struct trial *trial,
			  const struct tally_record *record)
{
	const struct tally_sample *sample = &record->sample;
	uint64_t type = trial->attr.sample_type;

	assert_int_equal(record->header.type, TALLY_RECORD_SAMPLE);
	assert_int_equal(record->header.misc,
			 trial->regs.mode | (trial->hit.has_exact_ip ? TALLY_MISC_EXACT_IP : 0));
	assert_int_equal(sample->type, type);
	expect_where(bench, trial, sample);
	expect_access(trial, sample);
	if (type & TALLY_SAMPLE_READ)
		expect_read(bench, trial, &sample->read);
	if (type & TALLY_SAMPLE_CALLCHAIN)
		expect_chain(trial, sample);
	if (type & TALLY_SAMPLE_RAW)
		expect_raw(trial, sample);
	if (type & TALLY_SAMPLE_BRANCH_STACK)
		expect_branches(trial, sample);
	if (type & TALLY_SAMPLE_REGS_USER)
		expect_registers(trial, &sample->regs_user, trial->attr.sample_regs_user, true);
	if (type & TALLY_SAMPLE_REGS_INTR)
		expect_registers(trial, &sample->regs_intr, trial->attr.sample_regs_intr, false);
	if (type & TALLY_SAMPLE_STACK_USER)
		expect_stack(trial, sample, record->header.size);
}

/* Returns the size of the decoded fields: the record has no other bytes. */
static size_t expected_size(const struct trial *trial, const struct tally_sample *sample)
{
	uint64_t type = trial->attr.sample_type, format = trial->attr.read_format;
	const uint64_t other = TALLY_SAMPLE_READ | TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_RAW |
			       TALLY_SAMPLE_BRANCH_STACK | TALLY_SAMPLE_REGS_USER |
			       TALLY_SAMPLE_REGS_INTR | TALLY_SAMPLE_STACK_USER;
	size_t size = 8 + 8 * (size_t)__builtin_popcountll(type & ~other);

	if (type & TALLY_SAMPLE_READ) {
		bool group = format & TALLY_FORMAT_GROUP;
		size_t member = 1 + !!(format & TALLY_FORMAT_ID) + !!(format & TALLY_FORMAT_LOST);
		size += 8 * (group + !!(format & TALLY_FORMAT_TOTAL_TIME_ENABLED) +
			     !!(format & TALLY_FORMAT_TOTAL_TIME_RUNNING) +
			     member * sample->read.count);
	}
	if (type & TALLY_SAMPLE_CALLCHAIN)
		size += 8 + 8 * sample->chain_length;
	if (type & TALLY_SAMPLE_RAW)
		size += 4 + sample->raw_size;
	if (type & TALLY_SAMPLE_BRANCH_STACK)
		size += 8 + (trial->attr.branch_sample_type & HW_INDEX ? 8 : 0) +
			24 * sample->branch_count;
	if (type & TALLY_SAMPLE_REGS_USER)
		size += 8 + 8 * sample->regs_user.count;
	if (type & TALLY_SAMPLE_REGS_INTR)
		size += 8 + 8 * sample->regs_intr.count;
	if (type & TALLY_SAMPLE_STACK_USER)
		size += 8 + (sample->stack_size ? sample->stack_size + 8 : 0);
	return size;
}

static void try_sample(struct bench *bench, struct trial *trial)
{
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_record record;

	open_trial(bench, trial);
	fixture_advance(fixture, 12345);
	driver_count(fixture, bench->driver.active[0], 1000, trial->hit, &trial->regs);
	trial->counts[0] = 1000;
	assert_true(driver_take(&bench->ring, &record));
	expect_sample(bench, trial, &record);
	assert_int_equal(record.header.size, expected_size(trial, &record.sample));
	assert_false(driver_take(&bench->ring, &record));
	close_trial(bench, trial);
}

/* --- tests ---------------------------------------------------------------- */

static void each_field_alone(void **state)
{
	struct bench *bench = *state;
	for (uint64_t bit = 1; bit < TALLY_SAMPLE_MAX; bit <<= 1) {
		struct trial trial = { .attr = plain_attr(bench, bit) };
		fill_hit(&trial);
		try_sample(bench, &trial);
	}
}

static void without_anything_a_sample_is_its_header(void **state)
{
	struct trial trial = { .attr = plain_attr(*state, 0) };
	fill_hit(&trial);
	try_sample(*state, &trial);
}

static void randomize(struct bench *bench, struct trial *trial)
{
	uint64_t type = next_random(bench) % TALLY_SAMPLE_MAX;

	if (type & TALLY_SAMPLE_WEIGHT)
		type &= ~TALLY_SAMPLE_WEIGHT_STRUCT;
	trial->attr = plain_attr(bench, type);
	trial->attr.read_format = next_random(bench) % TALLY_FORMAT_MAX;
	trial->siblings = next_random(bench) % (SIBLINGS + 1);
	trial->attr.sample_max_stack = next_random(bench) % 4 ? (uint16_t)(next_random(bench) % 128)
							      : 0;
	if (!(next_random(bench) % 4))
		trial->attr.flags |= TALLY_ATTR_EXCLUDE_CALLCHAIN_USER;
	if (!(next_random(bench) % 4))
		trial->attr.flags |= TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL;
	if (type & TALLY_SAMPLE_REGS_USER)
		trial->attr.sample_regs_user = (next_random(bench) & REGISTERS) | 1;
	if (type & TALLY_SAMPLE_REGS_INTR)
		trial->attr.sample_regs_intr = (next_random(bench) & REGISTERS) | 2;
	if (type & TALLY_SAMPLE_STACK_USER)
		trial->attr.sample_stack_user = next_random(bench) % 8191 * 8;
	if (type & TALLY_SAMPLE_BRANCH_STACK && next_random(bench) & 1)
		trial->attr.branch_sample_type |= HW_INDEX;
	fill_hit(trial);
	trial->hit.raw_size = next_random(bench) % sizeof(trial->raw);
	trial->hit.branch_count = next_random(bench) % 4;
	if (next_random(bench) & 1)
		trial->regs = fixture_kernel_regs(0xffffffff81001000);
	trial->hit.has_exact_ip = next_random(bench) & 1;
	trial->hit.exact_ip = trial->regs.ip - 4;
	if (!(next_random(bench) % 4)) {
		trial->hit.raw = NULL;
		trial->hit.branches = NULL;
		trial->hit.address = trial->hit.data_src = trial->hit.transaction = 0;
	}
}

static void random_combinations(void **state)
{
	for (unsigned i = 0; i < RANDOM_SAMPLES; i++) {
		struct trial trial = { 0 };
		randomize(*state, &trial);
		try_sample(*state, &trial);
	}
}

/* Samples with only these fields are written in place if they fit, and field by field if the ring's
 * end divides them. */
static void common_fields_at_every_place_in_the_ring(void **state)
{
	enum { RING = 2 * FIXTURE_PAGE, SAMPLES = 400, PER_TICK = 50 };
	static const uint64_t bits[] = { TALLY_SAMPLE_IDENTIFIER, TALLY_SAMPLE_IP,
					 TALLY_SAMPLE_TID,        TALLY_SAMPLE_TIME,
					 TALLY_SAMPLE_ADDR,       TALLY_SAMPLE_ID,
					 TALLY_SAMPLE_STREAM_ID,  TALLY_SAMPLE_CPU,
					 TALLY_SAMPLE_PERIOD,     TALLY_SAMPLE_RAW };
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	for (unsigned set = 0; set < 1u << (sizeof(bits) / sizeof(bits[0])); set += 1 + set % 3) {
		struct trial trial = { 0 };
		struct tally_record record;
		uint64_t type = 0;
		void *address;
		for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
			type |= set >> i & 1 ? bits[i] : 0;
		trial.attr = plain_attr(bench, type);
		trial.fds[0] = fixture_open(fixture, &trial.attr, -1);
		trial.ids[0] = driver_id(fixture, trial.fds[0]);
		assert_int_equal(tally_engine_mmap(fixture->engine, trial.fds[0], RING, true, true,
						   0, &address),
				 0);
		bench->ring.page = address;
		bench->ring.attr = trial.attr;
		for (unsigned i = 0; i < SAMPLES; i++) {
			fill_hit(&trial);
			trial.hit.raw_size = next_random(bench) % sizeof(trial.raw);
			trial.hit.raw = next_random(bench) % 8 ? trial.raw : NULL;
			if (i % PER_TICK == 0)
				fixture_tick(fixture);
			driver_count(fixture, bench->driver.active[0], 1000, trial.hit,
				     &trial.regs);
			assert_true(driver_take(&bench->ring, &record));
			expect_sample(bench, &trial, &record);
			assert_int_equal(record.header.size, expected_size(&trial, &record.sample));
			assert_false(driver_take(&bench->ring, &record));
		}
		assert_true(!set || bench->ring.page->data_head > RING / 2);
		assert_int_equal(tally_engine_munmap(fixture->engine, address, RING), 0);
		assert_int_equal(tally_engine_close(fixture->engine, trial.fds[0]), 0);
	}
}

static void a_stack_is_cut_so_that_the_record_fits(void **state)
{
	struct bench *bench = *state;
	const uint64_t before = TALLY_SAMPLE_IP | TALLY_SAMPLE_CALLCHAIN,
		       after = TALLY_SAMPLE_REGS_INTR;
	struct trial trial = { .attr = plain_attr(bench,
						  TALLY_SAMPLE_STACK_USER | before | after) };
	fill_hit(&trial);
	trial.attr.sample_stack_user = 65520;
	try_sample(bench, &trial);
}

/* A context switch has no registers of a hit, so its mode is the kernel's. */
static void without_registers_the_mode_is_the_kernels(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	struct tally_record record;
	attr.sample_period = 1;
	attr.sample_type = TALLY_SAMPLE_IP;
	int fd = fixture_open(fixture, &attr, -1);
	driver_map(fixture, fd, &attr, &bench->ring);
	tally_engine_software(fixture->engine, TALLY_SW_PAGE_FAULTS, 1, NULL, 0);
	assert_true(driver_take(&bench->ring, &record));
	assert_int_equal(record.header.misc, TALLY_MISC_KERNEL);
	assert_int_equal(record.sample.ip, 0);
}

/* An inherited event writes its parent's id, and its own as STREAM_ID.  So do its trailers. */
static void a_child_has_its_parents_id_and_a_stream_of_its_own(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	struct tally_record record;
	attr.sample_period = 1;
	attr.sample_type = TALLY_SAMPLE_ID | TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_STREAM_ID |
			   TALLY_SAMPLE_TID;
	attr.flags = TALLY_ATTR_INHERIT | TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_COMM;
	int fd = tally_engine_open(fixture->engine, &attr, 0, 0, -1, 0);
	assert_true(fd >= 0);
	driver_map(fixture, fd, &attr, &bench->ring);
	uint64_t id = driver_id(fixture, fd);
	struct tally_engine_task *child = fixture_fork(fixture, false);
	assert_int_equal(driver_count_records(&bench->ring, TALLY_RECORD_FORK), 1);
	fixture_switch(fixture, child);
	fixture_hit(fixture, TALLY_SW_PAGE_FAULTS, 1);
	assert_true(driver_take(&bench->ring, &record));
	assert_int_equal(record.sample.id, id);
	/* IDENTIFIER, before ID */
	assert_memory_equal(bench->ring.bytes + sizeof(record.header), &id, sizeof(id));
	assert_int_not_equal(record.sample.stream_id, id);
	assert_int_equal(record.sample.tid, tally_engine_task_identity(child)->tid);
	uint64_t stream = record.sample.stream_id;
	tally_engine_comm(child, "renamed");
	assert_true(driver_take(&bench->ring, &record));
	assert_int_equal(record.header.type, TALLY_RECORD_COMM);
	assert_int_equal(record.sample_id.id, id);
	assert_int_equal(record.sample_id.stream_id, stream);
	assert_int_equal(record.sample_id.tid, tally_engine_task_identity(child)->tid);
	fixture_switch(fixture, fixture->task);
	fixture_hit(fixture, TALLY_SW_PAGE_FAULTS, 1);
	assert_true(driver_take(&bench->ring, &record));
	assert_int_equal(record.sample.id, id);
	assert_int_equal(record.sample.stream_id, id);
}

/* A CPU's event also samples while the CPU is idle: then there are no user registers, stack or
 * chain. */
static void an_idle_cpu_has_no_user_side(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	const uint64_t type = TALLY_SAMPLE_TID | TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER |
			      TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_CPU;
	struct tally_attr attr = plain_attr(bench, type);
	struct tally_engine_regs regs = fixture_kernel_regs(0xffffffff81001000);
	struct tally_record record;
	int fd = tally_engine_open(fixture->engine, &attr, -1, 1, -1, 0);
	assert_true(fd >= 0);
	driver_map(fixture, fd, &attr, &bench->ring);
	fixture_on(fixture, 1);
	driver_count(fixture, bench->driver.active[0], 1000, (struct tally_engine_hit){ 0 }, &regs);
	fixture_on(fixture, 0);
	assert_true(driver_take(&bench->ring, &record));
	assert_int_equal(record.sample.tid, 0);
	assert_int_equal(record.sample.cpu, 1);
	assert_int_equal(record.sample.regs_user.abi, 0);
	assert_int_equal(record.sample.stack_size, 0);
	assert_int_equal(record.sample.chain_length, 1 + CHAIN_KERNEL);
	assert_int_equal(record.sample.chain[0], TALLY_CONTEXT_KERNEL);
}

/* The sample has both sides of the stack, whichever task runs. */
static void a_cpus_event_has_the_current_tasks_chain(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = plain_attr(bench, TALLY_SAMPLE_CALLCHAIN);
	struct tally_engine_regs regs = fixture_kernel_regs(0xffffffff81001000);
	struct tally_record record;
	int fd = tally_engine_open(fixture->engine, &attr, -1, 0, -1, 0);
	driver_map(fixture, fd, &attr, &bench->ring);
	driver_count(fixture, bench->driver.active[0], 1000, (struct tally_engine_hit){ 0 }, &regs);
	assert_true(driver_take(&bench->ring, &record));
	assert_int_equal(record.sample.chain[0], TALLY_CONTEXT_KERNEL);
	assert_int_equal(record.sample.chain[1 + CHAIN_KERNEL], TALLY_CONTEXT_USER);
}

static void markers_have_a_limit_of_their_own(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = plain_attr(bench, TALLY_SAMPLE_CALLCHAIN);
	struct tally_engine_regs regs = fixture_kernel_regs(0xffffffff81001000);
	struct tally_record record;
	assert_int_equal(
		tally_engine_sysctl_set(fixture->engine, "perf_event_max_contexts_per_stack", 1),
		0);
	int fd = fixture_open(fixture, &attr, -1);
	driver_map(fixture, fd, &attr, &bench->ring);
	driver_count(fixture, bench->driver.active[0], 1000, (struct tally_engine_hit){ 0 }, &regs);
	assert_true(driver_take(&bench->ring, &record));
	assert_int_equal(record.sample.chain_length, 1 + CHAIN_KERNEL);
}

/* A record larger than 64 KiB is impossible.  It is lost, and counted as lost. */
static void what_no_record_can_hold_is_lost(void **state)
{
	static uint8_t large[70000];
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = plain_attr(bench, TALLY_SAMPLE_RAW);
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	struct tally_engine_hit hit = { .raw = large, .raw_size = sizeof(large) };
	uint64_t words[2];
	attr.read_format = TALLY_FORMAT_LOST;
	int fd = fixture_open(fixture, &attr, -1);
	driver_map(fixture, fd, &attr, &bench->ring);
	driver_count(fixture, bench->driver.active[0], 1000, hit, &regs);
	assert_int_equal(driver_count_records(&bench->ring, TALLY_RECORD_SAMPLE), 0);
	assert_int_equal(tally_engine_read(fixture->engine, fd, words, sizeof(words)),
			 sizeof(words));
	assert_int_equal(words[1], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_field_alone, set_up, fixture_tear_down),
		cmocka_unit_test_setup_teardown(without_anything_a_sample_is_its_header, set_up,
						fixture_tear_down),
		cmocka_unit_test_setup_teardown(random_combinations, set_up, fixture_tear_down),
		cmocka_unit_test_setup_teardown(common_fields_at_every_place_in_the_ring, set_up,
						fixture_tear_down),
		cmocka_unit_test_setup_teardown(a_stack_is_cut_so_that_the_record_fits, set_up,
						fixture_tear_down),
		cmocka_unit_test_setup_teardown(without_registers_the_mode_is_the_kernels, set_up,
						fixture_tear_down),
		cmocka_unit_test_setup_teardown(a_child_has_its_parents_id_and_a_stream_of_its_own,
						set_up, fixture_tear_down),
		cmocka_unit_test_setup_teardown(an_idle_cpu_has_no_user_side, set_up,
						fixture_tear_down),
		cmocka_unit_test_setup_teardown(a_cpus_event_has_the_current_tasks_chain, set_up,
						fixture_tear_down),
		cmocka_unit_test_setup_teardown(markers_have_a_limit_of_their_own, set_up,
						fixture_tear_down),
		cmocka_unit_test_setup_teardown(what_no_record_can_hold_is_lost, set_up,
						fixture_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
