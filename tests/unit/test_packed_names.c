#include "test.h"

#include "naming/packed.h"
#include "perfdata/perfdata.h"
#include "perfdata_fixture.h"
#include "symbol/jit_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct tally_feature_bytes own_of(const struct tally_perfdata *data)
{
	return tally_perfdata_feature(data, TALLY_FEATURE_TALLY);
}

static void put_words(struct tally_buffer *out, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		tally_own_put_number(out, words[i]);
}

#define PUT(out, ...) \
	put_words(out, (const uint64_t[]){ __VA_ARGS__ }, \
		  sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8)

static void parts_are_found_and_unknown_ones_skipped(void **state)
{
	(void)state;
	struct tally_buffer section = { 0 }, part = { 0 };
	tally_own_feature_begin(&section);
	tally_own_feature_add(&section, (enum tally_own_part)99, "of the future", 13);
	tally_own_feature_add(&section, TALLY_OWN_STRINGS, "a\0b", 4);
	assert_false(section.failed);
	assert_int_equal(
		tally_own_feature_get(section.bytes, section.length, TALLY_OWN_STRINGS, &part), 1);
	assert_int_equal(part.length, 4);
	assert_memory_equal(part.bytes, "a\0b", 4);
	tally_buffer_clear(&part);
	assert_int_equal(
		tally_own_feature_get(section.bytes, section.length, TALLY_OWN_PLACES, &part), 0);
	for (size_t size = 0; size < section.length; size++) {
		tally_buffer_clear(&part);
		int result = tally_own_feature_get(section.bytes, size, TALLY_OWN_STRINGS, &part);
		assert_true(result == -EBADMSG || !result);
	}
	section.bytes[section.length - 5] ^= 1; /* in the frame: its checksum detects the change */
	tally_buffer_clear(&part);
	assert_int_equal(
		tally_own_feature_get(section.bytes, section.length, TALLY_OWN_STRINGS, &part),
		-EBADMSG);
	section.bytes[8]++;
	assert_int_equal(
		tally_own_feature_get(section.bytes, section.length, TALLY_OWN_STRINGS, &part),
		-ENOTSUP);
	tally_buffer_release(&section);
	tally_buffer_release(&part);
}

/* Makes a section: main at 0x1000 … with something inlined at 0x1010; a file by path and inode. */
static void make_names(struct tally_buffer *section, bool sorted)
{
	static const char strings[] = "main\0/bin/prog\0inner\0a.c";
	struct tally_buffer functions = { 0 }, places = { 0 };
	PUT(&functions, 0, 1, 1, 0x1000 + 1);
	PUT(&functions, 4, 3, 1, 0);
	PUT(&places, 0, 1, 0, 8, 1, 77, 0, 0, 2);
	PUT(&places, sorted ? 0x10 : 0x20, 1 << 1 | 1, 0x10, 1, 4, 7, 0, 4, 9);
	PUT(&places, sorted ? 0x10 : 0, 0, 0x20, 0, 0, 0);
	tally_own_feature_begin(section);
	tally_own_feature_add(section, TALLY_OWN_STRINGS, strings, sizeof(strings));
	tally_own_feature_add(section, TALLY_OWN_FUNCTIONS, functions.bytes, functions.length);
	tally_own_feature_add(section, TALLY_OWN_PLACES, places.bytes, places.length);
	tally_buffer_release(&functions);
	tally_buffer_release(&places);
}

/* Makes six bytes of main at 0x1000, with rows without a file, of a.c, and of the inlined function,
 * and two addresses; then four bytes of inner. */
static void make_code(struct tally_buffer *code, bool sorted)
{
	PUT(code, sorted ? 0 : 1, 0x1000, 6, 1 /* shown: -1 */, 62, 1);
	tally_buffer_append(code, "\x90\x91\x92\x93\x94\x95", 6);
	PUT(code, 4, 3, 1, 4, 7, 0, 2, 4, 8, 0, 1, 4, 9, 3);
	PUT(code, 2, 0x2000, 0, 4, 1, 0x10, 3);
	PUT(code, sorted ? 1 : 0, 0x3000, 4, 0, 183, 3);
	tally_buffer_append(code, "abcd", 4);
	PUT(code, 0, 0, 0);
}

