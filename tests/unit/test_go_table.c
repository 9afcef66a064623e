#include "test.h"

#include "go_table_maker.h"
#include "object_fixture.h"
#include "random.h"

#include "symbol/symbol.h"

#include <stdlib.h>

static const uint32_t VERSIONS[] = { TALLY_GO_1_2, TALLY_GO_1_16, TALLY_GO_1_18, TALLY_GO_1_20 };

static void open_made(const struct made_table *made, struct tally_go_table *table)
{
	assert_true(tally_go_table_open(table, (const uint8_t *)made->bytes.bytes,
					made->bytes.length, made->swap));
	table->trees = (const uint8_t *)made->trees.bytes;
	table->trees_size = made->trees.length;
}

static void expect(const struct tally_go_table *table, uint64_t address, const char *wanted)
{
	struct tally_line_frame frames[TALLY_GO_FRAMES_MAX];
	size_t count = tally_go_table_frames(table, address, frames);
	char text[512] = "";
	for (size_t i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %s:%u",
			 i ? ", " : "", frames[i].function,
			 frames[i].file ? frames[i].file : "?", frames[i].line);
	assert_string_equal(text, wanted);
}

static void check_made(uint32_t version, unsigned word, bool swap)
{
	struct made_table made;
	struct tally_go_table table;
	struct tally_go_function function;
	make_go_table(&made, version, word, swap);
	open_made(&made, &table);
	assert_int_equal(table.count, 2);
	assert_true(tally_go_table_function(&table, 1, &function));
	assert_string_equal(function.name, "main.other");
	assert_int_equal(function.start, 0x1040);
	assert_int_equal(function.end, MADE_END);
	expect(&table, 0xfff, "");
	expect(&table, 0x1000, "main.outer a.go:10");
	expect(&table, 0x100f, "main.outer a.go:10");
	expect(&table, 0x1040, "main.other b.go:77");
	expect(&table, 0x107f, "main.other b.go:77");
	expect(&table, 0x1080, "");
	if (!made.trees.length) {
		expect(&table, 0x1010, "main.outer a.go:11");
		expect(&table, 0x103f, "main.outer a.go:12");
	} else {
		const char *line = version == TALLY_GO_1_18 ? "11" : "10";
		char wanted[200];
		snprintf(wanted, sizeof(wanted), "main.inner b.go:31, main.outer a.go:%s", line);
		expect(&table, 0x1010, wanted);
		snprintf(wanted, sizeof(wanted),
			 "main.innermost b.go:41, main.inner b.go:31, main.outer a.go:%s", line);
		expect(&table, 0x102f, wanted);
		expect(&table, 0x1030, "main.outer a.go:12");
	}
	tally_buffer_release(&made.bytes);
	tally_buffer_release(&made.trees);
}

static void every_format_gives_names_lines_and_inlined_functions(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (unsigned word = 4; word <= 8; word += 4)
			for (int swap = 0; swap < 2; swap++)
				check_made(VERSIONS[i], word, swap);
}

static void damaged_tables_do_no_harm(void **state)
{
	(void)state;
	uint32_t seed = 7;
	struct tally_line_frame frames[TALLY_GO_FRAMES_MAX];
	for (int round = 0; round < 20000; round++) {
		struct made_table made;
		struct tally_go_table table;
		make_go_table(&made, VERSIONS[round % 4], round & 4 ? 4 : 8, round & 8);
		/* an exact copy: the sanitizer sees a read behind it */
		size_t size = next_random32(&seed) % (made.bytes.length + 1);
		if (round & 16)
			size = made.bytes.length;
		uint8_t *bytes = malloc(size + 1);
		memcpy(bytes, made.bytes.bytes, size);
		for (unsigned flips = next_random32(&seed) % 6; size > 8 && flips > 0; flips--)
			bytes[8 + next_random32(&seed) % (size - 8)] = (uint8_t)next_random32(
				&seed);
		bytes = realloc(bytes, size ? size : 1);
		if (tally_go_table_open(&table, bytes, size, made.swap)) {
			struct tally_go_function function;
			table.trees = (const uint8_t *)made.trees.bytes;
			table.trees_size = made.trees.length;
			for (uint64_t i = 0; i < table.count && i < 16; i++)
				if (tally_go_table_function(&table, i, &function))
					tally_go_table_frames(&table, function.start + i, frames);
			for (uint64_t address = 0xff8; address < 0x1090; address += 8)
				tally_go_table_frames(&table, address, frames);
		}
		free(bytes);
		tally_buffer_release(&made.bytes);
		tally_buffer_release(&made.trees);
	}
}

