/* Limits of what is read (base/input_limits.h), and the two ways to hold a file's bytes:
 * base/file_copy.h, base/lost_pages.h. */
#include "test.h"

#include "base/file_copy.h"
#include "base/gzip.h"
#include "base/input_limits.h"
#include "base/lost_pages.h"
#include "base/number_text.h"
#include "base/threads.h"
#include "base/unpack.h"
#include "naming/packed.h"
#include "perfdata/perfdata.h"
#include "symbol/jit_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static void the_document_lists_the_table(void **state)
{
	char path[512], line[512], expected[512], size[TALLY_SIZE_TEXT];
	unsigned rows = 0;
	(void)state;
	snprintf(path, sizeof(path), "%s/docs/security.md", getenv("TALLY_SOURCE_ROOT"));
	FILE *file = fopen(path, "re");
	bool is_in = false;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "## ", 3))
			is_in = !strcmp(line, "## Limits\n");
		if (!is_in || strncmp(line, "| `", 3) != 0)
			continue;
		assert_true(rows < TALLY_INPUTS);
		const struct tally_input_row *row = &tally_input_rows[rows++];
		int length = snprintf(expected, sizeof(expected), "| `%s` | %s", row->name,
				      tally_size_text(row->bytes, size));
		if (row->ratio)
			length += snprintf(expected + length, sizeof(expected) - (size_t)length,
					   "; %u times what is stored, but at least %s", row->ratio,
					   tally_size_text(row->free_bytes, size));
		snprintf(expected + length, sizeof(expected) - (size_t)length, " | %s |\n",
			 row->what);
		assert_string_equal(line, expected);
	}
	assert_int_equal(rows, TALLY_INPUTS);
	fclose(file);
}

