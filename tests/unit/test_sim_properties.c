/* Properties of the simulated machine under any program: compares the tasks' own counts with the
 * events' counts, on random machines, tasks and events, by seed. */
#include "test.h"

#include "abi/abi.h"
#include "sim/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draw(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void work(struct sim_machine *machine, enum tally_engine_mode mode, uint64_t instructions,
		 uint32_t branches, uint32_t misses)
{
	struct sim_phase phase = {
		.kind = SIM_WORK,
		.work = { .instructions = instructions,
			  .mode = mode,
			  .address = 0x400000,
			  .code_size = 256,
			  .per_kilo = { [SIM_CYCLES] = 1000,
					[SIM_BRANCHES] = branches,
					[SIM_CACHE_MISSES] = misses,
					[SIM_CACHE_REFERENCES] = 2 * misses,
					[SIM_BRANCH_MISSES] = branches / 10,
					/* arm64's generic cache misses and references are these
					 * events */
					[SIM_L1D_LOAD_MISSES] = misses,
					[SIM_L1D_LOADS] = 2 * misses } },
	};
	sim_do(machine, &phase);
}

static void do_sleep(struct sim_machine *machine, uint64_t ns)
{
	sim_do(machine, &(struct sim_phase){ .kind = SIM_SLEEP, .ns = ns });
}

static struct sim_task *start(struct sim_machine *machine, struct sim_task *parent,
			      sim_body_function *body, void *argument)
{
	struct sim_task_spec spec = { .comm = "body",
				      .program = sim_body_program,
				      .data = sim_body_new(body, argument),
				      .release = sim_body_release,
				      .cpu = -1 };
	struct sim_task *task = sim_spawn(machine, parent, &spec);
	assert_non_null(task);
	return task;
}

static struct sim_machine *machine_new(const char *model, unsigned cpus, uint64_t seed)
{
	struct sim_config config = { .cpus = cpus, .model = model, .seed = seed, .balance = true };
	struct sim_machine *machine = sim_new(&config);
	assert_non_null(machine);
	return machine;
}

static void run(struct sim_machine *machine)
{
	assert_int_equal(sim_run(machine, UINT64_MAX), 0);
	sim_free(machine);
}

static struct tally_attr hardware(enum tally_hw event)
{
	return (struct tally_attr){ .type = TALLY_TYPE_HARDWARE,
				    .size = sizeof(struct tally_attr),
				    .config = event,
				    .flags = TALLY_ATTR_EXCLUDE_KERNEL,
				    .read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED |
						   TALLY_FORMAT_TOTAL_TIME_RUNNING };
}

static int open_event(struct sim_machine *machine, const struct tally_attr *attr, int32_t pid,
		      int group)
{
	return tally_engine_open(sim_engine(machine), attr, pid, -1, group, 0);
}

/* --- an inherited tree's sum is what its tasks did ------------------------ */

struct tree {
	uint64_t random, did; /* user-mode instructions of all tasks */
	unsigned tasks;
};

static int tree_task(struct sim_machine *machine, void *argument)
{
	struct tree *tree = argument;
	unsigned steps = 1 + (unsigned)(draw(&tree->random) % 6);
	for (unsigned i = 0; i < steps; i++) {
		unsigned what = (unsigned)(draw(&tree->random) % 4);
		if (what == 0 && tree->tasks < 40) {
			tree->tasks++;
			start(machine, sim_current(machine), tree_task, tree);
		} else if (what == 1) {
			do_sleep(machine, draw(&tree->random) % 3000000);
		} else if (what == 2) {
			work(machine, TALLY_MODE_KERNEL, draw(&tree->random) % 100000, 100, 1);
		} else {
			work(machine, TALLY_MODE_USER, draw(&tree->random) % 5000000, 100, 1);
		}
	}
	tree->did += sim_truth(sim_current(machine), SIM_INSTRUCTIONS, TALLY_MODE_USER);
	return 0;
}

struct tree_run {
	struct tree tree;
	uint64_t counted[3];
};

