/* Goes on by the kernel's chain where Go's runtime switched stacks (tally_user_stack_cross()).  The
 * object has the symbols and the section by which Go's are recognised. */
#include "object_fixture.h"

#include "task/user_stack.h"

enum { PID = 42, ROOM = 8 };

/* The targets of calls are read from x86-64 code only. */
#ifdef __x86_64__
enum { HAS_TARGET = 1 };
#else
enum { HAS_TARGET = 0 };
#endif

/* Where the object and a mapping without a file are in the process, and offsets in .text: return
 * addresses, and the beginning of a function. */
static const uint64_t GO = 0x400000, OTHER = 0x900000;
enum {
	IN_LEAF = 0x10,
	IN_SYSTEMSTACK = 0x25,
	MALLOC = 0x40,
	IN_WORK = 0x65,
	IN_GOEXIT = 0x85,
	IN_MCALL = 0xa5,
};

static const char SOURCE[] = ".section .gopclntab, \"a\"\n.byte 0\n.text\n"
			     "leaf: .org 0x20\n"
			     "runtime.systemstack.abi0: .org 0x40\n"
			     "runtime.malloc: .byte 0xe8; .long -0x25; .org 0x60\n"
			     "main.work: .byte 0xe8; .long -0x25; .org 0x80\n"
			     "runtime.goexit.abi0: .byte 0xe8; .long -0x25; .org 0xa0\n"
			     "runtime.mcall: .byte 0xe8; .long -0x85; .org 0xc0\n";
static const char *const FUNCTIONS[] = { "leaf", "runtime.systemstack.abi0", "runtime.malloc",
					 "main.work", "runtime.goexit.abi0", "runtime.mcall" };

struct scene {
	struct tally_tasks tasks;
	struct tally_objects objects;
	uint64_t text;
	uint64_t frames[2 + ROOM];
};

static void map(struct scene *scene, uint64_t start, const char *path)
{
	struct tally_record record = { .header.type = TALLY_RECORD_MMAP2 };
	record.mmap = (struct tally_record_mmap){ .pid = PID,
						  .tid = PID,
						  .start = start,
						  .length = 0x10000,
						  .protection = 5,
						  .filename = path };
	assert_int_equal(tally_tasks_record(&scene->tasks, &record), 0);
}

static void make_object(const char *directory)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/go.s", directory);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (size_t i = 0; i < sizeof(FUNCTIONS) / sizeof(*FUNCTIONS); i++)
		fprintf(file, ".type %s, %%function\n.size %s, 0x20\n", FUNCTIONS[i], FUNCTIONS[i]);
	fputs(SOURCE, file);
	fclose(file);
	assert_true(run(directory, "cc -shared -nostdlib -o go.so go.s"));
}

static struct scene *start(const char *directory)
{
	char path[256];
	struct scene *scene = calloc(1, sizeof(*scene));
	assert_non_null(scene);
	scene->objects.machine = TALLY_UNWIND_HOST;
	make_object(directory);
	snprintf(path, sizeof(path), "%s/go.so", directory);
	map(scene, GO, path);
	map(scene, OTHER, "//anon");
	struct tally_object *object = open_in(directory, "go.so");
	struct tally_section text;
	assert_true(tally_object_section(object, ".text", &text));
	scene->text = GO + text.file_offset;
	tally_object_unref(object);
	return scene;
}

static void end_scene(struct scene *scene)
{
	tally_objects_release(&scene->objects);
	tally_tasks_release(&scene->tasks);
	free(scene);
}

/* The walk has two frames: the leaf's and systemstack's.  The kernel's chain has two words of the
 * kernel, the leaf's address and the `offsets` in .text, which end with 0.  Above 0x1000 they are
 * addresses. */
static size_t cross(struct scene *scene, const uint64_t *offsets, size_t room)
{
	uint64_t chain[16] = { TALLY_CONTEXT_KERNEL, 0xffffffff81000010, TALLY_CONTEXT_USER,
			       scene->text + IN_LEAF };
	size_t length = 4;
	for (; *offsets; offsets++)
		chain[length++] = *offsets > 0x1000 ? *offsets : scene->text + *offsets;
	const struct tally_attr attr = { .sample_type = TALLY_SAMPLE_CALLCHAIN };
	const struct tally_sample sample = {
		.pid = PID, .tid = PID, .chain = chain, .chain_length = length
	};
	memset(scene->frames, 0, sizeof(scene->frames));
	scene->frames[0] = scene->text + IN_LEAF;
	scene->frames[1] = scene->text + IN_SYSTEMSTACK;
	assert_int_equal(tally_user_stack_kernel_words(&sample), 2);
	return tally_user_stack_cross(&scene->tasks, &scene->objects, &attr, &sample,
				      scene->frames, 2, room);
}