static void a_size_is_a_number_with_a_unit(void **state)
{
	static const struct { const char *text; uint64_t bytes; bool is_size; } sizes[] = {
		{ "0", 0, true },
		{ "512M", UINT64_C(512) << 20, true },
		{ "8g", UINT64_C(8) << 30, true },
		{ "3k", 3072, true },
		{ "18446744073709551615", UINT64_MAX, true },
		{ "18446744073709551616", 0, false },
		{ "17179869184G", 0, false },
		{ "17179869183G", UINT64_C(17179869183) << 30, true },
		{ "", 0, false },
		{ "G", 0, false },
		{ "1GB", 0, false },
		{ "-1", 0, false },
		{ " 1", 0, false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t bytes = 7;
		assert_int_equal(tally_size_parse(sizes[i].text, strlen(sizes[i].text), &bytes),
				 sizes[i].is_size);
		assert_true(bytes == (sizes[i].is_size ? sizes[i].bytes : 7));
	}
}

static void the_variable_sets_limits(void **state)
{
	struct tally_error err = TALLY_ERROR_NONE;
	(void)state;
	setenv("TALLY_LIMITS", "recording=8G,section=3M", 1);
	assert_int_equal(tally_input_limits_check(&err), 0);
	assert_true(tally_input_limit(TALLY_INPUT_RECORDING) == UINT64_C(8) << 30);
	assert_true(tally_input_limit(TALLY_INPUT_TEXT) == tally_input_rows[TALLY_INPUT_TEXT].bytes);
	/* it replaces the ratio, too */
	assert_int_equal(tally_input_limit_unpacked(TALLY_INPUT_SECTION, 1), 3 * MIB);
	setenv("TALLY_LIMITS", "recordings=8G", 1);
	assert_int_equal(tally_input_limits_check(&err), -EINVAL);
	assert_non_null(strstr(err.message, "'recordings'"));
	assert_non_null(strstr(err.hint, "recording, "));
	setenv("TALLY_LIMITS", "recording", 1);
	assert_int_equal(tally_input_limits_check(&err), -EINVAL);
	setenv("TALLY_LIMITS", "demangled=1M", 1);
	assert_int_equal(tally_input_limits_check(&err), -EINVAL);
	assert_null(strstr(err.hint, "demangled"));
	unsetenv("TALLY_LIMITS");
	assert_int_equal(tally_input_limits_check(&err), 0);
}

static void compressed_input_has_a_ratio(void **state)
{
	const struct tally_input_row *row = &tally_input_rows[TALLY_INPUT_SECTION];
	uint64_t above = row->free_bytes / row->ratio + 1000;
	(void)state;
	assert_true(tally_input_limit_unpacked(TALLY_INPUT_SECTION, 0) == row->free_bytes);
	assert_true(tally_input_limit_unpacked(TALLY_INPUT_SECTION, above) == row->ratio * above);
	assert_true(tally_input_limit_unpacked(TALLY_INPUT_SECTION, UINT64_MAX) == row->bytes);
}

static void the_first_refusal_of_a_kind_is_kept(void **state)
{
	enum tally_input input = 0;
	const char *name;
	(void)state;
	assert_int_equal(tally_input_noted(&input, &name), 0);
	tally_input_note(TALLY_INPUT_OBJECT, "first");
	tally_input_note(TALLY_INPUT_OBJECT, "second");
	tally_input_note(TALLY_INPUT_OBJECT, "first");
	tally_input_note(TALLY_INPUT_OBJECT, "second");
	tally_input_note(TALLY_INPUT_JIT_DUMP, "third");
	input = 0;
	assert_int_equal(tally_input_noted(&input, &name), 2);
	assert_int_equal(input, TALLY_INPUT_OBJECT);
	assert_string_equal(name, "first");
	input++;
	assert_int_equal(tally_input_noted(&input, &name), 1);
	assert_int_equal(input, TALLY_INPUT_JIT_DUMP);
	input++;
	assert_int_equal(tally_input_noted(&input, &name), 0);
}

/* ---- files --------------------------------------------------------------- */

static int temporary(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void a_copy_has_the_bytes_and_no_holes(void **state)
{
	uint8_t *copy;
	uint64_t data;
	int fd = temporary();
	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)1 << 30), 0);
	assert_int_equal(pwrite(fd, "begin", 5, 0), 5);
	assert_int_equal(pwrite(fd, "end", 3, ((off_t)1 << 30) - 3), 3);
	assert_int_equal(tally_file_copy(fd, (size_t)1 << 30, MIB, &copy, &data), 0);
	assert_true(data >= 8 && data <= MIB);
	assert_memory_equal(copy, "begin", 6);
	assert_memory_equal(copy + (1 << 30) - 4, "\0end", 4);
	tally_file_copy_free(copy, (size_t)1 << 30);
	assert_int_equal(tally_file_copy(fd, (size_t)1 << 30, 7, &copy, &data), -EFBIG);
	assert_int_equal(tally_file_copy(fd, ((size_t)1 << 30) + 1, MIB, &copy, &data), -ENODATA);
	assert_int_equal(tally_file_copy(fd, 5, 5, &copy, &data), 0);
	assert_int_equal(data, 5);
	assert_memory_equal(copy, "begin", 5);
	tally_file_copy_free(copy, 5);
	close(fd);
}

static void a_file_is_ours_if_others_cannot_write(void **state)
{
	struct stat status = { .st_uid = geteuid(), .st_gid = getegid(), .st_mode = 0664 };
	(void)state;
	assert_true(tally_file_is_ours(&status));
	status.st_gid++;
	assert_false(tally_file_is_ours(&status));
	status.st_mode = 0644;
	assert_true(tally_file_is_ours(&status));
	status.st_mode = 0646;
	assert_false(tally_file_is_ours(&status));
	status.st_mode = 0644;
	status.st_uid = 0;
	assert_true(tally_file_is_ours(&status));
	status.st_uid = geteuid() + 1;
	assert_false(tally_file_is_ours(&status));
}

static void *read_byte(void *bytes)
{
	return (void *)(uintptr_t)*(const volatile uint8_t *)bytes;
}

/* A thread that blocks SIGBUS would end the process. */
static void threads_survive_lost_pages(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	FILE *file = tmpfile();
	pthread_t thread;
	void *result = file;
	(void)state;
	tally_lost_pages_survive();
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)page), 0);
	void *bytes = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fileno(file), 0);
	assert_true(bytes != MAP_FAILED);
	assert_int_equal(ftruncate(fileno(file), 0), 0);
	size_t before = tally_lost_pages(NULL);
	assert_int_equal(tally_thread_start(&thread, read_byte, bytes), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	assert_int_equal(tally_lost_pages(NULL), before + 1);
	munmap(bytes, page);
	fclose(file);
}