static int read_code(const struct tally_buffer *code, struct tally_packed_names **names,
		     struct tally_packed_codes **codes)
{
	struct tally_buffer section = { 0 };
	make_names(&section, true);
	tally_own_feature_add(&section, TALLY_OWN_CODE, code->bytes, code->length);
	assert_int_equal(tally_packed_names_read(section.bytes, section.length, names), 1);
	int result = tally_packed_codes_read(section.bytes, section.length, *names, codes);
	tally_buffer_release(&section);
	return result;
}

static int read_sources(const struct tally_buffer *sources, struct tally_packed_names **names)
{
	struct tally_buffer section = { 0 };
	make_names(&section, true);
	tally_own_feature_add(&section, TALLY_OWN_SOURCES, sources->bytes, sources->length);
	int result = tally_packed_names_read(section.bytes, section.length, names);
	tally_buffer_release(&section);
	return result;
}

static void functions_have_the_files_that_tell_them_apart(void **state)
{
	(void)state;
	struct tally_buffer sources = { 0 };
	struct tally_packed_names *names;
	PUT(&sources, 1, 3);
	assert_int_equal(read_sources(&sources, &names), 1);
	assert_null(names->functions.items[0].source);
	assert_string_equal(names->functions.items[1].source, "a.c");
	tally_packed_names_free(names);
	static const uint64_t damaged[][2] = { { 77, 3 }, { 1, 77 } };
	for (size_t i = 0; i < 2; i++) {
		tally_buffer_clear(&sources);
		PUT(&sources, damaged[i][0], damaged[i][1]);
		assert_int_equal(read_sources(&sources, &names), -EBADMSG);
	}
	tally_buffer_clear(&sources);
	PUT(&sources, 1); /* truncated */
	assert_int_equal(read_sources(&sources, &names), -EBADMSG);
	tally_buffer_release(&sources);
}

static void code_is_found_by_its_function(void **state)
{
	(void)state;
	struct tally_buffer code = { 0 };
	struct tally_packed_names *names;
	struct tally_packed_codes *codes;
	make_code(&code, true);
	assert_int_equal(read_code(&code, &names, &codes), 1);
	const struct tally_packed_code *main_ = tally_packed_code_find(codes, 0),
				       *inner = tally_packed_code_find(codes, 1);
	assert_non_null(main_);
	assert_non_null(inner);
	assert_null(tally_packed_code_find(codes, 2));
	assert_int_equal(main_->start, 0x1000);
	assert_int_equal(main_->size, 6);
	assert_int_equal(main_->shown, UINT64_MAX);
	assert_int_equal(main_->machine, 62);
	assert_true(main_->is_64bit && !main_->is_big_endian && inner->is_big_endian);
	assert_memory_equal(inner->bytes, "abcd", 4);
	assert_string_equal(main_->main_file, "a.c");
	assert_null(tally_packed_code_row(codes, main_, 0));
	const struct tally_packed_code_row *row = tally_packed_code_row(codes, main_, 2);
	const struct tally_line_frame *frames = codes->frames.items + row->first;
	assert_int_equal(row->count, 1);
	assert_int_equal(frames->line, 7);
	row = tally_packed_code_row(codes, main_, 5);
	frames = codes->frames.items + row->first;
	assert_int_equal(row->count, 2);
	assert_int_equal(frames->line, 9);
	assert_string_equal(frames->function, "inner");
	assert_string_equal(frames[1].file, "a.c");
	assert_null(tally_packed_code_row(codes, main_, 6));
	assert_null(tally_packed_code_row(codes, inner, 0));
	assert_string_equal(tally_packed_code_target(codes, main_, 0x2000)->name, "a.c");
	assert_int_equal(tally_packed_code_target(codes, main_, 0x2001)->offset, 0x10);
	assert_null(tally_packed_code_target(codes, main_, 0x2002));
	tally_packed_codes_free(codes);
	tally_packed_names_free(names);
	tally_buffer_release(&code);
}