static int tree_root(struct sim_machine *machine, void *argument)
{
	struct tree_run *tree_run = argument;
	struct tally_attr attr = hardware(TALLY_HW_INSTRUCTIONS);
	attr.flags |= TALLY_ATTR_INHERIT;
	int fd = open_event(machine, &attr, 0, -1);
	assert_true(fd >= 0);
	uint64_t before = sim_truth(sim_current(machine), SIM_INSTRUCTIONS, TALLY_MODE_USER);
	tree_run->tree.tasks = 1;
	struct sim_task *self = sim_current(machine);
	tree_task(machine, &tree_run->tree);
	do_sleep(machine, 20000000000u); /* all tasks have ended by then */
	assert_ptr_equal(sim_current(machine), self);
	tree_run->tree.did -= before;
	assert_int_equal(tally_engine_read(sim_engine(machine), fd, tree_run->counted,
					   sizeof(tree_run->counted)),
			 24);
	return 0;
}

static void an_inherited_trees_sum_is_what_its_tasks_did(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct tree_run tree_run = { .tree = { .random = seed } };
		struct sim_machine *machine = machine_new(seed % 2 ? "x86" : "arm64", 1 + seed % 5,
							  seed);
		start(machine, NULL, tree_root, &tree_run);
		run(machine);
		if (tree_run.counted[0] != tree_run.tree.did)
			print_message("# seed %llu: %llu counted, %llu done by %u tasks\n",
				      (unsigned long long)seed,
				      (unsigned long long)tree_run.counted[0],
				      (unsigned long long)tree_run.tree.did, tree_run.tree.tasks);
		assert_int_equal(tree_run.counted[0], tree_run.tree.did);
	}
}

/* --- scaled counts converge to the truth; members of a group are on together ---- */

enum { MOST_EVENTS = 24 };

struct multiplexed {
	uint64_t random;
	unsigned groups;
	double worst; /* relative error of an estimate */
	unsigned scaled, apart;
};

static int multiplex(struct sim_machine *machine, void *argument)
{
	static const enum tally_hw events[] = { TALLY_HW_CPU_CYCLES, TALLY_HW_INSTRUCTIONS,
						TALLY_HW_BRANCH_INSTRUCTIONS, TALLY_HW_CACHE_MISSES,
						TALLY_HW_CACHE_REFERENCES };
	static const enum sim_metric metrics[] = { SIM_CYCLES, SIM_INSTRUCTIONS, SIM_BRANCHES,
						   SIM_CACHE_MISSES, SIM_CACHE_REFERENCES };
	struct multiplexed *m = argument;
	int fds[MOST_EVENTS], leaders[MOST_EVENTS];
	unsigned which[MOST_EVENTS], count = 0;
	for (unsigned group = 0; group < m->groups; group++) {
		unsigned size = 1 + (unsigned)(draw(&m->random) % 3);
		int leader = -1;
		for (unsigned i = 0; i < size && count < MOST_EVENTS; i++) {
			which[count] = (unsigned)(draw(&m->random) % 5);
			struct tally_attr attr = hardware(events[which[count]]);
			fds[count] = open_event(machine, &attr, 0, leader);
			assert_true(fds[count] >= 0);
			leaders[count] = leader < 0 ? (int)count : leaders[count - 1];
			leader = fds[leaders[count]];
			count++;
		}
	}
	uint64_t before[5];
	for (unsigned i = 0; i < 5; i++)
		before[i] = sim_truth(sim_current(machine), metrics[i], TALLY_MODE_USER);
	/* Steady work in pieces that are long compared with the turns. */
	for (unsigned i = 0; i < 400; i++) {
		work(machine, TALLY_MODE_USER, 10000000, 200, 7);
		if (i % 10 == 0)
			do_sleep(machine, 1000000);
	}
	uint64_t values[MOST_EVENTS][3];
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(tally_engine_read(sim_engine(machine), fds[i], values[i],
						   sizeof(values[i])),
				 24);
	for (unsigned i = 0; i < count; i++) {
		uint64_t truth = sim_truth(sim_current(machine), metrics[which[i]],
					   TALLY_MODE_USER) -
				 before[which[i]];
		double estimate = (double)values[i][0] * (double)values[i][1] /
				  (double)values[i][2];
		m->worst = fmax(m->worst, fabs(estimate / (double)truth - 1));
		m->scaled += values[i][2] < values[i][1];
		m->apart += values[i][2] != values[leaders[i]][2];
	}
	return 0;
}

