/* The simulated PMU as tally's provider (provider/simulated.h), with a test in the tool's role. */
#include "simulated_fixture.h"

#include "event/event.h"
#include "valgrind/vsim_names.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>

enum { PID = 4711 };

static struct tally_provider *provider;
static char **executed;

static const struct tally_provider_ops *ops(void)
{
	return provider->ops;
}

static const char *plan_path(void)
{
	assert_memory_equal(executed[1], "--plan=", 7);
	return executed[1] + 7;
}

static void command(void)
{
	static char *words[] = { "true", NULL };
	assert_int_equal(ops()->command(provider, "/bin/true", words, &executed, NULL), 0);
}

static int start(void **state)
{
	const struct tally_simulated_options options = { .cpu = "generic",
							 .folder = "/the/folder" };
	(void)state;
	struct tally_error err = TALLY_ERROR_NONE;
	int result = tally_provider_simulated_new(&options, &provider, &err);
	if (result < 0)
		fprintf(stderr, "%s\n", err.message);
	command();
	return result;
}

static int end(void **state)
{
	(void)state;
	provider->ops->release(provider);
	return 0;
}

static struct tally_attr own(uint64_t config)
{
	return (struct tally_attr){ .type = VSIM_PMU_TYPE,
				    .size = sizeof(struct tally_attr),
				    .config = config,
				    .flags = TALLY_ATTR_DISABLED | TALLY_ATTR_INHERIT };
}

static struct tally_attr sampling(uint64_t config)
{
	struct tally_attr attr = own(config);
	attr.sample_period = 1000;
	attr.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP;
	attr.flags |= TALLY_ATTR_SAMPLE_ID_ALL;
	return attr;
}

static struct tally_attr side_band(void)
{
	struct tally_attr attr = sampling(TALLY_SW_DUMMY);
	attr.type = TALLY_TYPE_SOFTWARE;
	attr.flags &= ~TALLY_ATTR_DISABLED;
	return attr;
}

static int open_event(struct tally_attr attr, int group)
{
	return ops()->open(provider, &attr, PID, -1, group, 0);
}

#define INSTRUCTIONS (1ull << VSIM_INSTRUCTIONS)
#define LOADS (1ull << VSIM_LOADS)

/* ---- the plan ------------------------------------------------------------ */

static void plan_holds_the_events_in_the_order_of_opening(void **state)
{
	(void)state;
	struct fake_tool tool;
	struct tally_attr leader = own(INSTRUCTIONS), generic = own(0), member = own(LOADS);
	leader.flags |= TALLY_ATTR_ENABLE_ON_EXEC;
	generic.type = TALLY_TYPE_HARDWARE;
	generic.config = TALLY_HW_BRANCH_INSTRUCTIONS;
	generic.flags |= TALLY_ATTR_EXCLUDE_GUEST | TALLY_ATTR_PRECISE_IP;
	member.flags = 0;
	assert_int_equal(open_event(leader, -1), 0);
	assert_int_equal(open_event(generic, -1), 1);
	assert_int_equal(open_event(member, 0), 2);
	fake_tool_open(&tool, plan_path());
	const struct tally_plan_event *events = tool.plan->shared.events;
	assert_int_equal(tool.plan->shared.event_count, 3);
	assert_int_equal(tool.plan->shared.tally_pid, getpid());
	assert_int_equal(tool.plan->shared.ring_pages, 0);
	assert_true(events[0].id == 1 && events[0].leader == -1 && !events[0].enabled &&
		    events[0].waits_for_exec == 1);
	assert_true(events[1].attr.type == VSIM_PMU_TYPE &&
		    events[1].attr.config == 1ull << VSIM_BRANCHES);
	assert_false(events[1].attr.flags & (TALLY_ATTR_EXCLUDE_GUEST | TALLY_ATTR_PRECISE_IP));
	assert_true(events[2].id == 3 && events[2].leader == 0 && events[2].enabled == 1 &&
		    !events[2].sampled);
	fake_tool_close(&tool);
}

static void regions_are_in_the_plan(void **state)
{
	(void)state;
	static char *words[] = { "true", NULL };
	for (int i = 0; i < 3; i++) {
		const struct tally_simulated_options options = { .cpu = "generic",
								 .folder = "/the/folder",
								 .region = i == 1,
								 .functions = { "inner",
										"work(int)" },
								 .function_count = i == 2 ? 2 : 0 };
		struct tally_provider *other;
		struct fake_tool tool;
		char **argv;
		assert_int_equal(tally_provider_simulated_new(&options, &other, NULL), 0);
		assert_int_equal(other->ops->command(other, "/bin/true", words, &argv, NULL), 0);
		fake_tool_open(&tool, argv[1] + strlen("--plan="));
		assert_int_equal(tool.plan->region_only, i > 0);
		assert_int_equal(tool.plan->function_count, i == 2 ? 2 : 0);
		assert_string_equal(tool.plan->functions[1], i == 2 ? "work(int)" : "");
		fake_tool_close(&tool);
		other->ops->release(other);
	}
}