/* ---- Go's own tools as referees ------------------------------------------ */

static const char PROGRAM[] =
	"package main\n"
	"import (\"fmt\"; \"sort\")\n"
	"func mix(x uint64) uint64 {\n x ^= x >> 33\n return tail(x)\n}\n"
	"func tail(x uint64) uint64 { return x*3 ^ (x >> 29) }\n"
	"type shape interface{ area(int) int }\n"
	"type square struct{ side int }\n"
	"func (s *square) area(n int) int { return s.side * n }\n"
	"func sum[T int | float64](v []T) T {\n var s T\n for _, x := range v { s += x }\n"
	" return s\n}\n"
	"func main() {\n v := []int{3, 1, 2}\n sort.Ints(v)\n var s shape = &square{3}\n"
	" f := func() uint64 { return mix(uint64(sum(v))) }\n"
	" fmt.Println(f(), s.area(2), sum([]float64{1, 2}))\n}\n";

/* Compares every Go function of the whole program with the symbols of the stripped one. */
static size_t compare_names(const char *directory, const struct tally_symbols *symbols)
{
	char line[4096];
	size_t compared = 0;
	snprintf(line, sizeof(line), "cd %s && go tool nm -size -type whole", directory);
	FILE *list = popen(line, "r");
	assert_non_null(list);
	while (fgets(line, sizeof(line), list)) {
		unsigned long address;
		long size;
		char type, name[4000];
		if (sscanf(line, "%lx %ld %c %[^\n]", &address, &size, &type, name) != 4 ||
		    (type != 'T' && type != 't') || size <= 0 || strstr(name, "type..") ||
		    !strchr(name, '.') || strstr(name, ".cold") || strchr(name, '@'))
			continue; /* a type's functions, or C's */
		/* The table leaves out the types of generic functions, and the kind of ABI. */
		char *bracket = strchr(name, '['), *abi = strstr(name, ".abi0");
		if (abi && !abi[5])
			*abi = '\0';
		const struct tally_symbol *symbol = tally_symbols_find(symbols, address);
		if (!symbol)
			fail_msg("%s has no name", name);
		if (symbol->start != address)
			fail_msg("%s at %#lx begins at %#lx", name, address, (long)symbol->start);
		if (bracket ? strncmp(symbol->name, name, (size_t)(bracket - name)) != 0
			    : strcmp(symbol->name, name) != 0)
			fail_msg("%s is called %s", name, symbol->name);
		compared++;
	}
	pclose(list);
	return compared;
}