static void scaled_counts_converge_to_the_truth(void **state)
{
	(void)state;
	unsigned scaled = 0;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		static const char *const models[] = { "x86", "x86-8", "arm64", "arm64-32" };
		struct multiplexed m = { .random = seed, .groups = 3 + (unsigned)(seed % 9) };
		struct sim_machine *machine = machine_new(models[seed % 4], 2, seed);
		start(machine, NULL, multiplex, &m);
		run(machine);
		if (m.worst > 0.02 || m.apart)
			print_message(
				"# seed %llu: worst estimate off by %.2f %%, %u of a group apart\n",
				(unsigned long long)seed, 100 * m.worst, m.apart);
		assert_true(m.worst <= 0.02);
		assert_int_equal(m.apart, 0); /* members are never on at different times */
		scaled += m.scaled;
	}
	assert_true(scaled > 100); /* counters were indeed too few */
}

/* --- a ring's records form a legal stream, with the exact lost total at any reader's speed ---- */

struct stream {
	uint64_t random;
	uint64_t pause_ns; /* between two passes of the reader */
	uint64_t samples, lost, overflows, read_lost;
	struct tally_user_page *page;
	size_t size;
	struct tally_attr attr;
	bool done, is_legal;
};

static void drain(struct stream *stream)
{
	uint64_t head = __atomic_load_n(&stream->page->data_head, __ATOMIC_ACQUIRE),
		 tail = stream->page->data_tail;
	const uint8_t *data = (const uint8_t *)stream->page + stream->page->data_offset;
	uint64_t bytes[512];
	while (tail < head) {
		struct tally_record record;
		struct tally_record_header header;
		for (unsigned i = 0; i < sizeof(header); i++)
			((uint8_t *)&header)[i] = data[(tail + i) % stream->size];
		if (header.size < 8 || header.size > sizeof(bytes) || tail + header.size > head) {
			stream->is_legal = false;
			return;
		}
		for (unsigned i = 0; i < header.size; i++)
			((uint8_t *)bytes)[i] = data[(tail + i) % stream->size];
		if (tally_record_decode(&stream->attr, bytes, header.size, &record) < 0) {
			stream->is_legal = false;
			return;
		}
		stream->samples += header.type == TALLY_RECORD_SAMPLE;
		stream->lost += header.type == TALLY_RECORD_LOST ? record.lost.lost : 0;
		tail += header.size;
	}
	__atomic_store_n(&stream->page->data_tail, tail, __ATOMIC_RELEASE);
}

static int stream_reader(struct sim_machine *machine, void *argument)
{
	struct stream *stream = argument;
	while (!stream->done) {
		do_sleep(machine, stream->pause_ns);
		drain(stream);
	}
	return 0;
}

