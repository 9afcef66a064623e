/* A JIT's dump: which code an address holds at a time, in either byte order, in valid dumps and
 * damaged ones. */
#include "test.h"

#include "jit_dump_maker.h"
#include "symbol/jit_dump.h"
#include "symbol/symbol.h"

#include <errno.h>

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
	     "\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd"
	     "\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd");
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

/* ---- a dump that grows ---------------------------------------------------- */

static const uint64_t NOW = UINT64_MAX;

static void grow(struct tally_jit_growth *growth, const struct maker *maker, size_t *at, size_t to)
{
	size_t read, wanted;
	assert_int_equal(
		tally_jit_growth_read(growth, maker->bytes.bytes + *at, to - *at, &read, &wanted),
		0);
	assert_true(read <= to - *at);
	*at += read;
}

/* Returns the size of the rules of the code that was at an address at a time; -1: no known code. */
static long rules_at(struct tally_jit_growth *growth, uint64_t address, uint64_t time_ns)
{
	struct tally_jit_grown grown;
	if (!tally_jit_growth_find(growth, address, time_ns, &grown))
		return -1;
	return (long)grown.function->eh_frame_size;
}

static void rules(struct maker *maker, uint64_t time, const char *text)
{
	begin(maker, UNWINDING, time);
	u64(maker, strlen(text));
	u64(maker, 0);
	u64(maker, strlen(text));
	tally_buffer_append(&maker->bytes, text, strlen(text));
	end(maker);
}

static void a_growing_dump_tells_what_the_whole_one_does(void **state)
{
	(void)state;
	for (unsigned step = 1; step < 300; step += step < 70 ? 1 : 37) {
		struct maker maker = { .swap = step % 2 };
		header(&maker);
		load(&maker, 50, 0x500, 0x10, 9, "before there are rules");
		rules(&maker, 100, "one");
		load(&maker, 100, 0x1000, 0x100, 1, "old");
		rules(&maker, 200, "longer");
		load(&maker, 200, 0x1080, 0x10, 2, "within");
		load(&maker, 250, 0x10c0, 0x10, 3, "without rules");
		move(&maker, 300, 0x1000, 0x2000, 1);
		move(&maker, 310, 0x500, 0x2001, 9);
		rules(&maker, 400, "of the last");
		load(&maker, 400, 0x0ff0, 0x20, 4, "over its start");
		struct tally_jit_growth *growth = tally_jit_growth_new();
		assert_non_null(growth);
		size_t at = 0;
		for (size_t to = 0; to < maker.bytes.length; to += step)
			grow(growth, &maker, &at, to);
		grow(growth, &maker, &at, maker.bytes.length);
		assert_int_equal(at, maker.bytes.length);
		assert_int_equal(rules_at(growth, 0x500, NOW), -1);
		assert_int_equal(rules_at(growth, 0x1000, 99), -1);
		assert_int_equal(rules_at(growth, 0x1000, 100), 3);
		assert_int_equal(rules_at(growth, 0x1080, 199), 3);
		assert_int_equal(rules_at(growth, 0x1080, 200), 6);
		assert_int_equal(rules_at(growth, 0x10c0, 249), 3);
		assert_int_equal(rules_at(growth, 0x10c0, 250), 0);
		assert_int_equal(rules_at(growth, 0x2080, 299), -1);
		assert_int_equal(rules_at(growth, 0x2080, 300), 3);
		assert_int_equal(rules_at(growth, 0x2001, 309), 3);
		assert_int_equal(rules_at(growth, 0x2001, 310), 0);
		assert_int_equal(rules_at(growth, 0x1008, NOW), 11);
		tally_jit_growth_free(growth);
		tally_buffer_release(&maker.bytes);
	}
}

/* The window's bytes go after each call. */
static void a_growing_dump_borrows_nothing(void **state)
{
	(void)state;
	struct maker maker = { 0 };
	struct tally_jit_growth *growth = tally_jit_growth_new();
	struct tally_jit_grown grown;
	size_t read, wanted;
	assert_non_null(growth);
	header(&maker);
	rules(&maker, 100, "waiting");
	size_t first = maker.bytes.length;
	load(&maker, 100, 0x1000, 0x40, 1, "it");
	char *piece = malloc(first);
	memcpy(piece, maker.bytes.bytes, first);
	assert_int_equal(tally_jit_growth_read(growth, piece, first, &read, &wanted), 0);
	assert_int_equal(read, first);
	memset(piece, 0xee, first);
	free(piece);
	grow(growth, &maker, &first, maker.bytes.length);
	memset(maker.bytes.bytes, 0xee, maker.bytes.length);
	assert_true(tally_jit_growth_find(growth, 0x1004, 100, &grown));
	assert_int_equal(grown.function->eh_frame_size, 7);
	assert_memory_equal(grown.function->eh_frame, "waiting", 7);
	assert_int_equal(grown.offset, 4);
	assert_int_equal(grown.code_at, maker.bytes.length - 0x40);
	assert_int_equal(grown.machine, 62);
	tally_jit_growth_free(growth);
	tally_buffer_release(&maker.bytes);
}