static void closing_an_event_keeps_the_others_ids(void **state)
{
	(void)state;
	struct fake_tool tool;
	for (int i = 0; i < 3; i++)
		assert_int_equal(open_event(own(INSTRUCTIONS), -1), i);
	ops()->close(provider, 1);
	ops()->close(provider, 1);
	uint64_t id = 0;
	assert_int_equal(ops()->ioctl(provider, 2, TALLY_IOCTL_ID, &id, 0), 0);
	assert_int_equal(id, 3);
	assert_int_equal(ops()->ioctl(provider, 1, TALLY_IOCTL_ID, &id, 0), -EBADF);
	fake_tool_open(&tool, plan_path());
	assert_int_equal(tool.plan->shared.event_count, 3);
	assert_true(tool.plan->shared.events[1].attr.type == TALLY_TYPE_SOFTWARE &&
		    !tool.plan->shared.events[1].enabled);
	assert_int_equal(tool.plan->shared.events[2].id, 3);
	fake_tool_close(&tool);
}

static void plans_are_private_of_one_length_and_gone_at_the_end(void **state)
{
	struct stat st;
	char first[256], second[256];
	snprintf(first, sizeof(first), "%s", plan_path());
	assert_int_equal(stat(first, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	struct fake_tool tool;
	fake_tool_open(&tool, first);
	command();
	snprintf(second, sizeof(second), "%s", plan_path());
	assert_string_not_equal(first, second);
	assert_int_equal(strlen(first), strlen(second));
	assert_int_not_equal(stat(first, &st), 0);
	assert_int_equal(tool.plan->shared.closed, 1);
	fake_tool_close(&tool);
	provider->ops->release(provider);
	assert_int_not_equal(stat(second, &st), 0);
	start(state);
}

static void plans_of_killed_tallys_are_removed(void **state)
{
	(void)state;
	char folder[] = "/tmp/tally-simulated-XXXXXX", paths[3][96];
	static const char *const names[] = { "tally-vsim-0000000000000001",
					     "tally-vsim-0000000000000002", "other" };
	static char *words[] = { "true", NULL };
	const struct timespec old[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	assert_non_null(mkdtemp(folder));
	for (int i = 0; i < 3; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, names[i]);
		int fd = open(paths[i], O_WRONLY | O_CREAT, 0600);
		assert_int_equal(futimens(fd, i == 1 ? NULL : old), 0);
		close(fd);
	}
	const struct tally_simulated_options options = { .cpu = "generic",
							 .folder = "/the/folder",
							 .memory = folder };
	struct tally_provider *other, *another;
	char **argv;
	struct stat st;
	assert_int_equal(tally_provider_simulated_new(&options, &other, NULL), 0);
	assert_int_equal(other->ops->command(other, "/bin/true", words, &argv, NULL), 0);
	assert_int_not_equal(stat(paths[0], &st), 0); /* no process uses it */
	assert_int_equal(stat(paths[1], &st), 0);     /* too young */
	assert_int_equal(stat(paths[2], &st), 0);     /* not a plan */
	/* A plan in use stays, however old. */
	const char *held = argv[1] + strlen("--plan=");
	assert_int_equal(utimensat(AT_FDCWD, held, old, 0), 0);
	char **ignored;
	assert_int_equal(tally_provider_simulated_new(&options, &another, NULL), 0);
	assert_int_equal(another->ops->command(another, "/bin/true", words, &ignored, NULL), 0);
	assert_int_equal(stat(held, &st), 0);
	other->ops->release(other);
	another->ops->release(another);
	unlink(paths[1]);
	unlink(paths[2]);
	assert_int_equal(rmdir(folder), 0);
}

static void what_is_executed_has_the_same_options_each_time(void **state)
{
	(void)state;
	static char *words[] = { "/bin/echo", "-e", "cycles", NULL };
	assert_int_equal(ops()->command(provider, "/bin/echo", words, &executed, NULL), 0);
	assert_string_equal(executed[0], "/the/folder/vsim-launcher");
	size_t count = 0, dashes = 0;
	bool ignores_environment = false, follows = false;
	for (; executed[count]; count++) {
		if (!strcmp(executed[count], "--") && !dashes)
			dashes = count;
		ignores_environment |= !dashes &&
				       !strcmp(executed[count], "--command-line-only=yes");
		follows |= !dashes && !strcmp(executed[count], "--trace-children=yes");
	}
	assert_true(dashes && ignores_environment && follows);
	assert_int_equal(count - dashes, 4);
	assert_string_equal(executed[dashes + 1], "/bin/echo");
	assert_string_equal(executed[dashes + 3], "cycles");
}

static void write_program(const char *path, const void *bytes, size_t size, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void programs_that_cannot_be_simulated_are_told_of_before(void **state)
{
	(void)state;
	char folder[] = "/tmp/tally-simulated-XXXXXX", path[64], script[64], text[128];
	static char *words[] = { "program", NULL };
	Elf64_Ehdr elf = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
			   .e_machine = EM_X86_64 };
	struct tally_error err = TALLY_ERROR_NONE;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/program", folder);
	snprintf(script, sizeof(script), "%s/script", folder);
	int length = snprintf(text, sizeof(text), "#! %s -x\n", path);
	write_program(script, text, (size_t)length, 0755);

	write_program(path, &elf, sizeof(elf), 0755);
	assert_int_equal(ops()->command(provider, path, words, &executed, &err), 0);
	assert_int_equal(ops()->command(provider, script, words, &executed, &err), 0);
	write_program(path, &elf, sizeof(elf), 04755);
	assert_int_equal(ops()->command(provider, path, words, &executed, &err), -EACCES);
	assert_non_null(strstr(err.message, "set-user-ID"));
	assert_int_equal(ops()->command(provider, script, words, &executed, &err), -EACCES);
	elf.e_ident[EI_CLASS] = ELFCLASS32;
	write_program(path, &elf, sizeof(elf), 0755);
	assert_int_equal(ops()->command(provider, script, words, &executed, &err), -ENOEXEC);
	assert_non_null(strstr(err.message, "32-bit"));
	elf.e_ident[EI_CLASS] = ELFCLASS64;
	elf.e_machine = EM_AARCH64;
	write_program(path, &elf, sizeof(elf), 0755);
	assert_int_equal(ops()->command(provider, path, words, &executed, &err), -ENOEXEC);
	unlink(path);
	assert_int_equal(ops()->command(provider, script, words, &executed, &err), -ENOENT);
	assert_non_null(strstr(err.message, "interpreter"));
	unlink(script);
	rmdir(folder);
}

/* A file with one note, as -Wl,-z,x86-64-v4 makes it. */
struct noted {
	Elf64_Ehdr head;
	Elf64_Phdr part;
	Elf64_Nhdr note;
	char name[4];
	uint32_t features, features_size, features_value, padding;
	uint32_t isa, isa_size, isa_value, padding_too;
};

static void programs_that_say_they_need_avx512_are_told_of_before(void **state)
{
	(void)state;
	char folder[] = "/tmp/tally-simulated-XXXXXX", path[64];
	static char *words[] = { "program", NULL };
	struct tally_error err = TALLY_ERROR_NONE;
	const struct noted v4 = {
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
			  .e_machine = EM_X86_64,
			  .e_phoff = offsetof(struct noted, part),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1 },
		.part = { .p_type = PT_NOTE,
			  .p_offset = offsetof(struct noted, note),
			  .p_align = 8,
			  .p_filesz = sizeof(struct noted) - offsetof(struct noted, note) },
		.note = { .n_namesz = 4,
			  .n_type = 5,
			  .n_descsz = sizeof(struct noted) - offsetof(struct noted, features) },
		.name = "GNU",
		.features = 0xc0000002,
		.features_size = 4,
		.features_value = 3,
		.isa = 0xc0008002,
		.isa_size = 4,
		.isa_value = 9,
	};
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/program", folder);
	write_program(path, &v4, sizeof(v4), 0755);
	assert_int_equal(ops()->command(provider, path, words, &executed, &err), -ENOEXEC);
	assert_non_null(strstr(err.message, "AVX-512"));
	assert_string_not_equal(err.hint, "");

	struct noted v3 = v4, used = v4, other = v4, beyond = v4, short_of = v4;
	v3.isa_value = 7;
	used.isa = 0xc0010002;
	other.note.n_type = 3;
	beyond.part.p_offset = 1ull << 60;
	short_of.isa_size = 0xfffffff8;
	const struct noted *const run[] = { &v3, &used, &other, &beyond, &short_of };
	for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
		write_program(path, run[i], sizeof(*run[i]), 0755);
		assert_int_equal(ops()->command(provider, path, words, &executed, &err), 0);
	}
	unlink(path);
	rmdir(folder);
}

