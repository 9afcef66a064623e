/* A JIT's dump: which code an address holds at a time, in either byte order, in valid dumps and
 * damaged ones. */
#include "base/buffer.h"
#include "symbol/jit_dump.h"
#include "symbol/symbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING };

struct maker {
	struct tally_buffer bytes;
	bool swap;
	size_t record;
};

static void u32(struct maker *maker, uint32_t value)
{
	value = maker->swap ? __builtin_bswap32(value) : value;
	tally_buffer_append(&maker->bytes, &value, sizeof(value));
}

static void u64(struct maker *maker, uint64_t value)
{
	value = maker->swap ? __builtin_bswap64(value) : value;
	tally_buffer_append(&maker->bytes, &value, sizeof(value));
}

static void text(struct maker *maker, const char *value)
{
	tally_buffer_append(&maker->bytes, value, strlen(value) + 1);
}

static void header(struct maker *maker)
{
	u32(maker, 0x4a695444);
	u32(maker, 1);
	u32(maker, 40);
	u32(maker, 62);
	u32(maker, 0);
	u32(maker, 4711);
	u64(maker, 5);
	u64(maker, 0);
}

static void begin(struct maker *maker, uint32_t type, uint64_t time)
{
	maker->record = maker->bytes.length;
	u32(maker, type);
	u32(maker, 0);
	u64(maker, time);
}

static void end(struct maker *maker)
{
	uint32_t size = (uint32_t)(maker->bytes.length - maker->record);
	size = maker->swap ? __builtin_bswap32(size) : size;
	memcpy(maker->bytes.bytes + maker->record + 4, &size, sizeof(size));
}

static void load(struct maker *maker, uint64_t time, uint64_t address, uint64_t size,
		 uint64_t number, const char *name)
{
	begin(maker, LOAD, time);
	u32(maker, 4711);
	u32(maker, 4711);
	u64(maker, address);
	u64(maker, address);
	u64(maker, size);
	u64(maker, number);
	text(maker, name);
	for (uint64_t i = 0; i < size; i++)
		tally_buffer_char(&maker->bytes, name[0]);
	end(maker);
}

static void move(struct maker *maker, uint64_t time, uint64_t from, uint64_t to, uint64_t number)
{
	begin(maker, MOVE, time);
	u32(maker, 4711);
	u32(maker, 4711);
	u64(maker, to);
	u64(maker, from);
	u64(maker, to);
	u64(maker, 1);
	u64(maker, number);
	end(maker);
}

static struct tally_jit_dump *read_dump(const struct maker *maker)
{
	struct tally_jit_dump *dump;
	assert_int_equal(tally_jit_dump_read(maker->bytes.bytes, maker->bytes.length, &dump, NULL),
			 0);
	return dump;
}

static const char *name_at(const struct tally_jit_dump *dump, uint64_t address, uint64_t time)
{
	const struct tally_jit_place *place = tally_jit_dump_find(
		dump, address, tally_jit_dump_places_at(dump, time));
	if (!place)
		return "nothing";
	const struct tally_jit_function *function = &dump->functions.items[place->function];
	assert_ptr_equal(tally_jit_dump_function(dump, function->base + (address - place->address)),
			 function);
	assert_int_equal(function->bytes[0], function->name[0]);
	return function->name;
}

static void code_is_what_was_there_at_the_time(void **state)
{
	(void)state;
	for (int swap = 0; swap < 2; swap++) {
		struct maker maker = { .swap = swap };
		header(&maker);
		load(&maker, 100, 0x1000, 0x100, 1, "old");
		load(&maker, 200, 0x1080, 0x10, 2, "within");
		/* times need not be in order */
		load(&maker, 150, 0x3000, 0x10, 3, "late in the file");
		move(&maker, 300, 0x1000, 0x2000, 1);
		load(&maker, 400, 0x0ff0, 0x20, 4, "over its start");
		struct tally_jit_dump *dump = read_dump(&maker);
		assert_int_equal(dump->pid, 4711);
		assert_int_equal(dump->machine, 62);
		assert_int_equal(dump->damaged, 0);
		assert_string_equal(name_at(dump, 0x1000, 99), "nothing");
		assert_string_equal(name_at(dump, 0x1000, 100), "old");
		assert_string_equal(name_at(dump, 0x1080, 199), "old");
		assert_string_equal(name_at(dump, 0x1080, 200), "within");
		assert_string_equal(name_at(dump, 0x108f, 500), "within");
		assert_string_equal(name_at(dump, 0x1090, 500), "old");
		assert_string_equal(name_at(dump, 0x1100, 500), "nothing");
		assert_string_equal(name_at(dump, 0x3000, 149), "nothing");
		assert_string_equal(name_at(dump, 0x3000, 150), "late in the file");
		assert_string_equal(name_at(dump, 0x2080, 299), "nothing");
		assert_string_equal(name_at(dump, 0x2080, 300), "old");
		assert_string_equal(name_at(dump, 0x1008, 399), "old");
		assert_string_equal(name_at(dump, 0x1008, 400), "over its start");
		assert_string_equal(name_at(dump, 0x1010, 400), "old");
		tally_jit_dump_free(dump);
		tally_buffer_release(&maker.bytes);
	}
}