#define CROSS(scene, room, ...) cross(scene, (const uint64_t[]){ __VA_ARGS__, 0 }, room)

/* The chain lacks runtime.malloc, which called systemstack: main.work's call leads to it. */
static void the_goroutines_frames_follow(void **state)
{
	struct scene *scene = start(*state);
	const uint64_t *outer = scene->frames + 2;
	assert_int_equal(CROSS(scene, ROOM, IN_SYSTEMSTACK, IN_WORK, IN_GOEXIT), HAS_TARGET + 2);
	if (HAS_TARGET)
		assert_int_equal(outer[0], scene->text + MALLOC + 1);
	assert_int_equal(outer[HAS_TARGET], scene->text + IN_WORK);
	assert_int_equal(outer[HAS_TARGET + 1], scene->text + IN_GOEXIT);
	/* also without the frame that switched */
	assert_int_equal(CROSS(scene, ROOM, IN_WORK, IN_GOEXIT), HAS_TARGET + 2);
	assert_int_equal(outer[HAS_TARGET + 1], scene->text + IN_GOEXIT);
	/* the scheduler's stack */
	assert_int_equal(CROSS(scene, ROOM, IN_SYSTEMSTACK, IN_WORK, IN_MCALL), HAS_TARGET + 2);
	end_scene(scene);
}

static void other_chains_are_not_followed(void **state)
{
	struct scene *scene = start(*state);
	assert_int_equal(CROSS(scene, ROOM, IN_SYSTEMSTACK), 0);
	assert_int_equal(CROSS(scene, ROOM, IN_SYSTEMSTACK, IN_WORK), 0);
	assert_int_equal(CROSS(scene, ROOM, IN_SYSTEMSTACK, IN_GOEXIT, IN_WORK), 0);
	assert_int_equal(CROSS(scene, ROOM, IN_SYSTEMSTACK, OTHER + 0x10, IN_GOEXIT), 0);
	assert_int_equal(CROSS(scene, ROOM, IN_SYSTEMSTACK, 0x12345678, IN_GOEXIT), 0);
	assert_int_equal(scene->frames[0], scene->text + IN_LEAF);
	assert_int_equal(scene->frames[1], scene->text + IN_SYSTEMSTACK);
	end_scene(scene);
}

static void a_chain_of_other_frames_is_not_followed(void **state)
{
	struct scene *scene = start(*state);
	const uint64_t chain[] = { TALLY_CONTEXT_USER, scene->text + IN_WORK,
				   scene->text + IN_GOEXIT };
	const struct tally_attr attr = { .sample_type = TALLY_SAMPLE_CALLCHAIN };
	struct tally_sample sample = { .pid = PID, .tid = PID, .chain = chain, .chain_length = 3 };
	uint64_t frames[2 + ROOM] = { scene->text + IN_LEAF, scene->text + IN_SYSTEMSTACK };
	for (size_t length = 0; length <= 3; length++) {
		sample.chain_length = length;
		assert_int_equal(tally_user_stack_kernel_words(&sample), 0);
		assert_int_equal(tally_user_stack_cross(&scene->tasks, &scene->objects, &attr,
							&sample, frames, 2, ROOM),
				 0);
	}
	end_scene(scene);
}

static void without_room_the_number_is_still_told(void **state)
{
	struct scene *scene = start(*state);
	for (size_t room = 0; room < HAS_TARGET + 2; room++) {
		assert_int_equal(CROSS(scene, room, IN_SYSTEMSTACK, IN_WORK, IN_GOEXIT),
				 HAS_TARGET + 2);
		for (size_t i = 0; i < ROOM; i++)
			assert_int_equal(scene->frames[2 + i] != 0, i < room);
	}
	end_scene(scene);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
	const struct CMUnitTest tests[] = {
		TEST(the_goroutines_frames_follow),
		TEST(other_chains_are_not_followed),
		TEST(a_chain_of_other_frames_is_not_followed),
		TEST(without_room_the_number_is_still_told),
	};
	return cmocka_run_group_tests_name("stack_switch", tests, NULL, NULL);
}
