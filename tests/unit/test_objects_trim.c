/* Files in a long recording: the least recently used are closed, and opened again when needed. */
#include "object_fixture.h"
#include "task/task.h"

#include <string.h>

enum { FILES = 8 };

struct fixture {
	const char *directory;
	struct tally_tasks tasks;
	struct tally_objects objects;
};

/* Makes copies of a program, each mapped by a process of its own. */
static void fixture_init(struct fixture *f, const char *directory)
{
	*f = (struct fixture){ .directory = directory, .objects.is_live = true };
	assert_true(run(directory, "for i in 0 1 2 3 4 5 6 7; do cp /bin/true $i; done"));
	for (uint32_t i = 0; i < FILES; i++) {
		char path[128];
		snprintf(path, sizeof(path), "%s/%u", directory, i);
		struct tally_record record = { .header.type = TALLY_RECORD_MMAP2 };
		record.mmap = (struct tally_record_mmap){ .pid = 1u << 30 | i,
							  .tid = 1u << 30 | i,
							  .start = 0x1000,
							  .length = 0x1000,
							  .protection = 5,
							  .filename = path };
		assert_int_equal(tally_tasks_record(&f->tasks, &record), 0);
	}
	assert_int_equal(f->tasks.files.count, FILES);
}

static void fixture_release(struct fixture *f)
{
	tally_objects_release(&f->objects);
	tally_tasks_release(&f->tasks);
}

static struct tally_object_entry *use(struct fixture *f, uint32_t file)
{
	struct tally_object_entry *entry = tally_objects_get(&f->objects, &f->tasks, file);
	assert_non_null(entry);
	return entry;
}

static void use_all(struct fixture *f)
{
	const struct tally_objects_budget any = { 0 };
	for (uint32_t i = 0; i < FILES; i++) {
		assert_non_null(use(f, i)->object);
		assert_non_null(tally_objects_unwind(use(f, i)));
		tally_objects_trim(&f->objects, &any);
	}
	assert_int_equal(f->objects.open.count, FILES);
}

static bool is_open(const struct fixture *f, uint32_t file)
{
	return f->objects.entries.items[file].object != NULL;
}

static void what_was_not_used_for_longest_is_closed(void **state)
{
	struct fixture f;
	fixture_init(&f, *state);
	use_all(&f);
	use(&f, 0);
	tally_objects_trim(&f.objects, &(struct tally_objects_budget){ .objects = FILES });
	assert_int_equal(f.objects.open.count, FILES);
	tally_objects_trim(&f.objects, &(struct tally_objects_budget){ .objects = 6 });
	assert_int_equal(f.objects.open.count, 3);
	for (uint32_t i = 0; i < FILES; i++)
		assert_int_equal(is_open(&f, i), i == 0 || i >= 6);
	fixture_release(&f);
}

static void it_is_opened_again_with_its_rules(void **state)
{
	struct fixture f;
	fixture_init(&f, *state);
	use_all(&f);
	tally_objects_trim(&f.objects, &(struct tally_objects_budget){ .objects = 2 });
	assert_false(is_open(&f, 3));
	assert_non_null(use(&f, 3)->object);
	assert_non_null(tally_objects_unwind(use(&f, 3)));
	assert_int_equal(f.objects.open.count, 2);
	fixture_release(&f);
}

static void rules_beyond_the_bytes_are_freed(void **state)
{
	struct fixture f;
	fixture_init(&f, *state);
	use_all(&f);
	size_t bytes = tally_unwind_table_bytes(use(&f, 0)->unwind);
	tally_objects_trim(&f.objects, &(struct tally_objects_budget){ .bytes = 1 << 20 });
	assert_int_equal(f.objects.open.count, FILES);
	tally_objects_trim(&f.objects, &(struct tally_objects_budget){ .bytes = bytes });
	assert_int_equal(f.objects.open.count, 0);
	fixture_release(&f);
}

static void files_beyond_the_mapped_bytes_are_closed(void **state)
{
	struct fixture f;
	size_t size;
	fixture_init(&f, *state);
	use_all(&f);
	tally_object_image(use(&f, 7)->object, &size);
	tally_objects_trim(&f.objects, &(struct tally_objects_budget){ .mapped = FILES * size });
	assert_int_equal(f.objects.open.count, FILES);
	tally_objects_trim(&f.objects, &(struct tally_objects_budget){ .mapped = 4 * size });
	assert_int_equal(f.objects.open.count, 2);
	assert_true(is_open(&f, 7));
	fixture_release(&f);
}

static void build_ids_of_removed_files_stay_known(void **state)
{
	struct fixture f;
	fixture_init(&f, *state);
	use_all(&f);
	const struct tally_build_id id = *tally_objects_build_id(use(&f, 5));
	assert_true(id.size > 0);
	tally_objects_trim(&f.objects, &(struct tally_objects_budget){ .objects = 1 });
	assert_true(run(f.directory, "rm 5; cp /bin/ls 4"));
	assert_true(
		tally_build_id_equal(tally_objects_file_build_id(&f.objects, &f.tasks, 5), &id));
	assert_true(
		tally_build_id_equal(tally_objects_file_build_id(&f.objects, &f.tasks, 4), &id));
	assert_int_equal(f.objects.open.count, 0); /* and the call opened nothing */
	const struct tally_object_entry *entry = use(&f, 5);
	assert_null(entry->object);
	assert_true(tally_build_id_equal(tally_objects_build_id(entry), &id));
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_not_used_for_longest_is_closed,
						make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(it_is_opened_again_with_its_rules, make_directory,
						remove_directory),
		cmocka_unit_test_setup_teardown(rules_beyond_the_bytes_are_freed, make_directory,
						remove_directory),
		cmocka_unit_test_setup_teardown(files_beyond_the_mapped_bytes_are_closed,
						make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(build_ids_of_removed_files_stay_known,
						make_directory, remove_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
