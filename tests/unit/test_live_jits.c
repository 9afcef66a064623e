/* Stacks through code that a JIT made, by the rules in the dump that it writes
 * (task/jit.h). */
#include "test.h"

#include "jit_dump_maker.h"
#include "task/jit.h"
#include "task/user_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PID = 42, CHILD, GRANDCHILD };
enum { CODE = 0x10000000, CODE_BYTES = 0x10000, STACK = 0x20000, STACK_WORDS = 32 };
enum { DUMP_AT = 0x30000, BP = 6, SP = 7, IP = 8, REGISTERS = 20, EXECUTABLE = 5 };

/* A process, its dump, and the recorder that follows it. */
struct scene {
	struct maker maker;
	char folder[32], path[64];
	int fd;
	size_t written;
	struct tally_tasks tasks;
	struct tally_objects objects;
	uint8_t memory[CODE_BYTES]; /* the code in the process */
	bool has_ended;
};

static long read_process(void *context, uint32_t pid, uint64_t address, void *out, size_t size)
{
	struct scene *scene = context;
	if (scene->has_ended || (pid != PID && pid != CHILD && pid != GRANDCHILD) || address - CODE >= CODE_BYTES)
		return -EFAULT;
	size = size < CODE_BYTES - (address - CODE) ? size : CODE_BYTES - (address - CODE);
	memcpy(out, scene->memory + (address - CODE), size);
	return (long)size;
}

static void tell(struct scene *scene, const struct tally_record *record)
{
	assert_int_equal(tally_tasks_record(&scene->tasks, record), 0);
	tally_live_jits_record(scene->objects.live_jits, record);
}

static void map(struct scene *scene, const char *path, uint64_t start, uint64_t length)
{
	struct stat file = { 0 };
	struct tally_record record = { .header.type = TALLY_RECORD_MMAP2 };
	if (path[0] == '/' && path[1] != '/')
		assert_int_equal(stat(path, &file), 0);
	record.mmap.pid = record.mmap.tid = PID;
	record.mmap.start = start;
	record.mmap.length = length;
	record.mmap.protection = EXECUTABLE;
	record.mmap.filename = path;
	record.mmap.has_inode = true;
	record.mmap.inode = file.st_ino;
	tell(scene, &record);
}

static void write_dump(struct scene *scene, size_t to)
{
	size_t size = to - scene->written;
	assert_int_equal(write(scene->fd, scene->maker.bytes.bytes + scene->written, size), size);
	scene->written = to;
	tally_made_code_pass(scene->objects.made_code);
	tally_live_jits_pass(scene->objects.live_jits, &scene->tasks);
	tally_live_jits_look(scene->objects.live_jits, &scene->tasks, PID);
}

static void write_all(struct scene *scene)
{
	write_dump(scene, scene->maker.bytes.length);
}

/* Code whose frame has `cfa` bytes, in the dump and in the process. */
static void make(struct scene *scene, uint64_t time, uint64_t address, uint32_t size, uint8_t cfa,
		 uint64_t number, const char *name)
{
	unwinding(&scene->maker, time, size, cfa);
	load(&scene->maker, time, address, size, number, name);
	memset(scene->memory + (address - CODE), name[0], size);
}

static struct scene *start(void)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	assert_non_null(scene);
	strcpy(scene->folder, "/tmp/tally-jits-XXXXXX");
	assert_non_null(mkdtemp(scene->folder));
	snprintf(scene->path, sizeof(scene->path), "%s/jit-%d.dump", scene->folder, PID);
	scene->fd = open(scene->path, O_CREAT | O_RDWR, 0600);
	assert_true(scene->fd >= 0);
	scene->objects.machine = TALLY_UNWIND_X86_64;
	scene->objects.live_jits = tally_live_jits_new();
	scene->objects.made_code = tally_made_code_new(read_process, scene);
	map(scene, "//anon", CODE, CODE_BYTES);
	map(scene, scene->path, DUMP_AT, 4096);
	header(&scene->maker);
	return scene;
}