/* Finds the latest place that holds an address, by a search through all. */
static void many_places_are_found_like_by_looking_at_all(void **state)
{
	(void)state;
	struct maker maker = { 0 };
	uint64_t random = 88172645463325252ull;
	header(&maker);
	enum { PLACES = 700 };
	for (unsigned i = 0; i < PLACES; i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		load(&maker, i / 3 * 10, 0x10000 + (random >> 40) % 4096,
		     1 + (random >> 20) % (i % 7 ? 40 : 900), i, "f");
	}
	struct tally_jit_dump *dump = read_dump(&maker);
	assert_int_equal(dump->places.count, PLACES);
	for (uint64_t address = 0xfff0; address < 0x11500; address += 3)
		for (size_t limit = 0; limit <= PLACES; limit += 50) {
			const struct tally_jit_place *right = NULL;
			for (size_t i = 0; i < limit; i++) {
				const struct tally_jit_place *place = &dump->places.items[i];
				if (address - place->address <
				    dump->functions.items[place->function].size)
					right = place;
			}
			assert_ptr_equal(tally_jit_dump_find(dump, address, limit), right);
		}
	tally_jit_dump_free(dump);
	tally_buffer_release(&maker.bytes);
}

static void line(struct maker *maker, uint64_t address, uint32_t number, const char *file)
{
	u64(maker, address);
	u32(maker, number);
	u32(maker, 7);
	text(maker, file);
}

static void assert_line(const struct tally_jit_dump *dump, uint64_t address, uint32_t number,
			const char *file)
{
	const struct tally_jit_line *found = tally_jit_dump_line(dump, address);
	if (!number) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_int_equal(found->line, number);
	if (file)
		assert_string_equal(found->file, file);
	else
		assert_null(found->file);
}

static void lines_belong_to_the_code_behind_them(void **state)
{
	(void)state;
	struct maker maker = { 0 };
	header(&maker);
	begin(&maker, DEBUG_INFO, 10);
	u64(&maker, 0x1000);
	u64(&maker, 3);
	line(&maker, 0x1000, 1, "a.x");
	line(&maker, 0x1010, 2, "\xff");
	line(&maker, 0x1020, 3, "b.x");
	end(&maker);
	load(&maker, 10, 0x1000, 0x40, 1, "first");
	begin(&maker, DEBUG_INFO, 10); /* describes other code than the next record */
	u64(&maker, 0x9000);
	u64(&maker, 1);
	line(&maker, 0x9000, 9, "c.x");
	end(&maker);
	load(&maker, 10, 0x1100, 0x40, 2, "second");
	struct tally_jit_dump *dump = read_dump(&maker);
	assert_line(dump, 0x0f, 1, "a.x");
	assert_line(dump, 0x10, 2, "a.x");
	assert_line(dump, 0x3f, 3, "b.x");
	assert_line(dump, 0x40, 0, NULL); /* between two lines */
	assert_line(dump, 0x41, 0, NULL);
	tally_jit_dump_free(dump);
	tally_buffer_release(&maker.bytes);
}

/* Adds a name whose first 16 bytes malloc has overwritten with a pointer and a number, as in a dump
 * of Node.js 20. */
static void freed_line(struct maker *maker, uint64_t address, uint32_t number, const char *file)
{
	static const char pointer[] = "A]-\0\0\0\0\0\xb3W\x8a\x02S9\x16\x19";
	size_t length = strlen(file), damaged = length < 16 ? length : 16;
	u64(maker, address);
	u32(maker, number);
	u32(maker, 7);
	tally_buffer_append(&maker->bytes, pointer, damaged);
	text(maker, file + damaged);
}

