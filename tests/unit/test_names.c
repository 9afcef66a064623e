#include "test.h"

#include "naming/naming.h"
#include "naming/naming_internal.h"
#include "symbol/lines.h"
#include "symbol/symbol.h"

#include <inttypes.h>
#include <sys/mman.h>

enum { PLACES = 20000 };

static void feed_mmap(struct tally_tasks *tasks, uint32_t pid, uint64_t start, uint64_t length,
		      uint64_t offset, const char *path)
{
	struct tally_record record = {
		.header = { .type = TALLY_RECORD_MMAP2 },
		.mmap = { .pid = pid,
			  .tid = pid,
			  .start = start,
			  .length = length,
			  .file_offset = offset,
			  .protection = PROT_EXEC,
			  .filename = path },
	};
	assert_int_equal(tally_tasks_record(tasks, &record), 0);
}

static void feed_ksymbol(struct tally_tasks *tasks, uint64_t start, uint32_t length,
			 bool unregister, const char *name)
{
	struct tally_record record = {
		.header = { .type = TALLY_RECORD_KSYMBOL },
		.ksymbol = { .address = start,
			     .length = length,
			     .flags = unregister ? TALLY_KSYMBOL_UNREGISTER : 0,
			     .name = name },
	};
	assert_int_equal(tally_tasks_record(tasks, &record), 0);
}

/* Adds this process's own mappings, as process 7. */
static void feed_own_maps(struct tally_tasks *tasks)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[1024], path[512], protection[8];
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &start,
			   &end, protection, &offset, path) == 5 &&
		    protection[2] == 'x')
			feed_mmap(tasks, 7, start, end - start, offset, path);
	}
	fclose(maps);
}

static uint64_t random_word(void)
{
	return (uint64_t)rand() << 32 ^ (uint64_t)rand() << 16 ^ (uint64_t)rand();
}

/* Chooses places inside mappings, beside them, in the kernel, and sometimes twice. */
static void choose_places(const struct tally_tasks *tasks, struct tally_place *places)
{
	const struct tally_process *process = &tasks->processes.items[0];
	const struct tally_mapping *mappings[64], *mapping = NULL;
	size_t count = 0;
	while (count < 64 && (mapping = tally_mappings_behind(&process->mappings,
							      mapping ? mapping->end : 0)))
		mappings[count++] = mapping;
	assert_true(count > 3);
	for (size_t i = 0; i < PLACES; i++) {
		mapping = mappings[(size_t)rand() % count];
		bool kernel = i % 16 == 1;
		uint64_t address = random_word();
		if (kernel)
			address = 0xffffffff81000000u + address % (16 << 20);
		else if (i % 64 != 2)
			address = mapping->start + address % (mapping->end - mapping->start);
		if (kernel && i % 3 == 0)
			address = 0xffffffffc0001000u + random_word() % 0x300;
		places[i] = tally_place_of(tasks, 7, kernel, address);
		places[i].before = rand() % 2;
		if (i % 32 == 3)
			places[i] = places[i / 2];
	}
}

static void expect_same_function(const struct tally_names *a, uint32_t in_a,
				 const struct tally_names *b, uint32_t in_b)
{
	assert_string_equal(tally_names_text(a, in_a), tally_names_text(b, in_b));
	assert_string_equal(tally_names_plain_text(a, in_a), tally_names_plain_text(b, in_b));
	assert_string_equal(tally_names_object(a, in_a), tally_names_object(b, in_b));
	assert_int_equal(a->functions.items[in_a].start, b->functions.items[in_b].start);
	assert_int_equal(a->functions.items[in_a].kind, b->functions.items[in_b].kind);
}

/* Returns the debug information's answer for this one place. */
static struct tally_line_answer answer_of(struct tally_names *names, struct tally_lines **lines,
					  const struct tally_place *place)
{
	struct tally_line_answer answer = { 0 };
	uint64_t address;
	if (place->file >= names->tasks->files.count)
		return answer;
	struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks,
							     place->file);
	if (!entry->object ||
	    !tally_object_address_of_offset(entry->object, place->address, &address))
		return answer;
	if (!lines[place->file])
		assert_int_equal(tally_lines_new(entry->object, tally_objects_debug(entry),
						 &lines[place->file], NULL),
				 0);
	assert_int_equal(tally_lines_find(lines[place->file], &address, 1, &answer), 0);
	return answer;
}