/* ---- opening ------------------------------------------------------------- */

static void what_is_not_simulated_is_refused_with_a_way_out(void **state)
{
	(void)state;
	const struct { uint32_t type; uint64_t config;
	} refused[] = {
		{ TALLY_TYPE_SOFTWARE, TALLY_SW_TASK_CLOCK },
		{ TALLY_TYPE_TRACEPOINT, 1 },
		{ TALLY_TYPE_RAW, 0x3c },
		{ TALLY_TYPE_BREAKPOINT, 0 },
		{ TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES },
		{ TALLY_TYPE_HARDWARE, 99 },
		{ TALLY_TYPE_HW_CACHE, 0xffffff },
		{ VSIM_PMU_TYPE, 0 },
		{ VSIM_PMU_TYPE, 1ull << VSIM_KINDS },
		{ VSIM_PMU_TYPE, INSTRUCTIONS | 1ull << VSIM_EST_CYCLES },
		{ 77, 1 },
	};
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct tally_attr attr = own(refused[i].config);
		const char *hint = NULL;
		attr.type = refused[i].type;
		assert_int_equal(open_event(attr, -1), -ENOENT);
		assert_non_null(ops()->reason(provider, &attr, -ENOENT, &hint));
		assert_non_null(hint);
	}
	struct tally_attr kernel = own(INSTRUCTIONS);
	kernel.flags |= TALLY_ATTR_EXCLUDE_USER;
	assert_int_equal(open_event(kernel, -1), -ENOENT);
	struct tally_attr guest = own(INSTRUCTIONS);
	guest.flags |= TALLY_ATTR_EXCLUDE_HOST;
	assert_int_equal(open_event(guest, -1), -ENOENT);
}