static void end_scene(struct scene *scene)
{
	tally_live_jits_free(scene->objects.live_jits);
	tally_made_code_free(scene->objects.made_code);
	tally_objects_release(&scene->objects);
	tally_tasks_release(&scene->tasks);
	tally_buffer_release(&scene->maker.bytes);
	close(scene->fd);
	unlink(scene->path);
	rmdir(scene->folder);
	free(scene);
}

/* Returns how many words of the stack lie below the return address of a leaf's frame; -1:
 * unknown. */
static long frame_in(struct scene *scene, uint32_t pid, uint64_t ip, uint64_t time_ns)
{
	uint64_t words[REGISTERS] = { [BP] = 1, [SP] = STACK, [IP] = ip }, stack[STACK_WORDS],
		 addresses[2];
	struct tally_attr attr = { .sample_type = TALLY_SAMPLE_TIME,
				   .sample_regs_user = TALLY_UNWIND_REGS_MASK,
				   .flags = TALLY_ATTR_USE_CLOCKID,
				   .clockid = CLOCK_MONOTONIC };
	struct tally_sample sample = { .pid = pid,
				       .time = time_ns,
				       .stack = (const uint8_t *)stack,
				       .stack_dynamic_size = sizeof(stack) };
	enum tally_unwind_end end;
	sample.regs_user.abi = 2;
	sample.regs_user.words = words;
	for (unsigned i = 0; i < STACK_WORDS; i++)
		stack[i] = CODE + CODE_BYTES - STACK_WORDS + i; /* mapped, without any rules */
	size_t count = tally_user_stack_frames(&scene->tasks, &scene->objects, &attr, &sample,
					       addresses, NULL, 2, &end, NULL);
	assert_int_equal(addresses[0], ip);
	return count < 2 ? -1 : (long)(addresses[1] - stack[0]);
}

static long frame_of(struct scene *scene, uint64_t ip, uint64_t time_ns)
{
	return frame_in(scene, PID, ip, time_ns);
}

static void code_is_unwound_by_the_dumps_rules(void **state)
{
	struct scene *scene = start();
	(void)state;
	make(scene, 100, CODE, 0x40, 48, 1, "first");
	make(scene, 100, CODE + 0x40, 0x20, 16, 2, "second");
	load(&scene->maker, 100, CODE + 0x100, 0x20, 3, "without rules");
	write_all(scene);
	assert_int_equal(frame_of(scene, CODE + 8, 100), 5);
	assert_int_equal(frame_of(scene, CODE + 0x3f, 200), 5);
	assert_int_equal(frame_of(scene, CODE + 0x40, 200), 1);
	assert_int_equal(frame_of(scene, CODE + 0x60, 200), -1);
	assert_int_equal(frame_of(scene, CODE + 0x100, 200), -1);
	assert_int_equal(frame_of(scene, CODE + 8, 99), -1); /* before it was there */
	end_scene(scene);
}

/* The same stacks after the recording, by a copy that it kept. */
static void the_whole_dump_has_the_same_rules(void **state)
{
	struct scene *scene = start();
	(void)state;
	make(scene, 100, CODE, 0x40, 48, 1, "first");
	make(scene, 100, CODE + 0x40, 0x20, 16, 2, "second");
	write_all(scene);
	tally_live_jits_free(scene->objects.live_jits);
	scene->objects.live_jits = NULL;
	assert_int_equal(frame_of(scene, CODE + 8, 100), -1);
	assert_int_equal(tally_tasks_use_jits(&scene->tasks), 0);
	scene->objects.live_jits = tally_live_jits_new();
	map(scene, scene->path, DUMP_AT, 4096);
	tally_live_jits_free(scene->objects.live_jits);
	scene->objects.live_jits = NULL;
	tally_jits_advance(&scene->tasks, PID, 100);
	assert_int_equal(frame_of(scene, CODE + 8, 100), 5);
	assert_int_equal(frame_of(scene, CODE + 0x40, 100), 1);
	end_scene(scene);
}