/* V8's dumps: addresses moved for perf, and names from freed memory. */
static void lines_of_v8_are_mended(void **state)
{
	(void)state;
	struct maker maker = { 0 };
	header(&maker);
	begin(&maker, DEBUG_INFO, 10);
	u64(&maker, 0x1000);
	u64(&maker, 3);
	freed_line(&maker, 0x1040, 3,
		   "/home/me/src/a shape.js"); /* "A]-" is readable, but not a name */
	line(&maker, 0x1048, 5, "node:internal/util");
	freed_line(&maker, 0x1050, 4, "/home/me/src/a shape.js");
	tally_buffer_append(&maker.bytes, "\0\0\0\0", 4); /* padding to whole words */
	end(&maker);
	load(&maker, 10, 0x1000, 0x40, 1, "JS:*get area /home/me/src/a shape.js:3:45");
	begin(&maker, DEBUG_INFO, 10);
	u64(&maker, 0x2000);
	u64(&maker, 3);
	freed_line(&maker, 0x2040, 1, "/home/me/src/shapes.js"); /* a name of another length */
	line(&maker, 0x2044, 2,
	     "\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd");
	freed_line(&maker, 0x2048, 3, "/home/me/src/a shape.js");
	end(&maker);
	load(&maker, 10, 0x2000, 0x10, 2, "JS:^area /home/me/src/a shape.js:9:1");
	begin(&maker, DEBUG_INFO, 10);
	u64(&maker, 0x3000);
	u64(&maker, 2);
	freed_line(&maker, 0x3040, 1, "/w.js");
	freed_line(&maker, 0x3044, 2, "/w.js");
	end(&maker);
	load(&maker, 10, 0x3000, 0x10, 3, "JS:^ /w.js:1:1");
	begin(&maker, DEBUG_INFO, 10);
	u64(&maker, 0x4000);
	u64(&maker, 1);
	line(&maker, 0x4040, 8, "\x03");
	end(&maker);
	load(&maker, 10, 0x4000, 0x10, 4, "Builtin:x");
	struct tally_jit_dump *dump = read_dump(&maker);
	assert_line(dump, 0, 3, "/home/me/src/a shape.js");
	assert_line(dump, 0x8, 5, "node:internal/util");
	assert_line(dump, 0x10, 4, "/home/me/src/a shape.js");
	assert_line(dump, 0x41, 0, NULL);
	assert_line(dump, 0x45, 2, "/home/me/src/a shape.js");
	assert_line(dump, 0x49, 3, "/home/me/src/a shape.js");
	assert_line(dump, 0x52, 1, "/w.js");
	assert_line(dump, 0x56, 2, "/w.js");
	assert_line(dump, 0x63, 0, NULL);
	tally_jit_dump_free(dump);
	tally_buffer_release(&maker.bytes);
}

static void unwind_rules_are_the_next_codes(void **state)
{
	(void)state;
	struct maker maker = { 0 };
	header(&maker);
	begin(&maker, UNWINDING, 10);
	u64(&maker, 12);
	u64(&maker, 4);
	u64(&maker, 12);
	tally_buffer_append(&maker.bytes, "rules...head", 12);
	end(&maker);
	load(&maker, 10, 0x1000, 0x40, 1, "first");
	load(&maker, 10, 0x1100, 0x40, 2, "second");
	struct tally_jit_dump *dump = read_dump(&maker);
	assert_int_equal(dump->functions.items[0].eh_frame_size, 8);
	assert_memory_equal(dump->functions.items[0].eh_frame, "rules...", 8);
	assert_int_equal(dump->functions.items[1].eh_frame_size, 0);
	tally_jit_dump_free(dump);
	tally_buffer_release(&maker.bytes);
}

static void what_is_damaged_is_left_out_and_counted(void **state)
{
	(void)state;
	struct maker maker = { 0 };
	struct tally_symbols *symbols;
	size_t count;
	header(&maker);
	load(&maker, 10, 0x1000, 0x40, 1, "good");
	move(&maker, 20, 0x1000, 0x2000, 99);              /* refers to code that does not exist */
	load(&maker, 30, UINT64_MAX - 1, 0x40, 2, "wraps"); /* beyond the last address */
	load(&maker, 40, 0x5000, 0, 3, "empty");
	begin(&maker, 77, 50); /* a record type of a newer version */
	end(&maker);
	load(&maker, 60, 0x3000, 0x40, 4, "also good");
	struct tally_jit_dump *dump = read_dump(&maker);
	assert_int_equal(dump->damaged, 3);
	assert_string_equal(name_at(dump, 0x3000, 60), "also good");
	assert_int_equal(tally_jit_dump_symbols(dump, &symbols), 0);
	assert_string_equal(tally_symbols_list(symbols, &count)[0].name, "good");
	assert_int_equal(count, 3);
	tally_symbols_free(symbols);
	tally_jit_dump_free(dump);

	size_t whole = maker.bytes.length;
	for (size_t cut = 40; cut < whole; cut++) { /* a dump that is still being written */
		maker.bytes.length = cut;
		dump = read_dump(&maker);
		assert_string_equal(name_at(dump, 0x3000, 60), "nothing");
		tally_jit_dump_free(dump);
	}
	maker.bytes.length = whole;
	struct tally_error err;
	maker.bytes.bytes[4] = 9;
	assert_int_equal(tally_jit_dump_read(maker.bytes.bytes, whole, &dump, &err), -95);
	assert_non_null(strstr(err.message, "version 9"));
	maker.bytes.bytes[0] = 9;
	assert_int_equal(tally_jit_dump_read(maker.bytes.bytes, whole, &dump, &err), -74);
	tally_buffer_release(&maker.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_is_what_was_there_at_the_time),
		cmocka_unit_test(many_places_are_found_like_by_looking_at_all),
		cmocka_unit_test(lines_belong_to_the_code_behind_them),
		cmocka_unit_test(lines_of_v8_are_mended),
		cmocka_unit_test(unwind_rules_are_the_next_codes),
		cmocka_unit_test(what_is_damaged_is_left_out_and_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