static void code_that_is_cut_or_out_of_order_is_damage(void **state)
{
	(void)state;
	struct tally_buffer code = { 0 }, part = { 0 };
	struct tally_packed_names *names;
	struct tally_packed_codes *codes;
	make_code(&code, true);
	for (size_t size = 1; size < code.length; size++) {
		tally_buffer_clear(&part);
		tally_buffer_append(&part, code.bytes, size);
		/* a cut just behind the first function is valid */
		int result = read_code(&part, &names, &codes);
		assert_true(result == -EBADMSG || (result == 1 && codes->codes.count == 1));
		tally_packed_codes_free(codes);
		tally_packed_names_free(names);
	}
	tally_buffer_clear(&code);
	make_code(&code, false);
	assert_int_equal(read_code(&code, &names, &codes), -EBADMSG);
	assert_null(codes);
	tally_packed_names_free(names);
	tally_buffer_release(&code);
	tally_buffer_release(&part);
}

/* Part 9 has the functions between an inlined one and the code's own. */
static void code_has_all_that_was_inlined(void **state)
{
	(void)state;
	struct tally_buffer code = { 0 }, around = { 0 }, section = { 0 };
	struct tally_packed_names *names;
	struct tally_packed_codes *codes;
	make_code(&code, true);
	PUT(&around, 1, 1);
	for (size_t size = around.length; size; size--) {
		tally_buffer_clear(&section);
		make_names(&section, true);
		tally_own_feature_add(&section, TALLY_OWN_CODE, code.bytes, code.length);
		tally_own_feature_add(&section, TALLY_OWN_AROUND, around.bytes, size);
		assert_int_equal(tally_packed_names_read(section.bytes, section.length, &names), 1);
		int result = tally_packed_codes_read(section.bytes, section.length, names, &codes);
		assert_int_equal(result, size == around.length ? 1 : -EBADMSG);
		if (result == 1) {
			const struct tally_packed_code *main_ = tally_packed_code_find(codes, 0);
			const struct tally_packed_code_row *row = tally_packed_code_row(
				codes, main_, 5);
			const struct tally_line_frame *frames = codes->frames.items + row->first;
			assert_int_equal(row->count, 3);
			assert_string_equal(frames[0].function, "inner");
			assert_string_equal(frames[1].function, "main");
			assert_string_equal(frames[2].file, "a.c");
		}
		tally_packed_codes_free(codes);
		tally_packed_names_free(names);
	}
	tally_buffer_release(&code);
	tally_buffer_release(&around);
	tally_buffer_release(&section);
}

static uint32_t map_file(struct tally_tasks *tasks, uint64_t inode)
{
	struct tally_record record = {
		.header = { .type = TALLY_RECORD_MMAP2 },
		.mmap = { .pid = 1,
			  .tid = 1,
			  .start = 0x400000,
			  .length = 0x1000,
			  .protection = 5,
			  .major = 8,
			  .minor = 1,
			  .has_inode = true,
			  .inode = inode,
			  .filename = "/bin/prog" },
	};
	assert_int_equal(tally_tasks_record(tasks, &record), 0);
	return tally_tasks_find(tasks, 1, false, 0x400000)->file;
}

static void places_are_found_by_file_address_and_kind(void **state)
{
	(void)state;
	struct tally_buffer section = { 0 };
	struct tally_packed_names *packed;
	struct tally_tasks tasks = { 0 };
	uint32_t file = map_file(&tasks, 77), other = map_file(&tasks, 78);
	make_names(&section, true);
	assert_int_equal(tally_packed_names_read(section.bytes, section.length, &packed), 1);
	struct tally_place place = { .file = file, .before = 1, .address = 0x10 };
	const struct tally_packed_place *found = tally_packed_names_find(packed, &tasks, file,
									 &place);
	assert_non_null(found);
	assert_int_equal(found->count, 2);
	assert_int_equal(found->offset, 0x10);
	assert_string_equal(
		packed->functions.items[packed->frames.items[found->first].function].name, "inner");
	assert_string_equal(packed->frames.items[found->first].file, "a.c");
	assert_int_equal(packed->frames.items[found->first].line, 7);
	place.before = 0;
	assert_null(tally_packed_names_find(packed, &tasks, file, &place));
	place.address = 0x20;
	assert_non_null(tally_packed_names_find(packed, &tasks, file, &place));
	/* the same path, but another file */
	assert_null(tally_packed_names_find(packed, &tasks, other, &place));
	assert_null(tally_packed_names_find(packed, &tasks, TALLY_FILE_KERNEL, &place));
	tally_packed_names_free(packed);
	tally_buffer_clear(&section);
	make_names(&section, false); /* contains one place twice */
	assert_int_equal(tally_packed_names_read(section.bytes, section.length, &packed), -EBADMSG);
	assert_null(packed);
	tally_buffer_release(&section);
	tally_tasks_release(&tasks);
}