static void records_may_be_written_in_pieces(void **state)
{
	struct scene *scene = start();
	(void)state;
	make(scene, 100, CODE, 0x40, 48, 1, "first");
	size_t first = scene->maker.bytes.length;
	make(scene, 200, CODE + 0x40, 0x40, 32, 2, "second");
	for (size_t to = 0; to < scene->maker.bytes.length; to += 7) {
		write_dump(scene, to);
		assert_int_equal(frame_of(scene, CODE + 8, 500), to >= first ? 5 : -1);
		assert_int_equal(frame_of(scene, CODE + 0x48, 500), -1);
	}
	write_all(scene);
	assert_int_equal(frame_of(scene, CODE + 8, 500), 5);
	assert_int_equal(frame_of(scene, CODE + 0x48, 500), 3);
	end_scene(scene);
}

/* Samples come CPU by CPU, so their times jump back: rules that were found for one sample must not
 * be used for another time. */
static void an_address_has_the_rules_of_its_time(void **state)
{
	struct scene *scene = start();
	(void)state;
	make(scene, 100, CODE, 0x40, 48, 1, "x");
	make(scene, 200, CODE, 0x40, 24, 2, "x");
	make(scene, 300, CODE + 0x20, 0x40, 64, 3, "x");
	move(&scene->maker, 400, CODE, CODE + 0x1000, 1);
	memset(scene->memory + 0x1000, 'x', 0x40);
	write_all(scene);
	for (unsigned again = 0; again < 2; again++) {
		assert_int_equal(frame_of(scene, CODE + 0x30, 350), 7);
		assert_int_equal(frame_of(scene, CODE + 0x30, 250), 2);
		assert_int_equal(frame_of(scene, CODE + 0x30, 150), 5);
		assert_int_equal(frame_of(scene, CODE + 0x30, 50), -1);
		assert_int_equal(frame_of(scene, CODE + 0x1030, 399), -1);
		assert_int_equal(frame_of(scene, CODE + 0x1030, 400), 5);
	}
	end_scene(scene);
}

/* A JIT buffers its dump: memory may hold other code before the dump says so. */
static void rules_of_code_that_was_replaced_are_not_used(void **state)
{
	struct scene *scene = start();
	(void)state;
	make(scene, 100, CODE, 0x40, 48, 1, "x");
	write_all(scene);
	assert_int_equal(frame_of(scene, CODE + 8, 500), 5);
	scene->memory[10] = 'y';
	write_all(scene);
	assert_int_equal(frame_of(scene, CODE + 8, 500), -1);
	assert_int_equal(frame_of(scene, CODE + 0x20, 500), 5);
	/* the memory of an ended process can't be compared: the dump's times decide */
	scene->has_ended = true;
	tally_made_code_free(scene->objects.made_code);
	scene->objects.made_code = tally_made_code_new(read_process, scene);
	assert_int_equal(frame_of(scene, CODE + 8, 500), 5);
	end_scene(scene);
}

static void what_the_process_was_is_forgotten(void **state)
{
	struct scene *scene = start();
	(void)state;
	make(scene, 100, CODE, 0x40, 48, 1, "x");
	write_all(scene);
	assert_true(tally_live_jits_has(scene->objects.live_jits, PID));
	assert_false(tally_live_jits_has(scene->objects.live_jits, PID + 1));
	map(scene, scene->path, DUMP_AT, 4096); /* told of twice */
	assert_int_equal(frame_of(scene, CODE + 8, 500), 5);
	struct tally_record exec = { .header = { TALLY_RECORD_COMM, TALLY_MISC_COMM_EXEC, 0 } };
	exec.comm.pid = exec.comm.tid = PID;
	exec.comm.comm = "other";
	tell(scene, &exec);
	assert_false(tally_live_jits_has(scene->objects.live_jits, PID));
	map(scene, scene->path, DUMP_AT, 4096);
	assert_true(tally_live_jits_has(scene->objects.live_jits, PID));
	struct tally_record fork = { .header.type = TALLY_RECORD_FORK };
	fork.task.pid = fork.task.tid = PID;
	fork.task.parent_pid = fork.task.parent_tid = 1;
	tell(scene, &fork);
	assert_false(tally_live_jits_has(scene->objects.live_jits, PID));
	map(scene, scene->path, DUMP_AT, 4096);
	tally_tasks_forget_process(&scene->tasks, PID);
	tally_live_jits_pass(scene->objects.live_jits, &scene->tasks);
	assert_false(tally_live_jits_has(scene->objects.live_jits, PID));
	end_scene(scene);
}