static void open_mirrors_the_kernels_errors(void **state)
{
	(void)state;
	struct tally_attr attr = own(INSTRUCTIONS), branches = sampling(INSTRUCTIONS),
			  nameless = sampling(INSTRUCTIONS);
	branches.sample_type |= TALLY_SAMPLE_BRANCH_STACK;
	nameless.sample_type &= ~TALLY_SAMPLE_IDENTIFIER;
	assert_int_equal(ops()->open(provider, &attr, -1, 0, -1, 0), -EOPNOTSUPP);
	assert_int_equal(ops()->open(provider, &attr, PID, 3, -1, 0), -ENODEV);
	assert_int_equal(open_event(attr, 5), -EBADF);
	assert_int_equal(open_event(branches, -1), -EOPNOTSUPP);
	assert_int_equal(open_event(nameless, -1), -EINVAL);
	assert_int_equal(open_event(attr, -1), 0);
	assert_int_equal(open_event(attr, 0), 1);
	assert_int_equal(open_event(attr, 1), -EINVAL); /* there is no such leader */
	for (int i = 2; i < TALLY_PLAN_EVENTS; i++)
		assert_int_equal(open_event(attr, -1), i);
	assert_int_equal(open_event(attr, -1), -EMFILE);
	ops()->close(provider, TALLY_PLAN_EVENTS - 1);
	struct fake_tool tool;
	fake_tool_open(&tool, plan_path());
	assert_int_equal(open_event(attr, -1), -EOPNOTSUPP); /* the program runs already */
	fake_tool_close(&tool);
}

/* ---- reading and control ------------------------------------------------- */

static void reads_have_the_form_that_was_asked_for(void **state)
{
	(void)state;
	struct tally_attr leader = own(INSTRUCTIONS), member = own(LOADS);
	leader.read_format = TALLY_FORMAT_GROUP | TALLY_FORMAT_TOTAL_TIME_ENABLED |
			     TALLY_FORMAT_TOTAL_TIME_RUNNING | TALLY_FORMAT_ID | TALLY_FORMAT_LOST;
	member.read_format = TALLY_FORMAT_ID | TALLY_FORMAT_LOST;
	struct fake_tool tool;
	uint64_t words[16];
	open_event(leader, -1);
	open_event(member, 0);
	fake_tool_open(&tool, plan_path());
	tool.plan->shared.events[0].total = (struct tally_plan_total){ 1000, 20, 10, 3 };
	tool.plan->shared.events[1].total = (struct tally_plan_total){ 500, 20, 10, 4 };
	assert_int_equal(ops()->read(provider, 0, words, sizeof(words)), 72);
	assert_memory_equal(words, ((uint64_t[]){ 2, 20, 10, 1000, 1, 3, 500, 2, 4 }), 72);
	assert_int_equal(ops()->read(provider, 1, words, sizeof(words)), 24);
	assert_memory_equal(words, ((uint64_t[]){ 500, 2, 4 }), 24);
	assert_int_equal(ops()->read(provider, 0, words, 71), -ENOSPC);
	assert_int_equal(ops()->read(provider, 7, words, 71), -EBADF);
	fake_tool_close(&tool);
}