static void expect_called(struct tally_names *names, uint32_t file, uint64_t address,
			  const char *plain)
{
	struct tally_place place = { .file = file, .address = address };
	struct tally_place_name name;
	uint64_t offset;
	uint32_t function = tally_names_function(names, &place, &offset);
	assert_string_equal(tally_names_plain_text(names, function), plain);
	assert_string_equal(tally_names_text(names, function), "[unknown]");
	assert_int_equal(tally_names_resolve(names, &place, 1, &name), 0);
	assert_int_equal(names->frames.items[name.first].function, function);
	assert_int_equal(name.offset, offset);
	assert_int_equal(offset, strstr(plain, "000]") ? 4 : 0);
}

static void functions_without_symbols_keep_where_they_begin(void **state)
{
	(void)state;
	static const char strings[] = "/bin/prog";
	struct tally_buffer section = { 0 }, functions = { 0 }, places = { 0 };
	struct tally_tasks tasks = { 0 };
	struct tally_names names;
	uint32_t file = map_file(&tasks, 77);
	PUT(&functions, 0, 0, 0, 0x1000 + 1);
	PUT(&functions, 0, 0, 0, 0x2000 + 1);
	PUT(&functions, 0, 0, 0, 0);
	PUT(&places, 0, 0, 0, 8, 1, 77, 0, 0, 3);
	PUT(&places, 0x10, 0, 4, 0, 0, 0, 0x10, 0, 4, 1, 0, 0, 0x10, 0, 0, 2, 0, 0);
	tally_own_feature_begin(&section);
	tally_own_feature_add(&section, TALLY_OWN_STRINGS, strings, sizeof(strings));
	tally_own_feature_add(&section, TALLY_OWN_FUNCTIONS, functions.bytes, functions.length);
	tally_own_feature_add(&section, TALLY_OWN_PLACES, places.bytes, places.length);
	tally_names_init(&names, &tasks);
	tally_names_use_packed(&names, section.bytes, section.length);
	expect_called(&names, file, 0x10, "[prog+0x1000]");
	expect_called(&names, file, 0x20, "[prog+0x2000]");
	expect_called(&names, file, 0x30, "[prog+0x30]"); /* its file is not there */
	tally_names_release(&names);
	tally_tasks_release(&tasks);
	tally_buffer_release(&section);
	tally_buffer_release(&functions);
	tally_buffer_release(&places);
}

static void stacks_come_back_as_they_were(void **state)
{
	(void)state;
	enum { SAMPLES = 2000 };
	struct tally_packed_stacks *noted = calloc(1, sizeof(*noted));
	struct tally_packed_stacks *read;
	struct tally_buffer section = { 0 };
	assert_non_null(noted);
	srand(3);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		uint64_t addresses[8];
		bool exact[8] = { true };
		struct tally_unwound_stack stack = { addresses, exact, (uint32_t)(rand() % 8),
						     rand() % 5 == 0, 0 };
		stack.is_complete = !stack.is_cut;
		for (unsigned k = 0; k < 8; k++)
			addresses[k] = k % 3 ? 0x7f0000000000 + (uint64_t)(rand() % 4)
					     : UINT64_MAX - (uint64_t)(rand() % 3);
		if (i % 7)
			assert_int_equal(tally_packed_stacks_note(
						 noted, i, &stack,
						 (struct tally_packed_need){ (uint32_t)i, i % 2 }),
					 0);
	}
	tally_own_feature_begin(&section);
	tally_packed_stacks_write(noted, &section);
	assert_int_equal(tally_packed_stacks_read(section.bytes, section.length, &read), 1);
	assert_int_equal(read->samples.count, noted->samples.count);
	for (uint64_t i = 0; i < noted->samples.count; i++) {
		struct tally_unwound_stack a, b;
		struct tally_packed_need need_a, need_b;
		assert_true(tally_packed_stacks_at(noted, i, &a, &need_a) &&
			    tally_packed_stacks_at(read, i, &b, &need_b));
		assert_int_equal(a.count, b.count);
		assert_true(a.is_cut == b.is_cut && a.is_complete == b.is_complete);
		for (uint32_t k = 0; k < a.count; k++)
			assert_true(a.addresses[k] == b.addresses[k] &&
				    a.is_exact[k] == b.is_exact[k]);
		if (a.count && a.is_cut)
			assert_true(need_a.bytes == need_b.bytes &&
				    need_a.is_at_most == need_b.is_at_most);
	}
	tally_packed_stacks_free(read);
	tally_buffer_release(&section);
	tally_packed_stacks_free(noted);
}