static void fork_process(struct scene *scene, uint32_t parent, uint32_t child, uint64_t time_ns)
{
	struct tally_record fork = { .header.type = TALLY_RECORD_FORK };
	fork.task.pid = fork.task.tid = child;
	fork.task.parent_pid = fork.task.parent_tid = parent;
	fork.task.time = time_ns;
	tell(scene, &fork);
}

/* By the dump that the recorder follows (`live`), or by the whole dump afterwards. */
static void check_children(struct scene *scene, bool live)
{
	static const uint32_t pids[] = { PID, CHILD, GRANDCHILD };
	for (unsigned i = 0; i < 3; i++) {
		bool is_child = i > 0;
		if (!live)
			tally_jits_advance(&scene->tasks, pids[i], 600);
		assert_int_equal(frame_in(scene, pids[i], CODE + 8, 600), 5);
		/* made when the grandchild was there, and after the child was */
		assert_int_equal(frame_in(scene, pids[i], CODE + 0x48, 600), is_child ? -1 : 3);
	}
}

static void a_child_has_the_code_that_its_parent_had_then(void **state)
{
	struct scene *scene = start();
	(void)state;
	make(scene, 100, CODE, 0x40, 48, 1, "x");
	make(scene, 400, CODE + 0x40, 0x40, 32, 2, "x");
	write_all(scene);
	fork_process(scene, PID, CHILD, 200);
	fork_process(scene, CHILD, GRANDCHILD, 500);
	check_children(scene, true);
	tally_tasks_forget_process(&scene->tasks, PID); /* the parent ends before its children */
	tally_live_jits_pass(scene->objects.live_jits, &scene->tasks);
	assert_int_equal(frame_in(scene, CHILD, CODE + 8, 600), 5);
	tally_tasks_forget_process(&scene->tasks, CHILD);
	tally_tasks_forget_process(&scene->tasks, GRANDCHILD);
	tally_live_jits_pass(scene->objects.live_jits, &scene->tasks);
	assert_false(tally_live_jits_has(scene->objects.live_jits, GRANDCHILD));

	tally_live_jits_free(scene->objects.live_jits);
	scene->objects.live_jits = tally_live_jits_new();
	assert_int_equal(tally_tasks_use_jits(&scene->tasks), 0);
	map(scene, "//anon", CODE, CODE_BYTES);
	map(scene, scene->path, DUMP_AT, 4096);
	fork_process(scene, PID, CHILD, 200);
	fork_process(scene, CHILD, GRANDCHILD, 500);
	tally_live_jits_free(scene->objects.live_jits);
	scene->objects.live_jits = NULL;
	check_children(scene, false);
	assert_true(tally_jits_has(&scene->tasks, PID));
	assert_false(tally_jits_has(&scene->tasks, CHILD));
	tally_tasks_forget_process(&scene->tasks, CHILD);
	assert_int_equal(tally_tasks_generation(&scene->tasks, CHILD), 0);
	end_scene(scene);
}