static void control_reaches_the_processes(void **state)
{
	(void)state;
	struct fake_tool tool;
	uint64_t word, period = 77, zero = 0;
	open_event(sampling(INSTRUCTIONS), -1);
	open_event(own(LOADS), 0);
	assert_int_equal(ops()->ioctl(provider, 0, TALLY_IOCTL_PERIOD, &period, 0), 0);
	assert_int_equal(ops()->ioctl(provider, 0, TALLY_IOCTL_PERIOD, &zero, 0), -EINVAL);
	assert_int_equal(ops()->ioctl(provider, 1, TALLY_IOCTL_PERIOD, &period, 0), -EINVAL);
	fake_tool_open(&tool, plan_path());
	assert_int_equal(tool.plan->shared.events[0].attr.sample_period, 77);
	assert_int_equal(ops()->ioctl(provider, 0, TALLY_IOCTL_ENABLE, NULL, 1), 0);
	assert_true(tool.plan->shared.events[0].enabled && tool.plan->shared.events[1].enabled);
	assert_int_equal(ops()->ioctl(provider, 1, TALLY_IOCTL_DISABLE, NULL, 0), 0);
	assert_true(tool.plan->shared.events[0].enabled && !tool.plan->shared.events[1].enabled);
	assert_int_equal(ops()->ioctl(provider, 0, TALLY_IOCTL_PERIOD, &period, 0), -EOPNOTSUPP);
	tool.plan->shared.events[0].total.value = 100;
	assert_int_equal(ops()->ioctl(provider, 0, TALLY_IOCTL_RESET, NULL, 0), 0);
	tool.plan->shared.events[0].total.value = 130;
	ops()->read(provider, 0, &word, sizeof(word));
	assert_int_equal(word, 30);
	fake_tool_close(&tool);
}

/* ---- rings --------------------------------------------------------------- */

struct reader {
	struct tally_user_page *page;
	size_t bytes;
	uint64_t samples, comms, last[8]; /* by id: the last number seen */
	bool in_order;
};

static void start_reader(struct reader *reader, int handle, size_t pages)
{
	*reader = (struct reader){ .bytes = pages * TALLY_PLAN_PAGE, .in_order = true };
	reader->page = ops()->map(provider, handle, pages, 0);
	assert_non_null(reader->page);
	assert_int_equal(reader->page->data_offset, TALLY_PLAN_PAGE);
}

static void copy_from(const struct reader *reader, uint64_t at, void *out, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)out)[i] = ((uint8_t *)reader->page)[TALLY_PLAN_PAGE +
								((at + i) & (reader->bytes - 1))];
}

/* Reads all records, and checks that they are valid and each writer's numbers in order. */
static void read_all(struct reader *reader)
{
	uint64_t head = __atomic_load_n(&reader->page->data_head, __ATOMIC_ACQUIRE),
		 tail = reader->page->data_tail;
	static union {
		struct tally_record_header header;
		struct fake_sample sample;
		struct fake_comm comm;
		uint8_t bytes[65536];
	} record;
	assert_true(head - tail <= reader->bytes);
	while (tail != head) {
		copy_from(reader, tail, &record.header, sizeof(record.header));
		assert_true(record.header.size >= 8 && record.header.size <= head - tail &&
			    !(record.header.size & 7));
		copy_from(reader, tail, record.bytes, record.header.size);
		bool is_sample = record.header.type == TALLY_RECORD_SAMPLE;
		uint64_t id = is_sample ? record.sample.id : record.comm.id;
		uint64_t number = is_sample ? record.sample.number : record.comm.number;
		reader->samples += is_sample;
		reader->comms += record.header.type == TALLY_RECORD_COMM;
		if (id < 8) {
			reader->in_order &= number == reader->last[id] + 1;
			reader->last[id] = number;
		}
		tail += record.header.size;
	}
	__atomic_store_n(&reader->page->data_tail, tail, __ATOMIC_RELEASE);
}

static void records_go_to_the_ring_of_their_event(void **state)
{
	(void)state;
	struct reader samples, side;
	struct fake_tool tool;
	open_event(side_band(), -1);
	open_event(sampling(INSTRUCTIONS), -1);
	open_event(sampling(LOADS), -1);
	start_reader(&side, 0, 1);
	start_reader(&samples, 1, 2);
	assert_int_equal(ops()->ioctl(provider, 2, TALLY_IOCTL_SET_OUTPUT, (void *)1, 0), 0);
	fake_tool_open(&tool, plan_path());
	for (int i = 0; i < 3; i++)
		assert_int_equal(tool.plan->shared.events[i].sampled, 1);
	assert_true(fake_tool_take_ring(&tool));
	const struct fake_comm comm = fake_comm(1, 1);
	const struct fake_sample a = fake_sample(2, 1, 3), b = fake_sample(3, 1, 0),
				 stranger = fake_sample(9, 1, 0);
	fake_tool_write(&tool, &a, a.header.size);
	fake_tool_write(&tool, &comm, comm.header.size);
	fake_tool_write(&tool, &stranger, stranger.header.size);
	fake_tool_write(&tool, &b, b.header.size);
	assert_true(ops()->gather(provider) > 0);
	assert_int_equal(ops()->gather(provider), 0);
	read_all(&side);
	read_all(&samples);
	assert_true(side.comms == 1 && !side.samples && samples.samples == 2 && !samples.comms);
	assert_int_equal(tool.page->data_tail, tool.page->data_head);
	fake_tool_close(&tool);
}