/* A JIT's threads may write slightly out of order: the later record in the file counts. */
static void a_growing_dump_has_the_files_order(void **state)
{
	(void)state;
	struct maker maker = { 0 };
	struct tally_jit_growth *growth = tally_jit_growth_new();
	size_t at = 0;
	assert_non_null(growth);
	header(&maker);
	rules(&maker, 200, "a");
	load(&maker, 200, 0x1000, 0x40, 1, "first");
	rules(&maker, 150, "bb");
	load(&maker, 150, 0x1000, 0x40, 2, "second");
	grow(growth, &maker, &at, maker.bytes.length);
	assert_int_equal(rules_at(growth, 0x1000, 199), -1);
	assert_int_equal(rules_at(growth, 0x1000, 200), 2);
	tally_jit_growth_free(growth);
	tally_buffer_release(&maker.bytes);
}

static void many_places_of_a_growing_dump_are_found(void **state)
{
	enum { PLACES = 9000, STEP = 500 };
	(void)state;
	struct maker maker = { 0 };
	struct tally_jit_growth *growth = tally_jit_growth_new();
	uint64_t random = 88172645463325252ull;
	size_t at = 0;
	assert_non_null(growth);
	header(&maker);
	rules(&maker, 0, "r");
	for (unsigned i = 0; i < PLACES; i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		load(&maker, i, 0x10000 + (random >> 40) % 4096, 1 + (random >> 20) % 40, i, "f");
		if (i % STEP == 0) {
			grow(growth, &maker, &at, maker.bytes.length);
			rules_at(growth, 0x10800, NOW); /* indexed each time */
		}
	}
	grow(growth, &maker, &at, maker.bytes.length);
	struct tally_jit_dump *dump = read_dump(&maker);
	for (uint64_t address = 0xfff0; address < 0x11100; address += 7)
		for (uint64_t time = 0; time < PLACES; time += 900) {
			const struct tally_jit_place *place = tally_jit_dump_find(
				dump, address, tally_jit_dump_places_at(dump, time));
			struct tally_jit_grown grown;
			bool is_found = tally_jit_growth_find(growth, address, time, &grown);
			assert_int_equal(is_found, place != NULL);
			if (place)
				assert_int_equal(grown.number, place->function);
		}
	tally_jit_dump_free(dump);
	tally_jit_growth_free(growth);
	tally_buffer_release(&maker.bytes);
}

static void what_is_no_dump_or_too_large_does_not_grow(void **state)
{
	(void)state;
	struct maker maker = { 0 };
	struct tally_jit_growth *growth = tally_jit_growth_new();
	size_t at = 0, read, wanted;
	assert_non_null(growth);
	header(&maker);
	grow(growth, &maker, &at, maker.bytes.length);
	begin(&maker, LOAD, 1);
	end(&maker);
	uint32_t sizes[] = { 0, 15, 1u << 30 }, is_wanted[] = { 0, 0, 1u << 30 };
	for (unsigned i = 0; i < 3; i++) { /* being written, damaged, not whole yet */
		memcpy(maker.bytes.bytes + maker.record + 4, &sizes[i], sizeof(sizes[i]));
		assert_int_equal(
			tally_jit_growth_read(growth, maker.bytes.bytes + at, 16, &read, &wanted),
			0);
		assert_int_equal(read, 0);
		assert_int_equal(wanted, is_wanted[i]);
	}
	tally_jit_growth_free(growth);
	growth = tally_jit_growth_new();
	maker.bytes.bytes[0] = 9;
	assert_int_equal(tally_jit_growth_read(growth, maker.bytes.bytes, 39, &read, &wanted), 0);
	assert_int_equal(wanted, 40);
	assert_int_equal(tally_jit_growth_read(growth, maker.bytes.bytes, 40, &read, &wanted),
			 -EBADMSG);
	tally_jit_growth_free(growth);

	tally_buffer_clear(&maker.bytes);
	header(&maker);
	rules(&maker, 1, "r");
	load(&maker, 1, 0x1000, 16, 1, "f");
	for (unsigned i = 0; i < TALLY_JIT_GROWTH_PLACES_MAX; i++)
		move(&maker, 2, 0x1000, 0x1000, 1);
	growth = tally_jit_growth_new();
	assert_int_equal(tally_jit_growth_read(growth, maker.bytes.bytes, maker.bytes.length, &read,
					       &wanted),
			 -EFBIG);
	tally_jit_growth_free(growth);
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
		cmocka_unit_test(a_growing_dump_tells_what_the_whole_one_does),
		cmocka_unit_test(a_growing_dump_borrows_nothing),
		cmocka_unit_test(a_growing_dump_has_the_files_order),
		cmocka_unit_test(many_places_of_a_growing_dump_are_found),
		cmocka_unit_test(what_is_no_dump_or_too_large_does_not_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