static void files_that_are_no_dump_of_the_process_are_left_alone(void **state)
{
	struct scene *scene = start();
	struct tally_record record = { .header.type = TALLY_RECORD_MMAP2 };
	(void)state;
	struct tally_record exec = { .header = { TALLY_RECORD_COMM, TALLY_MISC_COMM_EXEC, 0 } };
	exec.comm.pid = exec.comm.tid = PID;
	exec.comm.comm = "other";
	tell(scene, &exec);
	record.mmap.pid = PID;
	record.mmap.filename = scene->path;
	record.mmap.has_inode = true;
	record.mmap.protection = EXECUTABLE;
	record.mmap.inode = 1; /* another file */
	tally_live_jits_record(scene->objects.live_jits, &record);
	record.mmap.filename = "/tmp/jit-42.dumps";
	tally_live_jits_record(scene->objects.live_jits, &record);
	record.mmap.filename = "/dev/null/jit-42.dump";
	tally_live_jits_record(scene->objects.live_jits, &record);
	assert_false(tally_live_jits_has(scene->objects.live_jits, PID));
	end_scene(scene);
}

static void a_dump_that_makes_no_sense_is_given_up(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		struct scene *scene = start();
		make(scene, 100, CODE, 0x40, 48, 1, "x");
		if (kind == 0)
			scene->maker.bytes.bytes[0] = 9;
		write_all(scene);
		if (kind == 1) /* shorter than the part that was read */
			assert_int_equal(ftruncate(scene->fd, 50), 0);
		if (kind == 2) {
			for (unsigned i = 0; i <= TALLY_JIT_GROWTH_PLACES_MAX; i++)
				move(&scene->maker, 200, CODE, CODE, 1);
			for (unsigned i = 0; i < 8; i++) /* so much is not read in one pass */
				write_all(scene);
		} else {
			write_dump(scene, scene->written);
		}
		assert_false(tally_live_jits_has(scene->objects.live_jits, PID));
		assert_int_equal(frame_of(scene, CODE + 8, 500), -1);
		end_scene(scene);
	}
}

/* Damaged rules count as none: the instructions are walked instead. */
static void damaged_rules_are_none(void **state)
{
	struct scene *scene = start();
	(void)state;
	make(scene, 100, CODE, 0x40, 48, 1, "x");
	scene->maker.bytes.bytes[40 + 40 + 48 - 7] = 0x3f; /* an unknown instruction */
	write_all(scene);
	assert_int_equal(frame_of(scene, CODE + 8, 500), -1);
	struct tally_live_rules rules;
	assert_false(tally_live_jits_find(scene->objects.live_jits, PID, CODE + 8, 500, &rules));
	end_scene(scene);
}

/* A record is larger than one read, and at first only half of it is in the file. */
static void a_record_may_be_too_large(void **state)
{
	enum { LARGE = 20 << 20 };
	struct scene *scene = start();
	(void)state;
	begin(&scene->maker, 77, 50);
	assert_non_null(tally_buffer_room(&scene->maker.bytes, LARGE));
	memset(scene->maker.bytes.bytes + scene->maker.bytes.length, 0, LARGE);
	scene->maker.bytes.length += LARGE;
	end(&scene->maker);
	make(scene, 100, CODE, 0x40, 48, 1, "x");
	write_dump(scene, LARGE / 2);
	write_dump(scene, LARGE);
	write_all(scene);
	write_all(scene);
	assert_int_equal(frame_of(scene, CODE + 8, 500), 5);
	end_scene(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_is_unwound_by_the_dumps_rules),
		cmocka_unit_test(the_whole_dump_has_the_same_rules),
		cmocka_unit_test(records_may_be_written_in_pieces),
		cmocka_unit_test(an_address_has_the_rules_of_its_time),
		cmocka_unit_test(rules_of_code_that_was_replaced_are_not_used),
		cmocka_unit_test(what_the_process_was_is_forgotten),
		cmocka_unit_test(a_child_has_the_code_that_its_parent_had_then),
		cmocka_unit_test(files_that_are_no_dump_of_the_process_are_left_alone),
		cmocka_unit_test(a_dump_that_makes_no_sense_is_given_up),
		cmocka_unit_test(damaged_rules_are_none),
		cmocka_unit_test(a_record_may_be_too_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