/* Writers are processes of their own, each with a ring; the rings are small and often full. */
static void nothing_is_lost_while_tally_reads(void **state)
{
	enum { WRITERS = 3, RECORDS = 30000 };
	struct reader samples, side;
	pid_t writers[WRITERS];
	(void)state;
	open_event(side_band(), -1);
	for (int i = 0; i < WRITERS; i++)
		open_event(sampling(INSTRUCTIONS), -1);
	start_reader(&side, 0, 1);
	start_reader(&samples, 1, 4);
	for (int i = 1; i < WRITERS; i++)
		ops()->ioctl(provider, 1 + i, TALLY_IOCTL_SET_OUTPUT, (void *)1, 0);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = fork();
		if (writers[i])
			continue;
		struct fake_tool tool;
		fake_tool_open(&tool, plan_path());
		bool works = fake_tool_take_ring(&tool);
		for (uint64_t n = 1; n <= RECORDS && works; n++) {
			struct fake_sample sample = fake_sample(2 + (uint64_t)i, n,
								(unsigned)(n * 7 % 15));
			works = fake_tool_write(&tool, &sample, sample.header.size);
		}
		fake_tool_finish(&tool);
		_exit(!works);
	}
	struct tally_wait_item items[] = { { .handle = 0 }, { .handle = 1 } };
	while (samples.samples < WRITERS * RECORDS) {
		ops()->wait(provider, items, 2, -1, 1000);
		ops()->gather(provider);
		read_all(&side);
		read_all(&samples);
	}
	for (int i = 0; i < WRITERS; i++) {
		int status;
		waitpid(writers[i], &status, 0);
		assert_int_equal(status, 0);
		assert_int_equal(samples.last[2 + i], RECORDS);
	}
	assert_true(samples.in_order);
	assert_int_equal(samples.samples, WRITERS * RECORDS);
}

static void rings_of_finished_processes_are_given_to_others(void **state)
{
	struct reader samples;
	(void)state;
	open_event(sampling(INSTRUCTIONS), -1);
	start_reader(&samples, 0, 16);
	struct fake_tool tool;
	fake_tool_open(&tool, plan_path());
	for (uint64_t n = 1; n <= 3 * TALLY_PLAN_RINGS; n++) {
		struct fake_sample sample = fake_sample(1, n, 1);
		if (!fake_tool_take_ring(&tool)) {
			ops()->gather(provider);
			read_all(&samples);
			assert_true(fake_tool_take_ring(&tool));
		}
		fake_tool_write(&tool, &sample, sample.header.size);
		fake_tool_finish(&tool);
	}
	ops()->gather(provider);
	read_all(&samples);
	assert_int_equal(samples.samples, 3 * TALLY_PLAN_RINGS);
	fake_tool_close(&tool);
}

static void rings_that_make_no_sense_do_no_harm(void **state)
{
	struct reader samples;
	uint64_t seed = 88172645463325252ull;
	(void)state;
	open_event(sampling(INSTRUCTIONS), -1);
	start_reader(&samples, 0, 16);
	struct fake_tool tool;
	fake_tool_open(&tool, plan_path());
	assert_true(fake_tool_take_ring(&tool));
	size_t whole = (size_t)tool.plan->shared.ring_pages * TALLY_PLAN_PAGE;
	for (int round = 0; round < 3000; round++) {
		uint64_t *words = (uint64_t *)((uint8_t *)tool.page + TALLY_PLAN_PAGE);
		for (size_t i = 0; i < 64; i++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			/* Nearly valid headers, so that the checks behind them are reached too. */
			words[seed % (whole / 8)] = round & 1 ? seed
							      : (seed & 0xff00) << 40 |
									TALLY_RECORD_SAMPLE;
		}
		tool.page->data_head = round % 5 ? tool.page->data_head + (seed >> 40) % whole
						 : seed;
		/* includes states that don't exist */
		tool.plan->shared.rings[tool.ring].state = seed >> 60;
		ops()->gather(provider);
		read_all(&samples);
		tool.plan->shared.rings[tool.ring].state = TALLY_PLAN_RING_TAKEN;
	}
	/* It works again when the ring has a new owner. */
	tool.page->data_head = tool.page->data_tail;
	fake_tool_finish(&tool);
	ops()->gather(provider);
	uint64_t before = samples.samples;
	struct fake_sample sample = fake_sample(1, 1, 0);
	assert_true(fake_tool_take_ring(&tool));
	fake_tool_write(&tool, &sample, sample.header.size);
	ops()->gather(provider);
	read_all(&samples);
	assert_int_equal(samples.samples, before + 1);
	fake_tool_close(&tool);
}