static void expect_frame(const struct tally_names *names, const struct tally_place_frame *frame,
			 const struct tally_line_frame *truth)
{
	assert_int_equal(frame->line, truth->line);
	assert_int_equal(frame->file == TALLY_STRING_NONE, !truth->file);
	if (truth->file)
		assert_string_equal(tally_strings_text(&names->strings, frame->file), truth->file);
}

static void expect_frames(const struct tally_names *names, const struct tally_place_name *name,
			  const struct tally_line_answer *truth)
{
	const struct tally_place_frame *frames = names->frames.items + name->first;
	const char *object = tally_names_object(names, frames[name->count - 1].function);
	assert_int_equal(name->count, truth->count ? truth->count : 1);
	for (uint32_t i = 0; i < truth->count; i++)
		expect_frame(names, &frames[i], &truth->frames[i]);
	for (uint32_t i = 0; i + 1 < truth->count; i++) {
		const char *mangled = truth->frames[i].function;
		char *readable = mangled ? tally_demangle(mangled) : NULL;
		const char *expected = readable ? readable : mangled;
		assert_string_equal(tally_names_text(names, frames[i].function),
				    expected ? expected : "[unknown]");
		assert_string_equal(tally_names_object(names, frames[i].function), object);
		assert_int_equal(names->functions.items[frames[i].function].kind,
				 TALLY_FRAME_INLINED);
		free(readable);
	}
}

/* Compares all places at once, on several threads, with one after another. */
static void places_by_the_lot_are_named_as_one_by_one(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	struct tally_names single, batch, pieces;
	struct tally_place *places = calloc(PLACES, sizeof(*places));
	struct tally_place_name *out = calloc(PLACES, sizeof(*out)),
				*out_pieces = calloc(PLACES, sizeof(*out));
	size_t named = 0, inlined = 0;
	srand(4);
	feed_own_maps(&tasks);
	feed_ksymbol(&tasks, 0xffffffffc0001000u, 0x200, false, "bpf_prog_1");
	choose_places(&tasks, places);
	struct tally_lines **lines = calloc(tasks.files.count, sizeof(struct tally_lines *));
	tally_names_init(&single, &tasks);
	tally_names_init(&batch, &tasks);
	tally_names_init(&pieces, &tasks);
	assert_int_equal(tally_names_resolve(&batch, places, PLACES, out), 0);
	for (size_t i = 0, piece; i < PLACES; i += piece) {
		/* a single place takes another path */
		piece = rand() % 32 ? 1 : 1 + (size_t)rand() % 2000;
		piece = piece < PLACES - i ? piece : PLACES - i;
		assert_int_equal(tally_names_resolve(&pieces, places + i, piece, out_pieces + i),
				 0);
	}
	for (size_t i = 0; i < PLACES; i++) {
		uint64_t offset;
		uint32_t truth = tally_names_function(&single, &places[i], &offset);
		uint32_t function = batch.frames.items[out[i].first + out[i].count - 1].function;
		expect_same_function(&batch, function, &single, truth);
		if (batch.functions.items[function].name != TALLY_STRING_NONE) {
			assert_int_equal(out[i].offset, offset);
			named++;
		}
		struct tally_line_answer answer = answer_of(&single, lines, &places[i]);
		expect_frames(&batch, &out[i], &answer);
		inlined += out[i].count > 1;
		assert_int_equal(out_pieces[i].count, out[i].count);
		for (uint32_t frame = 0; frame < out[i].count; frame++)
			expect_same_function(
				&pieces, pieces.frames.items[out_pieces[i].first + frame].function,
				&batch, batch.frames.items[out[i].first + frame].function);
	}
	assert_int_equal(batch.functions.count, pieces.functions.count);
	assert_true(named > PLACES / 4);
	print_message("# %zu of %d places are named, %zu have inlined functions\n", named, PLACES,
		      inlined);
	for (size_t i = 0; i < tasks.files.count; i++)
		tally_lines_free(lines[i]);
	free(lines);
	free(places);
	free(out);
	free(out_pieces);
	tally_names_release(&single);
	tally_names_release(&batch);
	tally_names_release(&pieces);
	tally_tasks_release(&tasks);
}