static void a_lost_page_reads_as_zeros_and_is_counted(void **state)
{
	enum { PAGES = 3 };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char path[] = "/tmp/tally-lost-XXXXXX";
	const char *lost;
	int fd = mkstemp(path);
	(void)state;
	tally_lost_pages_survive();
	assert_true(fd >= 0);
	for (size_t i = 0; i < PAGES * page; i += 8)
		assert_int_equal(write(fd, "abcdefgh", 8), 8);
	volatile const uint8_t *bytes = mmap(NULL, PAGES * page, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(bytes != MAP_FAILED);
	assert_int_equal(bytes[2 * page + 1], 'b');
	assert_int_equal(tally_lost_pages(NULL), 0);
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	assert_int_equal(bytes[1], 'b');
	assert_int_equal(bytes[2 * page + 1], 0);
	assert_int_equal(tally_lost_pages(&lost), 1);
	assert_string_equal(lost, path);
	assert_int_equal(bytes[page + 1], 0);
	assert_int_equal(bytes[page + 2], 0);
	assert_int_equal(tally_lost_pages(NULL), 2);
	assert_true(tally_lost_pages_report());
	assert_false(tally_lost_pages_report());
	munmap((void *)(uintptr_t)bytes, PAGES * page);
	unlink(path);
	close(fd);
}

/* ---- what is made of little ---------------------------------------------- */

static uint64_t end_of_dump(const uint8_t *file, size_t size)
{
	struct tally_jit_extent extent = { 0 };
	while (extent.at < size) {
		size_t left = size - (size_t)extent.at;
		if (!tally_jit_extent_go_on(&extent, file + extent.at, left < 64 ? left : 64))
			break;
	}
	return extent.at;
}

static void a_dump_ends_where_its_records_end(void **state)
{
	static uint8_t file[4096];
	const uint32_t header[10] = { 0x4a695444, 1, 40, 62 },
		       records[][4] = { { 3, 16, 0, 0 }, { 9, 200, 0, 0 }, { 3, 16, 0, 0 } };
	(void)state;
	assert_int_equal(end_of_dump(file, sizeof(file)), 0);
	memcpy(file, header, sizeof(header));
	assert_int_equal(end_of_dump(file, sizeof(file)), 40);
	memcpy(file + 40, records[0], 16);
	memcpy(file + 56, records[1], 16);
	memcpy(file + 256, records[2], 16);
	assert_int_equal(end_of_dump(file, sizeof(file)), 272);
	/* a torn record, and a header of which only a part is there */
	assert_int_equal(end_of_dump(file, 100), 256);
	assert_int_equal(end_of_dump(file, 262), 256);
	assert_int_equal(end_of_dump(file, 39), 0);
}

static void what_unpacks_to_more_is_too_large_not_damaged(void **state)
{
	static uint8_t zeros[64 * MIB];
	struct tally_buffer packed = { 0 };
	uint8_t *out;
	size_t size;
	(void)state;
	assert_int_equal(tally_gzip(zeros, sizeof(zeros), &packed, NULL), 0);
	assert_true(packed.length < MIB);
	assert_int_equal(tally_unpack(packed.bytes, packed.length, 63 * MIB, &out, &size), -EFBIG);
	assert_int_equal(tally_unpack(packed.bytes, packed.length, 64 * MIB, &out, &size), 0);
	assert_int_equal(size, 64 * MIB);
	free(out);
	assert_int_equal(tally_unpack(packed.bytes, packed.length / 2, 64 * MIB, &out, &size),
			 -EBADMSG);
	/* above what zlib's own counters hold */
	assert_int_equal(tally_unpack(packed.bytes, packed.length, (size_t)1 << 33, &out, &size), 0);
	free(out);
	tally_buffer_release(&packed);
}

static void a_section_of_little_makes_no_large_parts(void **state)
{
	static uint8_t zeros[100 * MIB];
	struct tally_buffer section = { 0 }, part = { 0 };
	enum tally_input input = TALLY_INPUT_SECTION;
	const char *name;
	(void)state;
	tally_own_feature_begin(&section);
	tally_own_feature_add(&section, TALLY_OWN_STRINGS, zeros, 1000);
	assert_int_equal(tally_own_feature_get(section.bytes, section.length, TALLY_OWN_STRINGS,
					       &part),
			 1);
	tally_buffer_clear(&part);
	/* all parts count, whichever is wanted */
	tally_own_feature_add(&section, TALLY_OWN_PLACES, zeros, sizeof(zeros));
	assert_false(section.failed);
	assert_int_equal(tally_own_feature_get(section.bytes, section.length, TALLY_OWN_STRINGS,
					       &part),
			 -EFBIG);
	assert_int_equal(tally_input_noted(&input, &name), 1);
	assert_int_equal(input, TALLY_INPUT_SECTION);
	setenv("TALLY_LIMITS", "section=200M", 1);
	assert_int_equal(tally_own_feature_get(section.bytes, section.length, TALLY_OWN_PLACES,
					       &part),
			 1);
	assert_int_equal(part.length, sizeof(zeros));
	unsetenv("TALLY_LIMITS");
	tally_buffer_release(&part);
	tally_buffer_release(&section);
}

/* Every byte of the part becomes an item of several. */
static void tables_of_little_are_not_large(void **state)
{
	static uint8_t zeros[60 * MIB];
	struct tally_buffer section = { 0 };
	struct tally_packed_names *names;
	struct tally_packed_stacks *stacks;
	enum tally_input input = TALLY_INPUT_TABLES;
	struct rusage usage;
	const char *name;
	(void)state;
	tally_own_feature_begin(&section);
	tally_own_feature_add(&section, TALLY_OWN_STRINGS, zeros, sizeof(zeros));
	assert_int_equal(tally_packed_names_read(section.bytes, section.length, &names), -EFBIG);
	assert_null(names);
	assert_int_equal(tally_input_noted(&input, &name), 1);
	assert_int_equal(input, TALLY_INPUT_TABLES);
	tally_buffer_clear(&section);
	tally_own_feature_begin(&section);
	tally_own_feature_add(&section, TALLY_OWN_STACKS, zeros, sizeof(zeros));
	assert_int_equal(tally_packed_stacks_read(section.bytes, section.length, &stacks), -EFBIG);
	assert_null(stacks);
	getrusage(RUSAGE_SELF, &usage);
	assert_true(usage.ru_maxrss < 700 << 10); /* this program's own arrays are a part of it */
	setenv("TALLY_LIMITS", "tables=8G", 1);
	tally_buffer_clear(&section);
	tally_own_feature_begin(&section);
	tally_own_feature_add(&section, TALLY_OWN_STRINGS, zeros, sizeof(zeros));
	assert_int_not_equal(tally_packed_names_read(section.bytes, section.length, &names), -EFBIG);
	tally_packed_names_free(names);
	tally_buffer_release(&section);
	unsetenv("TALLY_LIMITS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_document_lists_the_table),
		cmocka_unit_test(a_size_is_a_number_with_a_unit),
		cmocka_unit_test(the_variable_sets_limits),
		cmocka_unit_test(compressed_input_has_a_ratio),
		cmocka_unit_test(the_first_refusal_of_a_kind_is_kept),
		cmocka_unit_test(a_copy_has_the_bytes_and_no_holes),
		cmocka_unit_test(a_file_is_ours_if_others_cannot_write),
		cmocka_unit_test(a_lost_page_reads_as_zeros_and_is_counted),
		cmocka_unit_test(threads_survive_lost_pages),
		cmocka_unit_test(a_dump_ends_where_its_records_end),
		cmocka_unit_test(what_unpacks_to_more_is_too_large_not_damaged),
		cmocka_unit_test(a_section_of_little_makes_no_large_parts),
		cmocka_unit_test(tables_of_little_are_not_large),
	};
	return cmocka_run_group_tests_name("input_limits", tests, NULL, NULL);
}