static void who_waits_for_room_is_woken_when_nobody_listens(void **state)
{
	struct reader samples;
	(void)state;
	open_event(sampling(INSTRUCTIONS), -1);
	start_reader(&samples, 0, 1);
	pid_t writer = fork();
	if (!writer) {
		struct fake_tool tool;
		fake_tool_open(&tool, plan_path());
		struct fake_sample sample = fake_sample(1, 1, 14);
		bool went_on = fake_tool_take_ring(&tool);
		while (went_on && fake_tool_write(&tool, &sample, sample.header.size))
			;
		_exit(!went_on);
	}
	struct tally_wait_item item = { .handle = 0 };
	/* its first news arrive when the ring is full */
	while (ops()->wait(provider, &item, 1, -1, 1000) <= 0)
		;
	ops()->unmap(provider, samples.page, 1);
	int status = -1;
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
}

static void waiting_ends_by_news_by_the_descriptor_and_by_time(void **state)
{
	struct reader samples;
	int ends[2];
	(void)state;
	open_event(sampling(INSTRUCTIONS), -1);
	start_reader(&samples, 0, 1);
	struct fake_tool tool;
	fake_tool_open(&tool, plan_path());
	struct tally_wait_item item = { .handle = 0 };
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(ops()->wait(provider, &item, 1, ends[0], 30), 0);
	assert_int_equal(item.revents, 0);
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_int_equal(ops()->wait(provider, &item, 1, ends[0], -1), 1);
	assert_int_equal(item.revents, 0);
	fake_tool_news(&tool);
	assert_int_equal(ops()->wait(provider, &item, 1, -1, -1), 1);
	assert_int_equal(item.revents, POLLIN);
	ops()->gather(provider);
	assert_int_equal(ops()->wait(provider, &item, 1, -1, 0), 0);
	close(ends[0]);
	close(ends[1]);
	fake_tool_close(&tool);
}

/* ---- names --------------------------------------------------------------- */