static void ids_do_not_depend_on_the_threads(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	struct tally_place *places = calloc(PLACES, sizeof(*places));
	struct tally_place_name *out[2];
	struct tally_names names[2];
	feed_own_maps(&tasks);
	choose_places(&tasks, places);
	for (size_t i = 0; i < 2; i++) {
		out[i] = calloc(PLACES, sizeof(*out[i]));
		tally_names_init(&names[i], &tasks);
		assert_int_equal(tally_names_resolve(&names[i], places, PLACES, out[i]), 0);
	}
	assert_memory_equal(out[0], out[1], PLACES * sizeof(*out[0]));
	assert_int_equal(names[0].frames.count, names[1].frames.count);
	assert_memory_equal(names[0].frames.items, names[1].frames.items,
			    names[0].frames.count * sizeof(*names[0].frames.items));
	assert_int_equal(names[0].strings.count, names[1].strings.count);
	for (uint32_t i = 0; i < names[0].strings.count; i++)
		assert_string_equal(tally_strings_text(&names[0].strings, i),
				    tally_strings_text(&names[1].strings, i));
	for (size_t i = 0; i < 2; i++) {
		tally_names_release(&names[i]);
		free(out[i]);
	}
	free(places);
	tally_tasks_release(&tasks);
}

static uint64_t kernel_text(void)
{
	FILE *kallsyms = fopen("/proc/kallsyms", "r");
	char line[512], name[256];
	uint64_t address = 0;
	while (kallsyms && fgets(line, sizeof(line), kallsyms))
		if (sscanf(line, "%" SCNx64 " %*c %255s", &address, name) == 2 &&
		    !strcmp(name, "_text"))
			break;
	if (kallsyms)
		fclose(kallsyms);
	return address;
}