static int stream_writer(struct sim_machine *machine, void *argument)
{
	struct stream *stream = argument;
	stream->attr = hardware(TALLY_HW_INSTRUCTIONS);
	stream->attr.sample_period = 1000 + draw(&stream->random) % 3000;
	stream->attr.sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
				   (draw(&stream->random) &
				    (TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_READ |
				     TALLY_SAMPLE_PERIOD));
	stream->attr.read_format = TALLY_FORMAT_LOST;
	stream->attr.flags |= draw(&stream->random) &
			      (TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_WATERMARK);
	int fd = open_event(machine, &stream->attr, 0, -1);
	assert_true(fd >= 0);
	stream->size = 4096ull << draw(&stream->random) % 3;
	void *address = NULL;
	assert_int_equal(tally_engine_mmap(sim_engine(machine), fd, 4096 + stream->size, true, true,
					   0, &address),
			 0);
	stream->page = address;
	start(machine, sim_current(machine), stream_reader, stream);
	for (unsigned i = 0; i < 50; i++) {
		work(machine, TALLY_MODE_USER, draw(&stream->random) % 2000000, 100, 1);
		do_sleep(machine, draw(&stream->random) % 1000000);
	}
	uint64_t values[2];
	assert_int_equal(tally_engine_ioctl(sim_engine(machine), fd, TALLY_IOC_DISABLE, 0), 0);
	assert_int_equal(tally_engine_read(sim_engine(machine), fd, values, sizeof(values)), 16);
	stream->overflows = values[0] / stream->attr.sample_period;
	stream->read_lost = values[1];
	drain(stream);
	/* A loss at the end is reported before the next record that fits. */
	assert_int_equal(tally_engine_ioctl(sim_engine(machine), fd, TALLY_IOC_ENABLE, 0), 0);
	work(machine, TALLY_MODE_USER, 2 * stream->attr.sample_period, 100, 1);
	assert_int_equal(tally_engine_ioctl(sim_engine(machine), fd, TALLY_IOC_DISABLE, 0), 0);
	assert_int_equal(tally_engine_read(sim_engine(machine), fd, values, sizeof(values)), 16);
	stream->overflows = values[0] / stream->attr.sample_period;
	drain(stream);
	stream->done = true;
	do_sleep(machine, 10 * stream->pause_ns);
	return 0;
}

static void a_rings_records_are_a_legal_stream_with_the_exact_lost_total(void **state)
{
	(void)state;
	uint64_t lost = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct stream stream = { .random = seed,
					 .pause_ns = 1000ull << seed % 16,
					 .is_legal = true };
		struct sim_machine *machine = machine_new(seed % 2 ? "x86" : "arm64", 2, seed);
		assert_int_equal(tally_engine_sysctl_set(sim_engine(machine),
							 "perf_event_max_sample_rate", 100000000),
				 0);
		start(machine, NULL, stream_writer, &stream);
		run(machine);
		assert_true(stream.is_legal);
		if (stream.samples + stream.lost != stream.overflows)
			print_message("# seed %llu: %llu read and %llu lost of %llu\n",
				      (unsigned long long)seed, (unsigned long long)stream.samples,
				      (unsigned long long)stream.lost,
				      (unsigned long long)stream.overflows);
		assert_int_equal(stream.samples + stream.lost, stream.overflows);
		assert_int_equal(stream.lost, stream.read_lost);
		lost += stream.lost;
	}
	assert_true(lost > 1000); /* the readers were indeed slow */
}

/* --- frequency holds within 5 % after a second, over six orders of magnitude ---- */

struct frequency {
	uint32_t misses_per_kilo; /* rate of the event */
	uint64_t instructions, frequency;
	struct stream stream;
	uint64_t samples;
};

static int frequency_task(struct sim_machine *machine, void *argument)
{
	struct frequency *f = argument;
	struct stream *stream = &f->stream;
	stream->attr = hardware(TALLY_HW_CACHE_MISSES);
	stream->attr.flags |= TALLY_ATTR_FREQ;
	stream->attr.sample_period = f->frequency;
	stream->attr.sample_type = TALLY_SAMPLE_IP;
	stream->attr.read_format = 0;
	stream->size = 1 << 20;
	int fd = open_event(machine, &stream->attr, 0, -1);
	assert_true(fd >= 0);
	void *address = NULL;
	assert_int_equal(tally_engine_mmap(sim_engine(machine), fd, 4096 + stream->size, true, true,
					   0, &address),
			 0);
	stream->page = address;
	struct sim_phase phase = {
		.kind = SIM_WORK,
		.work = { .mode = TALLY_MODE_USER,
			  .address = 0x400000,
			  .code_size = 64,
			  .instructions = f->instructions,
			  .per_kilo = { [SIM_CYCLES] = 1000,
					[SIM_CACHE_MISSES] = f->misses_per_kilo } },
	};
	for (unsigned second = 0; second < 3; second++) {
		uint64_t end = sim_now(machine) + 1000000000;
		stream->samples = 0;
		while (sim_now(machine) < end) {
			phase.work.instructions = f->instructions;
			sim_do(machine, &phase);
			drain(stream);
		}
	}
	f->samples = stream->samples; /* samples of the third second */
	return 0;
}