static void expect_event(struct tally_catalogue *catalogue, struct tally_arena *arena,
			 const char *text, uint64_t config, const char *recorded_as)
{
	struct tally_event_list list = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	uint64_t generic;
	if (tally_event_parse(text, catalogue, arena, &list, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	struct tally_event event = list.items[0];
	assert_null(tally_simulated_refuses(&event.attr, NULL));
	tally_simulated_make_generic(&event);
	assert_true(event.attr.flags & TALLY_ATTR_EXCLUDE_KERNEL);
	if (event.attr.type != VSIM_PMU_TYPE)
		assert_int_equal(vsim_generic_config(event.attr.type, event.attr.config, &generic),
				 0);
	else
		generic = event.attr.config;
	assert_int_equal(generic, config);
	assert_int_equal(tally_simulated_make_own(&list.items[0], arena), 0);
	assert_int_equal(list.items[0].attr.type, VSIM_PMU_TYPE);
	assert_int_equal(list.items[0].attr.config, config);
	assert_string_equal(list.items[0].name, recorded_as);
	tally_event_list_release(&list);
}

static void names_mean_the_same_generic_or_own(void **state)
{
	struct tally_catalogue catalogue = { 0 };
	struct tally_arena arena = TALLY_ARENA_INIT;
	(void)state;
	assert_int_equal(tally_simulated_catalogue(&catalogue, NULL), 0);
	expect_event(&catalogue, &arena, "instructions", INSTRUCTIONS, "vsim/instructions/");
	expect_event(&catalogue, &arena, "instructions:u", INSTRUCTIONS, "vsim/instructions/u");
	expect_event(&catalogue, &arena, "vsim/instructions/", INSTRUCTIONS, "vsim/instructions/");
	expect_event(&catalogue, &arena, "vsim/loads,period=100/u", LOADS,
		     "vsim/loads,period=100/u");
	expect_event(&catalogue, &arena, "L1-dcache-loads:pp", LOADS, "vsim/L1-dcache-loads/pp");
	expect_event(&catalogue, &arena, "est-cycles", 1ull << VSIM_EST_CYCLES, "vsim/est-cycles/");
	expect_event(&catalogue, &arena, "instructions/name=work/", INSTRUCTIONS, "work");
	expect_event(&catalogue, &arena, "L1-dcache-read-misses:u", 1ull << VSIM_L1D_LOAD_MISSES,
		     "vsim/L1-dcache-load-misses/u");
	expect_event(&catalogue, &arena, "branches", 1ull << VSIM_BRANCHES, "vsim/branches/");
	expect_event(&catalogue, &arena, "LLC-load-misses", 1ull << VSIM_LLC_LOAD_MISSES,
		     "vsim/LLC-load-misses/");
	for (const struct vsim_event_name *row = vsim_event_names; row->name; row++) {
		char text[96];
		snprintf(text, sizeof(text), "vsim/%s,counters=4/", row->name);
		expect_event(&catalogue, &arena, text, row->config, text);
	}
	bool cycles_marked = false;
	for (size_t i = 0; i < catalogue.named_count; i++)
		if (catalogue.named[i].type == TALLY_TYPE_HARDWARE &&
		    catalogue.named[i].config == TALLY_HW_CPU_CYCLES)
			cycles_marked = catalogue.named[i].unavailable != NULL;
	assert_true(cycles_marked);
	tally_catalogue_release(&catalogue);
	tally_arena_release(&arena);
}

static void figures_say_how_far_they_can_be_trusted(void **state)
{
	(void)state;
	struct tally_attr attr = own(INSTRUCTIONS);
	assert_string_equal(ops()->quality(provider, &attr), "exact");
	attr = own(INSTRUCTIONS | 1ull << VSIM_L2_LOADS);
	assert_string_equal(ops()->quality(provider, &attr), "model");
	attr = own(1ull << VSIM_EST_CYCLES);
	assert_string_equal(ops()->quality(provider, &attr), "estimate");
	attr = (struct tally_attr){ .type = TALLY_TYPE_HARDWARE, .config = TALLY_HW_BRANCH_MISSES };
	assert_string_equal(ops()->quality(provider, &attr), "model");
}

/* ---- the CPU ------------------------------------------------------------- */

static void write_text(const char *root, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(path, 0700);
	}
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void this_machines_caches_are_simulated(void **state)
{
	char root[] = "/tmp/tally-simulated-XXXXXX", command_line[64], name[64];
	static const char *const caches[4][6] = {
		{ "1", "Data", "48K", "12", "64", "64" },
		{ "1", "Instruction", "32K", "8", "64", "64" },
		{ "2", "Unified", "2048K", "16", "64", "2048" },
		{ "3", "Unified", "16M", "16", "64", "16384" },
	};
	static const char *const files[] = {
		"level",         "type", "size", "ways_of_associativity", "coherency_line_size",
		"number_of_sets"
	};
	struct vsim_geometry geometry;
	struct tally_error err = TALLY_ERROR_NONE;
	(void)state;
	assert_non_null(mkdtemp(root));
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "cpu0/cache/index%d/shared_cpu_list", i);
		write_text(root, name, "0\n");
		for (int j = 0; j < 6; j++) {
			snprintf(name, sizeof(name), "cpu0/cache/index%d/%s", i, files[j]);
			write_text(root, name, caches[i][j]);
		}
	}
	assert_int_equal(simulated_geometry_here(root, &geometry), 4);
	assert_true(geometry.l1d.sets == 64 && geometry.l1d.ways == 12 &&
		    geometry.line_bytes == 64);
	assert_true(geometry.l1i.sets == 64 && geometry.l1i.ways == 8);
	assert_true(geometry.l2.sets == 2048 && geometry.l2.ways == 16);
	assert_true(geometry.llc.sets == 16384 && geometry.llc.ways == 16);
	snprintf(command_line, sizeof(command_line), "rm -r %s", root);
	assert_int_equal(system(command_line), 0);
	/* Nothing is known, so everything comes from the preset, and nothing from this machine. */
	assert_int_equal(simulated_geometry_here(root, &geometry), 0);
	assert_null(vsim_geometry_problem(&geometry));
	assert_int_equal(simulated_geometry("no-such-cpu", NULL, &geometry, &err), -EINVAL);
	assert_non_null(strstr(err.hint, "generic"));
	assert_int_equal(simulated_geometry("./no-such-file", NULL, &geometry, &err), -ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
	const struct CMUnitTest tests[] = {
		TEST(plan_holds_the_events_in_the_order_of_opening),
		TEST(regions_are_in_the_plan),
		TEST(closing_an_event_keeps_the_others_ids),
		TEST(plans_are_private_of_one_length_and_gone_at_the_end),
		TEST(plans_of_killed_tallys_are_removed),
		TEST(what_is_executed_has_the_same_options_each_time),
		TEST(programs_that_cannot_be_simulated_are_told_of_before),
		TEST(programs_that_say_they_need_avx512_are_told_of_before),
		TEST(what_is_not_simulated_is_refused_with_a_way_out),
		TEST(open_mirrors_the_kernels_errors),
		TEST(reads_have_the_form_that_was_asked_for),
		TEST(control_reaches_the_processes),
		TEST(records_go_to_the_ring_of_their_event),
		TEST(nothing_is_lost_while_tally_reads),
		TEST(rings_of_finished_processes_are_given_to_others),
		TEST(rings_that_make_no_sense_do_no_harm),
		TEST(who_waits_for_room_is_woken_when_nobody_listens),
		TEST(waiting_ends_by_news_by_the_descriptor_and_by_time),
		TEST(names_mean_the_same_generic_or_own),
		TEST(figures_say_how_far_they_can_be_trusted),
		TEST(this_machines_caches_are_simulated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