/* Symbols, kallsyms and lines: the first run stores them, the second reads them. */
static void names_from_the_cache_are_the_same(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	struct tally_place *places = calloc(PLACES, sizeof(*places));
	struct tally_place_name *out[3];
	struct tally_names names[3];
	char folder[] = "/tmp/tally-names-XXXXXX";
	uint64_t text = kernel_text(), files, bytes;
	assert_non_null(mkdtemp(folder));
	feed_own_maps(&tasks);
	if (text)
		feed_mmap(&tasks, UINT32_MAX, text, 32 << 20, text, "[kernel.kallsyms]_text");
	choose_places(&tasks, places);
	for (size_t i = 0; i < 3; i++) {
		out[i] = calloc(PLACES, sizeof(*out[i]));
		tally_names_init(&names[i], &tasks);
		names[i].tables.cache = i ? tally_cache_open_at(folder, 1 << 30) : NULL;
		assert_int_equal(tally_names_resolve(&names[i], places, PLACES, out[i]), 0);
	}
	if (text)
		assert_true(names[2].kernel.table->is_partial || names[2].kernel.table->kept);
	for (size_t i = 0; i < PLACES; i++)
		for (size_t other = 1; other < 3; other++) {
			assert_int_equal(out[other][i].count, out[0][i].count);
			assert_int_equal(out[other][i].offset, out[0][i].offset);
			for (uint32_t frame = 0; frame < out[0][i].count; frame++) {
				const struct tally_place_frame *a =
					&names[0].frames.items[out[0][i].first + frame];
				const struct tally_place_frame *b =
					&names[other].frames.items[out[other][i].first + frame];
				expect_same_function(&names[other], b->function, &names[0],
						     a->function);
				assert_int_equal(a->line, b->line);
			}
		}
	tally_cache_clear(names[1].tables.cache, &files, &bytes);
	assert_true(!text || files > 0);
	for (size_t i = 0; i < 3; i++) {
		tally_names_release(&names[i]);
		free(out[i]);
	}
	free(places);
	tally_tasks_release(&tasks);
	char command[64];
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* As in perf, object and function have the same name. */
static void code_that_the_kernel_announces_has_its_name_while_it_is_there(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	struct tally_names names;
	uint64_t offset;
	feed_mmap(&tasks, UINT32_MAX, 0xffffffff81000000u, 0x1000000, 0, "[kernel.kallsyms]_text");
	feed_ksymbol(&tasks, 0xffffffffc0001000u, 0x80, false, "bpf_prog_1");
	tally_names_init(&names, &tasks);
	tally_names_omit_kernel(&names);
	struct tally_place place = tally_place_of(&tasks, 7, true, 0xffffffffc0001024u), outside;
	assert_string_equal(tally_names_text(&names, tally_names_function(&names, &place, &offset)),
			    "bpf_prog_1");
	assert_string_equal(tally_names_object(&names, tally_names_function(&names, &place, NULL)),
			    "bpf_prog_1");
	assert_int_equal(offset, 0x24);
	outside = tally_place_of(&tasks, 7, true, 0xffffffffc0001080u);
	assert_string_equal(tally_names_text(&names, tally_names_function(&names, &outside, NULL)),
			    "[unknown]");

	feed_ksymbol(&tasks, 0xffffffffc0001000u, 0x80, true, "bpf_prog_1");
	feed_ksymbol(&tasks, 0xffffffffc0001020u, 0x20, false, "bpf_prog_2");
	struct tally_place later = tally_place_of(&tasks, 7, true, 0xffffffffc0001024u);
	assert_string_equal(tally_names_text(&names, tally_names_function(&names, &later, &offset)),
			    "bpf_prog_2");
	assert_int_equal(offset, 4);
	assert_string_equal(tally_names_text(&names, tally_names_function(&names, &place, NULL)),
			    "bpf_prog_1");
	feed_ksymbol(&tasks, UINT64_MAX - 4, 0x20, false, "beyond all memory");
	feed_ksymbol(&tasks, 0xffffffffc0002000u, 0, false, "empty");
	tally_names_release(&names);
	tally_tasks_release(&tasks);
}

static void no_places_are_named_at_once(void **state)
{
	(void)state;
	struct tally_tasks tasks = { 0 };
	struct tally_names names;
	struct tally_place_name out;
	struct tally_place nowhere = { .file = TALLY_FILE_NONE, .address = 4 };
	tally_names_init(&names, &tasks);
	assert_int_equal(tally_names_resolve(&names, NULL, 0, NULL), 0);
	assert_int_equal(tally_names_resolve(&names, &nowhere, 1, &out), 0);
	assert_int_equal(out.count, 1);
	assert_string_equal(tally_names_text(&names, names.frames.items[out.first].function),
			    "[unknown]");
	tally_names_release(&names);
	tally_tasks_release(&tasks);
}

static void poke(struct tally_text_pokes *pokes, uint64_t address, const char *old, const char *new)
{
	uint8_t bytes[32];
	struct tally_record_text_poke record = { .address = address,
						 .old_length = (uint16_t)strlen(old),
						 .new_length = (uint16_t)strlen(new),
						 .bytes = bytes };
	memcpy(bytes, old, strlen(old));
	memcpy(bytes + strlen(old), new, strlen(new));
	assert_int_equal(tally_text_pokes_add(pokes, &record), 0);
}

static void code_is_as_it_was_written_last(void **state)
{
	(void)state;
	struct tally_text_pokes pokes = { 0 };
	char code[] = "abcdefgh";
	assert_int_equal(tally_text_pokes_apply(&pokes, 100, (uint8_t *)code, 8), 0);
	poke(&pokes, 98, "", "1234");     /* 98 to 101 */
	poke(&pokes, 103, "de", "XY");
	poke(&pokes, 104, "Y", "Z");
	poke(&pokes, 107, "hi", "");      /* removes code: the old bytes stay */
	poke(&pokes, UINT64_MAX, "", "??"); /* reaches past the last address */
	assert_int_equal(tally_text_pokes_apply(&pokes, 100, NULL, 8), 5);
	assert_int_equal(tally_text_pokes_apply(&pokes, 100, (uint8_t *)code, 8), 5);
	assert_string_equal(code, "34cXZfgh");
	assert_int_equal(tally_text_pokes_apply(&pokes, 107, NULL, 8), 2);
	assert_int_equal(tally_text_pokes_apply(&pokes, 0, (uint8_t *)code, 1), 1);
	tally_text_pokes_release(&pokes);
}

/* A file's claims take no more memory than is useful. */
static void so_many_bytes_are_kept_of_written_code(void **state)
{
	(void)state;
	enum { LENGTH = 60000, TIMES = 40, MAX = 1 << 20 };
	struct tally_text_pokes pokes = { 0 };
	uint8_t *bytes = calloc(1, LENGTH);
	for (unsigned i = 0; i < TIMES; i++) {
		struct tally_record_text_poke record = { .address = (uint64_t)i * LENGTH,
							 .new_length = LENGTH,
							 .bytes = bytes };
		assert_int_equal(tally_text_pokes_add(&pokes, &record), 0);
	}
	assert_int_equal(tally_text_pokes_apply(&pokes, 0, NULL, (size_t)LENGTH * TIMES), MAX);
	poke(&pokes, 0, "", "new");
	assert_int_equal(tally_text_pokes_apply(&pokes, 0, bytes, 3), 3);
	assert_memory_equal(bytes, "new", 3);
	tally_text_pokes_release(&pokes);
	free(bytes);
}

static void the_tier_of_jit_code_is_no_part_of_its_name(void **state)
{
	static const struct { const char *name, *without; } names[] = {
		{ "JS:*f /w.js:1:2", "JS:f /w.js:1:2" },
		{ "JS:~ /w.js:1:1", "JS: /w.js:1:1" },
		{ "LazyCompile:+A.b", "LazyCompile:A.b" },
		{ "Function:^f", "Function:f" },
		{ "void P::Main(string[])[OptimizedTier1]", "void P::Main(string[])" },
		{ "int8 [System] A::B()[Tier0]", "int8 [System] A::B()" },
		{ "JS:f /w.js:1:2", NULL },
		{ "RegExp:*a", NULL },
		{ "A::B(int32[])", NULL },
		{ "[Tier0]", NULL },
		{ "JS:", NULL },
		{ "", NULL },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char left[64];
		size_t at, length = tally_jit_tier(names[i].name, &at);
		if (!names[i].without) {
			assert_int_equal(length, 0);
			continue;
		}
		snprintf(left, sizeof(left), "%.*s%s", (int)at, names[i].name,
			 names[i].name + at + length);
		assert_string_equal(left, names[i].without);
	}
}

static void objects_of_jit_code_are_known_by_their_names(void **state)
{
	static const char *const its[] = { "perf.map", "[JIT] tid 7", "/tmp/perf-7.map",
					   "perf-1073744278.map", "jit.dump", "/a/jit-7.dump",
					   "/a/jitted-7-31.so", "jitted-7-0.so" };
	static const char *const others[] = { "", "/", "[JIT", "/tmp/perf-7.mapx", "/tmp/perf-.map",
					      "/a/jit-7.dump/b", "libjitted-7-0.so", "[vdso]" };
	(void)state;
	for (size_t i = 0; i < sizeof(its) / sizeof(*its); i++)
		assert_string_equal(tally_jit_object(its[i]), i < 4 ? "perf.map" : "jit.dump");
	assert_string_equal(tally_jit_object("[JIT]"), "[JIT]");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_null(tally_jit_object(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tier_of_jit_code_is_no_part_of_its_name),
		cmocka_unit_test(objects_of_jit_code_are_known_by_their_names),
		cmocka_unit_test(places_by_the_lot_are_named_as_one_by_one),
		cmocka_unit_test(ids_do_not_depend_on_the_threads),
		cmocka_unit_test(names_from_the_cache_are_the_same),
		cmocka_unit_test(code_that_the_kernel_announces_has_its_name_while_it_is_there),
		cmocka_unit_test(no_places_are_named_at_once),
		cmocka_unit_test(code_is_as_it_was_written_last),
		cmocka_unit_test(so_many_bytes_are_kept_of_written_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