static void a_frequency_holds_over_six_orders_of_magnitude(void **state)
{
	(void)state;
	/* At 1 GHz: events a second = 10^6 × misses per thousand instructions. */
	static const struct { uint32_t per_kilo, megahertz;
	} rates[] = {
		{ 1, 1 },     { 1, 10 },     { 1, 100 },     { 1, 1000 },
		{ 10, 1000 }, { 100, 1000 }, { 1000, 1000 },
	};
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct frequency f = { .misses_per_kilo = rates[i].per_kilo, .frequency = 500,
				       .instructions = 10000ull * rates[i].megahertz, /* 10 ms */
				       .stream = { .is_legal = true } };
		struct sim_config config = { .cpus = 1,
					     .model = "x86",
					     .megahertz = rates[i].megahertz };
		struct sim_machine *machine = sim_new(&config);
		start(machine, NULL, frequency_task, &f);
		run(machine);
		print_message("# %u a second: %llu samples at 500 Hz\n",
			      rates[i].per_kilo * rates[i].megahertz * 1000,
			      (unsigned long long)f.samples);
		assert_in_range(f.samples, 475, 525);
	}
}

/* --- hits at any instruction ---------------------------------------------- */

static int interrupted(struct sim_machine *machine, void *argument)
{
	uint64_t *counted = argument;
	struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE,
				   .size = sizeof(attr),
				   .config = TALLY_SW_ALIGNMENT_FAULTS };
	int fd = open_event(machine, &attr, 0, -1);
	attr = hardware(TALLY_HW_INSTRUCTIONS);
	attr.sample_period = 5000;
	attr.sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TIME;
	int sampled = open_event(machine, &attr, 0, -1);
	assert_true(fd >= 0 && sampled >= 0);
	for (unsigned i = 0; i < 100; i++) {
		work(machine, TALLY_MODE_USER, 100000, 100, 1);
		do_sleep(machine, 1000);
		int extra = open_event(machine, &attr, 0, -1);
		assert_true(extra >= 0);
		assert_int_equal(
			tally_engine_ioctl(sim_engine(machine), fd,
					   i % 2 || i > 50 ? TALLY_IOC_ENABLE : TALLY_IOC_RESET, 0),
			0);
		assert_int_equal(tally_engine_close(sim_engine(machine), extra), 0);
	}
	assert_int_equal(tally_engine_read(sim_engine(machine), fd, counted, sizeof(*counted)), 8);
	return 0;
}

/* NMIs come at any point of the engine's work.  Nothing breaks, and each is counted or reported as
 * dropped. */
static void an_event_may_hit_at_any_instruction(void **state)
{
	(void)state;
	for (unsigned every = 1; every < 40; every += 3) {
		uint64_t counted = 0;
		struct sim_config config = { .cpus = 2,
					     .model = "x86",
					     .seed = every,
					     .balance = true,
					     .nmi_every = every };
		struct sim_machine *machine = sim_new(&config);
		start(machine, NULL, interrupted, &counted);
		assert_int_equal(sim_run(machine, UINT64_MAX), 0);
		assert_true(counted > 0);
		sim_free(machine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_inherited_trees_sum_is_what_its_tasks_did),
		cmocka_unit_test(scaled_counts_converge_to_the_truth),
		cmocka_unit_test(a_rings_records_are_a_legal_stream_with_the_exact_lost_total),
		cmocka_unit_test(a_frequency_holds_over_six_orders_of_magnitude),
		cmocka_unit_test(an_event_may_hit_at_any_instruction),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