/* ---- in a file ----------------------------------------------------------- */

static int temporary(void)
{
	char name[] = "/tmp/tally-test-XXXXXX";
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	unlink(name);
	return fd;
}

static void write_recording(int fd, const char *own)
{
	struct tally_recorded_event events[2];
	struct tally_perfdata_options options = { 0 };
	struct tally_perfdata_writer *writer;
	struct tally_buffer records = { 0 }, feature = { 0 };
	fixture_events(events);
	assert_int_equal(tally_perfdata_writer_new(fd, events, 2, &options, &writer, NULL), 0);
	fixture_put_comm(&records, 5);
	assert_int_equal(tally_perfdata_write(writer, records.bytes, records.length, NULL), 0);
	tally_feature_string(&feature, "here");
	assert_int_equal(tally_perfdata_write_feature(writer, TALLY_FEATURE_HOSTNAME, feature.bytes,
						      feature.length, NULL),
			 0);
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
	if (own) {
		assert_int_equal(tally_perfdata_add_own(writer, own, strlen(own), NULL), 0);
		/* only once is allowed */
		assert_int_equal(tally_perfdata_add_own(writer, own, strlen(own), NULL), -EINVAL);
	}
	tally_perfdata_writer_free(writer);
	tally_buffer_release(&records);
	tally_buffer_release(&feature);
}

static void check_recording(int fd, const char *own)
{
	struct tally_perfdata *data;
	struct tally_raw_record record;
	struct stat file;
	assert_int_equal(fstat(fd, &file), 0);
	void *bytes = malloc((size_t)file.st_size);
	assert_int_equal(pread(fd, bytes, (size_t)file.st_size, 0), file.st_size);
	assert_int_equal(tally_perfdata_open_memory(bytes, (size_t)file.st_size, &data, NULL), 0);
	assert_string_equal(tally_perfdata_feature_text(data, TALLY_FEATURE_HOSTNAME), "here");
	struct tally_feature_bytes found = own_of(data);
	assert_int_equal(found.bytes != NULL, own != NULL);
	if (own) {
		assert_int_equal(found.size, strlen(own));
		assert_memory_equal(found.bytes, own, found.size);
	}
	assert_int_equal(tally_perfdata_next(data, &record, NULL), 1);
	assert_int_equal(tally_perfdata_next(data, &record, NULL), 0);
	assert_null(tally_perfdata_damage(data));
	tally_perfdata_close(data);
	free(bytes);
}

static void a_finished_file_is_added_to(void **state)
{
	(void)state;
	int fd = temporary();
	write_recording(fd, NULL);
	check_recording(fd, NULL);
	close(fd);
	fd = temporary();
	write_recording(fd, "the names");
	check_recording(fd, "the names");
	close(fd);
}

static void a_copy_has_the_section_added_or_replaced(void **state)
{
	(void)state;
	int fd = temporary(), copy = temporary(), again = temporary();
	write_recording(fd, NULL);
	assert_int_equal(tally_perfdata_graft(fd, copy, "first", 5, NULL), 0);
	check_recording(copy, "first");
	assert_int_equal(tally_perfdata_graft(copy, again, "another", 7, NULL), 0);
	check_recording(again, "another");
	check_recording(fd, NULL);
	close(fd);
	close(copy);
	close(again);
}