/* Compares the lines of addresses all over the code of the program's own functions. */
static size_t compare_lines(const char *directory, const struct tally_object *object,
			    const struct tally_symbols *symbols)
{
	enum { MOST = 400 };
	size_t count, compared = 0;
	uint64_t addresses[MOST], asked = 0;
	char line[4096], file[4096];
	const struct tally_symbol *list = tally_symbols_list(symbols, &count);
	snprintf(line, sizeof(line), "%s/addresses", directory);
	FILE *out = fopen(line, "w");
	assert_non_null(out);
	for (size_t i = 0; i < count && asked < MOST; i++)
		if (!strncmp(list[i].name, "main.", 5) ||
		    (strchr(list[i].name, '.') && i % (count / 150 + 1) == 0))
			for (uint64_t at = list[i].start;
			     at < list[i].end && asked < MOST && at < list[i].start + 90; at += 29) {
				addresses[asked++] = at;
				fprintf(out, "0x%lx\n", at);
			}
	fclose(out);
	struct tally_lines *lines;
	struct tally_line_answer answers[MOST];
	assert_int_equal(tally_lines_new((struct tally_object *)object, NULL, &lines, NULL), 0);
	assert_int_equal(tally_lines_find(lines, addresses, asked, answers), 0);
	snprintf(line, sizeof(line), "cd %s && go tool addr2line whole <addresses", directory);
	FILE *told = popen(line, "r");
	assert_non_null(told);
	for (size_t i = 0; i < asked && fgets(line, sizeof(line), told); i++) {
		/* the function, then the line */
		if (!fgets(file, sizeof(file), told))
			break;
		char wanted[4200];
		if (!strncmp(file, "?:0", 3))
			continue; /* it can't read lines of position-independent programs */
		file[strcspn(file, "\n")] = '\0';
		assert_int_not_equal(answers[i].count, 0);
		const struct tally_line_frame *frame = &answers[i].frames[0];
		snprintf(wanted, sizeof(wanted), "%s:%u", frame->file ? frame->file : "?",
			 frame->line);
		bool is_known = frame->file || frame->line;
		if (is_known ? strcmp(file, wanted) != 0 : !strstr(file, ":-1"))
			fail_msg("%#lx is in %s, not %s", (long)addresses[i], file, wanted);
		compared++;
	}
	pclose(told);
	tally_lines_free(lines);
	return compared;
}

static void check_twin(void **state, const char *options, const char *strip, size_t lines)
{
	char path[256], command[1024];
	snprintf(path, sizeof(path), "%s/p.go", (const char *)*state);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(PROGRAM, file);
	fclose(file);
	snprintf(command, sizeof(command),
		 "export GO111MODULE=off GOFLAGS= GOCACHE=${GOCACHE:-$HOME/.cache/go-build} && "
		 "go build %s -o whole p.go && %s",
		 options, strip);
	if (!run(*state, command)) {
		print_message("SKIP: needs go, gcc and strip: go build %s\n", options);
		skip();
	}
	struct tally_object *object = open_in(*state, "stripped");
	struct tally_symbols *symbols = NULL;
	assert_int_equal(tally_symbols_from_object(object, NULL, &symbols, NULL), 0);
	assert_true(compare_names(*state, symbols) > 1000);
	assert_true(compare_lines(*state, object, symbols) >= lines);
	tally_symbols_free(symbols);
	tally_object_unref(object);
}

#define STRIP "strip -o stripped whole"

static void a_stripped_program_is_named_like_its_twin(void **state)
{
	check_twin(state, "", STRIP, 200);
}

static void a_position_independent_one_too(void **state)
{
	check_twin(state, "-buildmode=pie", STRIP, 0);
}

static void one_that_ld_linked_too(void **state)
{
	check_twin(state, "-buildmode=pie -ldflags=-linkmode=external", STRIP, 0);
}

static void one_without_section_headers_too(void **state)
{
	check_twin(state, "-ldflags=-linkmode=external",
		   STRIP " && python3 -c 'd = bytearray(open(\"stripped\", \"rb\").read()); "
			 "d[40:48] = bytes(8); d[60:64] = bytes(4); "
			 "open(\"stripped\", \"wb\").write(d)'",
		   200);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_gives_names_lines_and_inlined_functions),
		cmocka_unit_test(damaged_tables_do_no_harm),
		IN_DIRECTORY(a_stripped_program_is_named_like_its_twin),
		IN_DIRECTORY(a_position_independent_one_too),
		IN_DIRECTORY(one_that_ld_linked_too),
		IN_DIRECTORY(one_without_section_headers_too),
	};
	return cmocka_run_group_tests_name("go_table", tests, NULL, NULL);
}