static void what_is_no_finished_file_is_not_copied(void **state)
{
	(void)state;
	int fd = temporary(), copy = temporary();
	assert_int_equal(tally_perfdata_graft(fd, copy, "x", 1, NULL), -ENOTSUP);
	write_recording(fd, NULL);
	struct stat file;
	assert_int_equal(fstat(fd, &file), 0);
	/* truncated anywhere: it is refused, or the remaining part is copied */
	for (off_t size = file.st_size; size-- > 0;) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_int_equal(ftruncate(copy, 0), 0);
		int result = tally_perfdata_graft(fd, copy, "x", 1, NULL);
		assert_true(!result || result == -ENOTSUP);
	}
	close(fd);
	close(copy);
}

static void map_dump(struct tally_tasks *tasks, const char *path, uint64_t inode)
{
	struct tally_record record = {
		.header = { .type = TALLY_RECORD_MMAP2 },
		.mmap = { .pid = 1, .tid = 1, .start = inode << 20, .length = 4096,
			  .has_inode = true, .inode = inode, .major = 8 },
	};
	record.mmap.filename = path;
	assert_int_equal(tally_tasks_record(tasks, &record), 0);
}

/* A dump with one function of 16 bytes at `address`. */
static void put_dump(struct tally_buffer *part, const char *path, uint64_t inode, uint64_t major,
		     uint64_t address)
{
	enum { HAS_DEVICE = 2 };
	const uint64_t numbers[] = { inode, 0, HAS_DEVICE, major, 0, 1, 0, 16, 1, 0 };
	tally_buffer_append(part, path, strlen(path) + 1);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		tally_own_put_number(part, numbers[i]);
	tally_own_put_step(part, address);
	tally_own_put_number(part, 0);
}

static void a_recorded_dump_is_found_by_its_file(void **state)
{
	enum { DUMPS = 20000 };
	struct tally_tasks tasks = { 0 };
	struct tally_buffer part = { 0 }, section = { 0 };
	struct tally_packed_jits *jits;
	struct tally_jit_dump *dump;
	char path[64];
	(void)state;
	/* equal paths, other inodes; the same file on another device */
	put_dump(&part, "/tmp/jit-0.dump", 1, 7, 1 << 20);
	for (uint64_t i = 1; i <= DUMPS; i++) {
		snprintf(path, sizeof(path), "/tmp/jit-%u.dump", (unsigned)i / 2);
		put_dump(&part, path, i, 8, i << 12);
		map_dump(&tasks, path, i);
	}
	map_dump(&tasks, "/tmp/jit-1.dump", DUMPS + 1);
	assert_int_equal(tasks.files.count, DUMPS + 1);
	tally_own_feature_begin(&section);
	tally_own_feature_add(&section, TALLY_OWN_JITS, part.bytes, part.length);
	assert_false(section.failed);
	assert_int_equal(tally_packed_jits_new(section.bytes, section.length, &jits), 0);
	clock_t began = clock();
	for (uint32_t file = 0; file < DUMPS; file++) {
		assert_int_equal(tally_packed_jits_find(jits, &tasks, file, &dump), 1);
		assert_int_equal(dump->places.count, 1);
		assert_int_equal(dump->places.items[0].address, ((uint64_t)file + 1) << 12);
		tally_jit_dump_free(dump);
	}
	/* microseconds for each; reading all others before it would take milliseconds */
	assert_true(clock() - began < 10 * CLOCKS_PER_SEC);
	assert_int_equal(tally_packed_jits_find(jits, &tasks, DUMPS, &dump), 0);
	assert_null(dump);
	tally_packed_jits_free(jits);
	tally_buffer_release(&part);
	tally_buffer_release(&section);
	tally_tasks_release(&tasks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recorded_dump_is_found_by_its_file),
		cmocka_unit_test(parts_are_found_and_unknown_ones_skipped),
		cmocka_unit_test(functions_have_the_files_that_tell_them_apart),
		cmocka_unit_test(code_is_found_by_its_function),
		cmocka_unit_test(code_that_is_cut_or_out_of_order_is_damage),
		cmocka_unit_test(code_has_all_that_was_inlined),
		cmocka_unit_test(places_are_found_by_file_address_and_kind),
		cmocka_unit_test(functions_without_symbols_keep_where_they_begin),
		cmocka_unit_test(stacks_come_back_as_they_were),
		cmocka_unit_test(a_finished_file_is_added_to),
		cmocka_unit_test(a_copy_has_the_section_added_or_replaced),
		cmocka_unit_test(what_is_no_finished_file_is_not_copied),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
