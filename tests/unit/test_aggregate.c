/* From samples to rows, trees and reports: compares with simple implementations, on random
 * recordings. */
#include "test.h"

#include "profile/profile_internal.h"
#include "profile/stacks.h"
#include "random_recording.h"
#include "reference_report.h"
#include "sort_key_sets.h"

enum { RECORDINGS = 12, SAMPLES = 900, INLINED = 3 };

/* ---- rows ---------------------------------------------------------------- */

struct plain_row {
	uint32_t event, thread, comm, cpu;
	uint32_t places[RANDOM_DEPTH];
	size_t depth;
	uint64_t samples, period;
};

struct plain_rows {
	struct plain_row *items;
	size_t count, capacity;
	struct tally_place_table places;
};

static bool same_row(const struct plain_row *a, const struct plain_row *b)
{
	return a->event == b->event && a->thread == b->thread && a->comm == b->comm &&
	       a->cpu == b->cpu && a->depth == b->depth &&
	       !memcmp(a->places, b->places, a->depth * sizeof(*a->places));
}

static struct plain_row *find_row(struct plain_rows *rows, const struct plain_row *wanted)
{
	for (size_t i = 0; i < rows->count; i++)
		if (same_row(&rows->items[i], wanted))
			return &rows->items[i];
	return NULL;
}

/* Reads the rows sample by sample, frame by frame. */
static struct plain_rows read_plainly(const struct profile_fixture *fixture,
				      const struct tally_profile_options *options)
{
	struct plain_rows rows = { 0 };
	struct tally_recording *recording;
	struct tally_raw_record raw;
	struct tally_record record;
	size_t events;
	assert_int_equal(
		tally_recording_open_memory(fixture->bytes, fixture->size, &recording, NULL), 0);
	recording->options.marks_cut = true;
	while (tally_recording_next(recording, &raw, &record, NULL) > 0) {
		char buffer[16];
		if (record.header.type != TALLY_RECORD_SAMPLE)
			continue;
		const struct tally_sample *sample = &record.sample;
		assert_int_equal(tally_recording_chain(recording, &raw, &record), 0);
		struct plain_row row = {
			.event = (uint32_t)(raw.event -
					    tally_perfdata_events(recording->data, &events)),
			.thread = options->merge_threads
					  ? UINT32_MAX
					  : tally_tasks_thread(&recording->tasks, sample->pid,
							       sample->tid),
			.comm = tally_strings_intern(&recording->tasks.strings,
						     tally_tasks_comm(&recording->tasks,
								      sample->pid, sample->tid,
								      buffer)),
			.cpu = options->merge_cpus ? UINT32_MAX : sample->cpu,
			.depth = recording->chain.count,
		};
		for (size_t i = 0; i < row.depth; i++)
			row.places[i] = tally_place_table_intern(&rows.places,
								 &recording->chain.items[i].place);
		struct plain_row *there = find_row(&rows, &row);
		if (!there) {
			assert_int_equal(tally_vector_push(&rows, row), 0);
			there = &rows.items[rows.count - 1];
		}
		there->samples++;
		there->period += sample->period;
	}
	tally_recording_close(recording);
	return rows;
}

/* Returns a row with texts and places, in the form of the plain rows. */
static struct plain_row row_of(const struct tally_profile *profile, size_t row,
			       struct plain_rows *rows)
{
	const struct tally_class *class =
		&profile->classes.items[profile->rows.rows.items[row].class];
	struct plain_row plain = { .event = class->event,
				   .thread = class->thread,
				   .comm = class->comm,
				   .cpu = class->cpu };
	const uint8_t *end, *at = tally_row_stack(&profile->rows, row, &end);
	while (at < end)
		plain.places[plain.depth++] = tally_place_table_intern(
			&rows->places, &profile->places.places.items[tally_stack_next_place(&at)]);
	return plain;
}

static void rows_are_those_of_a_plain_walk(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < RECORDINGS; seed++) {
		struct random_recording *recording = malloc(sizeof(*recording));
		struct tally_profile_options options = { .merge_threads = seed & 1,
							 .merge_cpus = seed & 2 };
		struct tally_recording *opened;
		struct tally_profile *profile;
		random_recording_make(recording, seed + 1, SAMPLES);
		struct plain_rows rows = read_plainly(&recording->fixture, &options);
		assert_int_equal(tally_recording_open_memory(recording->fixture.bytes,
							     recording->fixture.size, &opened,
							     NULL),
				 0);
		assert_int_equal(tally_profile_new(opened, &options, &profile, NULL), 0);
		assert_int_equal(profile->rows.rows.count, rows.count);
		for (size_t i = 0; i < rows.count; i++) {
			struct plain_row wanted = row_of(profile, i, &rows);
			const struct plain_row *row = find_row(&rows, &wanted);
			assert_non_null(row);
			assert_int_equal(profile->rows.rows.items[i].samples, row->samples);
			assert_int_equal(profile->rows.rows.items[i].period, row->period);
		}
		tally_place_table_release(&rows.places);
		tally_vector_release(&rows);
		fixture_release(&recording->fixture, profile);
		free(recording);
	}
}

/* ---- reports ------------------------------------------------------------- */

static const char *text_of(const struct tally_strings *strings, uint32_t string)
{
	return string >= UINT32_MAX - 1 ? "" : tally_strings_text(strings, string);
}

/* Adds frames that a compiler might have inlined: one or two in a third of the places. */
static void inline_some(struct tally_profile *profile, uint64_t seed)
{
	struct tally_names *names = &profile->recording->names;
	uint32_t first = (uint32_t)names->functions.count;
	for (unsigned i = 0; i < INLINED; i++) {
		struct tally_function function = names->functions.items[0];
		function.name = function.plain = tally_strings_intern(&names->strings,
								      i ? "function_1" : "inlined");
		function.start = i;
		function.kind = TALLY_FRAME_INLINED;
		assert_int_equal(tally_vector_push(&names->functions, function), 0);
	}
	for (size_t i = 0; i < profile->places.places.count; i++) {
		struct tally_place_name *name = &profile->names[i];
		struct tally_place_frame own = names->frames.items[name->first], frame = own;
		uint64_t chance = tally_hash64(seed + i);
		if (chance % 3)
			continue;
		name->first = (uint32_t)names->frames.count;
		name->count = 2 + chance / 3 % 2;
		for (uint32_t n = 0; n + 1 < name->count; n++) {
			frame.function = first + (uint32_t)(chance / 7 + n) % INLINED;
			frame.file = tally_strings_intern(&names->strings,
							  chance & 64 ? "/a/one.c" : "/b/two.c");
			frame.line = chance >> 8 & 3;
			assert_int_equal(tally_vector_push(&names->frames, frame), 0);
		}
		assert_int_equal(tally_vector_push(&names->frames, own), 0);
	}
}

/* ---- stacks by name ------------------------------------------------------ */

static struct tally_profile *read_profile(const struct profile_fixture *fixture,
					  const struct tally_profile_options *options)
{
	struct tally_recording *opened;
	struct tally_profile *profile;
	assert_int_equal(tally_recording_open_memory(fixture->bytes, fixture->size, &opened, NULL),
			 0);
	assert_int_equal(tally_profile_new(opened, options, &profile, NULL), 0);
	return profile;
}

/* Writes the names of a row's frames, root first, by reading its bytes from the leaf on. */
static void name_plainly(const struct tally_profile *profile, size_t row, struct tally_buffer *text)
{
	const char *names[4 * RANDOM_DEPTH];
	size_t count = 0;
	const struct tally_names *from = &profile->recording->names;
	const uint8_t *end, *at = tally_row_stack(&profile->rows, row, &end);
	while (at < end) {
		const struct tally_place_name *name = &profile->names[tally_stack_next_place(&at)];
		for (uint32_t i = 0; i < name->count; i++) {
			const struct tally_function *function =
				&from->functions
					 .items[from->frames.items[name->first + i].function];
			names[count++] = text_of(&from->strings, function->name);
		}
	}
	while (count--)
		/* "[truncated]" and the like */
		tally_buffer_printf(text, ";%s",
				    *names[count] && *names[count] != '[' ? names[count] : "?");
}

static void stacks_are_the_rows_of_an_event(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < RECORDINGS; seed++) {
		struct random_recording *recording = malloc(sizeof(*recording));
		struct tally_profile_options options = { .merge_cpus = true };
		random_recording_make(recording, seed + 1, SAMPLES);
		struct tally_profile *plain = read_profile(&recording->fixture, &options);
		struct tally_profile *taken = read_profile(&recording->fixture, &options);
		struct tally_stacks stacks = { 0 };
		struct tally_frame_list frames = { 0 };
		uint32_t event = seed & 1;
		size_t at = 0;
		bool by_period = seed & 2;
		uint64_t weight = 0;
		inline_some(plain, seed);
		inline_some(taken, seed);
		assert_int_equal(tally_profile_stacks(taken, event, true, by_period, &stacks), 0);
		assert_int_equal(taken->rows.rows.count, 0);
		for (size_t row = 0; row < plain->rows.rows.count; row++) {
			const struct tally_row *wanted = &plain->rows.rows.items[row];
			struct tally_buffer names[2] = { { 0 }, { 0 } };
			if (plain->classes.items[wanted->class].event != event)
				continue;
			assert_int_equal(stacks.rows.rows.items[at].samples, wanted->samples);
			assert_int_equal(stacks.rows.rows.items[at].period,
					 by_period ? wanted->period : wanted->samples);
			assert_int_equal(tally_stacks_frames(&stacks, at, &frames), 0);
			name_plainly(plain, row, &names[0]);
			for (size_t i = 0; i < frames.count; i++) {
				const char *name = text_of(
					&stacks.strings, stacks.frames.items[frames.items[i]].name);
				tally_buffer_printf(&names[1], ";%s", *name == '[' ? "?" : name);
			}
			assert_string_equal(tally_buffer_string(&names[0]),
					    tally_buffer_string(&names[1]));
			weight += stacks.rows.rows.items[at++].period;
			tally_buffer_release(&names[0]);
			tally_buffer_release(&names[1]);
		}
		assert_true(at > 10);
		assert_int_equal(at, stacks.rows.rows.count);
		assert_int_equal(weight, stacks.total_weight);
		tally_vector_release(&frames);
		tally_stacks_release(&stacks);
		tally_profile_free(taken);
		fixture_release(&recording->fixture, plain);
		free(recording);
	}
}

static int compare_functions(const struct reference_report *reference, uint32_t a, uint32_t b)
{
	const struct tally_strings *strings = &reference->profile->recording->names.strings;
	const struct tally_function *x = reference_function(reference, a),
				    *y = reference_function(reference, b);
	int order = strcmp(text_of(strings, x->name), text_of(strings, y->name));
	if (!order && x->name == TALLY_STRING_NONE)
		order = strcmp(text_of(strings, x->plain), text_of(strings, y->plain));
	if (!order)
		order = strcmp(text_of(strings, x->object), text_of(strings, y->object));
	return order ? order : (x->kind == TALLY_FRAME_INLINED) - (y->kind == TALLY_FRAME_INLINED);
}

/* Checks that all branches above the threshold are there, in order, and no others. */
static void check_branches(const struct reference_report *reference,
			   const struct reference_branch *wanted,
			   const struct tally_branch_node *first, uint64_t least)
{
	size_t heavy = 0, there = 0;
	for (const struct reference_branch *branch = wanted; branch; branch = branch->sibling)
		heavy += branch->weight >= least;
	for (const struct tally_branch_node *branch = first; branch;
	     branch = branch->sibling, there++) {
		const struct reference_branch *same = wanted;
		while (same && !reference_same(reference, same->function, branch->function))
			same = same->sibling;
		assert_non_null(same);
		assert_int_equal(branch->weight, same->weight);
		assert_true(branch->weight >= least);
		if (branch->sibling)
			assert_true(branch->weight > branch->sibling->weight ||
				    (branch->weight == branch->sibling->weight &&
				     compare_functions(reference, branch->function,
						       branch->sibling->function) < 0));
		check_branches(reference, same->child, branch->child, least);
	}
	assert_int_equal(there, heavy);
}

static void check_report(const struct tally_profile *profile,
			 const struct tally_report_options *options)
{
	struct reference_report reference;
	struct tally_report report;
	reference_build(&reference, profile, options);
	assert_int_equal(tally_report_build(profile, options, &report), 0);
	assert_int_equal(report.period, reference.period);
	assert_int_equal(report.samples, reference.samples);
	assert_int_equal(report.entries.count + report.hidden, reference.entries.count);
	uint64_t least = (uint64_t)(options->tree_percent_min / 100 * (double)report.period);
	double least_entry = options->percent_min / 100 * (double)report.period;
	size_t shown = 0;
	for (size_t i = 0; i < reference.entries.count; i++)
		shown += (double)(!options->children
					  ? reference.entries.items[i].self
					  : reference.entries.items[i].total) >= least_entry;
	assert_int_equal(report.entries.count,
			 options->limit && shown > options->limit ? options->limit : shown);
	for (size_t i = 0; i < report.entries.count; i++) {
		const struct tally_report_entry *entry = &report.entries.items[i];
		const struct reference_entry *wanted = reference_find(&reference, entry->key);
		assert_non_null(wanted);
		assert_int_equal(entry->self, wanted->self);
		assert_int_equal(entry->total, wanted->total);
		assert_int_equal(entry->self_samples, wanted->self_samples);
		assert_int_equal(entry->total_samples, wanted->total_samples);
		if (i && options->by_self)
			assert_true(entry->self <= entry[-1].self);
		else if (i)
			assert_true(entry->total <= entry[-1].total);
		check_branches(&reference, wanted->tree, entry->tree, least);
	}
	tally_report_release(&report);
	reference_release(&reference);
}

static void reports_are_those_of_the_plain_way(void **state)
{
	static const double percents[] = { 0, 0.5, 3 };
	(void)state;
	for (unsigned seed = 0; seed < RECORDINGS; seed++) {
		struct random_recording *recording = malloc(sizeof(*recording));
		random_recording_make(recording, seed + 100, SAMPLES);
		struct tally_profile *profile = fixture_profile(&recording->fixture, NULL);
		if (seed & 1)
			inline_some(profile, seed);
		for (unsigned keys = 1 + seed * 7; keys < SORT_KEY_SETS; keys += 101)
			for (unsigned mode = 0; mode < 6; mode++) {
				struct tally_report_options options = {
					.children = mode & 1,
					.tree = (enum tally_tree_order)(mode / 2),
					.event = keys & 1,
					.by_self = keys & 2,
					.limit = keys % 5 ? 0 : 7,
					.percent_min = percents[(keys + mode) % 3],
					.tree_percent_min = percents[keys / 3 % 3],
				};
				choose_sort_keys(keys, options.by);
				check_report(profile, &options);
			}
		fixture_release(&recording->fixture, profile);
		free(recording);
	}
}

/* ---- sorted stacks ------------------------------------------------------- */

static uint64_t next_random(uint64_t *random)
{
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return tally_hash64(*random);
}

struct random_stack {
	uint32_t codes[200];
	uint32_t count;
	uint64_t weight;
};

/* Returns the weight of the stacks that begin with the first `depth` frames of this one. */
static uint64_t weight_below(const struct random_stack *stacks, size_t count, const uint32_t *codes,
			     uint32_t depth)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++)
		if (stacks[i].count >= depth &&
		    !memcmp(stacks[i].codes, codes, depth * sizeof(*codes)))
			sum += stacks[i].weight;
	return sum;
}

static void check_call_tree(const struct tally_call_tree *tree, const struct random_stack *stacks,
			    size_t count, uint64_t least)
{
	const struct tally_call_node *nodes = tree->nodes.items;
	uint32_t path[201], ends[201], depth = 0;
	assert_int_equal(nodes[0].code, 7);
	assert_int_equal(nodes[0].end, tree->nodes.count);
	assert_int_equal(nodes[0].total, weight_below(stacks, count, path, 0));
	for (uint32_t i = 1; i < tree->nodes.count; i++) {
		while (depth && ends[depth - 1] <= i)
			depth--;
		path[depth] = nodes[i].code;
		ends[depth++] = nodes[i].end;
		assert_true(depth <= 200);
		assert_int_equal(nodes[i].total, weight_below(stacks, count, path, depth));
		assert_true(nodes[i].total >= least);
		if (nodes[i].end < tree->nodes.count &&
		    (depth == 1 || nodes[i].end < ends[depth - 2]))
			assert_true(nodes[i].code < nodes[nodes[i].end].code);
	}
}

/* Counts nodes: each distinct beginning of a stack is one. */
static size_t count_nodes(const struct random_stack *stacks, size_t count, uint64_t least)
{
	size_t nodes = 1;
	for (size_t i = 0; i < count; i++)
		for (uint32_t depth = 1; depth <= stacks[i].count; depth++) {
			bool is_first = true;
			for (size_t j = 0; is_first && j < i; j++)
				is_first = stacks[j].count < depth ||
					   memcmp(stacks[j].codes, stacks[i].codes,
						  depth * sizeof(*stacks[i].codes)) != 0;
			nodes += is_first &&
				 weight_below(stacks, count, stacks[i].codes, depth) >= least;
		}
	return nodes;
}

static void sorted_stacks_are_a_tree(void **state)
{
	static const struct { size_t count; uint32_t code_max, depth; uint64_t least;
	} cases[] = {
		{ 1, 1, 1, 0 },      { 30, 1, 150, 0 },     { 30, 2, 199, 0 },
		{ 400, 3, 8, 0 },    { 400, 63, 12, 0 },    { 700, 5, 20, 0 },
		{ 700, 5, 20, 100 }, { 300, 100000, 6, 0 }, { 60, UINT32_MAX, 9, 0 },
		{ 500, 4, 40, 300 },
	};
	uint64_t random = 1;
	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct random_stack *stacks = calloc(cases[i].count, sizeof(*stacks));
		struct tally_stack_sort sort;
		struct tally_call_tree tree;
		tally_stack_sort_init(&sort, cases[i].code_max);
		assert_int_equal(tally_stack_sort_root(&sort, 7), 0);
		for (size_t n = 0; n < cases[i].count; n++) {
			stacks[n].count = (uint32_t)(next_random(&random) % (cases[i].depth + 1));
			stacks[n].weight = 1 + next_random(&random) % 9;
			for (uint32_t at = 0; at < stacks[n].count; at++)
				stacks[n].codes[at] =
					1 + (uint32_t)(next_random(&random) % cases[i].code_max) /
						    (uint32_t)(1 + next_random(&random) % 3);
			/* Most stacks begin like the one before. */
			uint32_t common = n ? (uint32_t)(next_random(&random) %
							 (2 * cases[i].depth))
					    : 0;
			for (uint32_t at = 0;
			     at < common && at < stacks[n].count && at < stacks[n - 1].count; at++)
				stacks[n].codes[at] = stacks[n - 1].codes[at];
			struct tally_stack_packer packer;
			assert_int_equal(tally_call_tree_begin(&sort, &packer, stacks[n].count,
							       stacks[n].weight),
					 0);
			for (uint32_t at = 0; at < stacks[n].count; at++)
				tally_stack_sort_put(&sort, &packer, stacks[n].codes[at]);
			assert_int_equal(tally_stack_sort_end(&sort, &packer, (uint32_t)n), 0);
		}
		assert_int_equal(tally_call_tree_build(&tree, &sort, cases[i].least), 0);
		check_call_tree(&tree, stacks, cases[i].count, cases[i].least);
		assert_int_equal(tree.nodes.count,
				 count_nodes(stacks, cases[i].count, cases[i].least));
		tally_call_tree_release(&tree);
		tally_stack_sort_release(&sort);
		free(stacks);
	}
}

/* ---- chains -------------------------------------------------------------- */

/* Tests lengths around the size of a hashed block, and chains that differ in one word or in its
 * meaning. */
static void different_chains_have_different_rows(void **state)
{
	static const size_t lengths[] = { 0, 1, 2, 3, 62, 63, 64, 65, 66, 127, 128, 129, 1000 };
	enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), CHANGED = 40 };
	struct tally_chain_table table;
	uint64_t words[1000] = { 0 };
	uint32_t rows = 0;
	(void)state;
	assert_int_equal(tally_chain_table_init(&table), 0);
	for (unsigned pass = 0; pass < 2; pass++, rows = 0)
		for (unsigned i = 0; i < LENGTHS; i++)
			for (unsigned change = 0; change <= CHANGED; change++) {
				size_t at = change && lengths[i] ? (change * 37) % lengths[i] : 0;
				if (change && lengths[i])
					words[at] += change;
				uint64_t meaning = change && !lengths[i] ? change : 0,
					 more = change & 1 ? meaning : 0;
				struct tally_chain_hash hash = tally_chain_table_hash(
					&table, words, lengths[i], meaning - more, more);
				assert_int_equal(tally_chain_table_find(&table, hash),
						 pass ? rows : UINT32_MAX);
				if (!pass)
					assert_int_equal(tally_chain_table_add(&table, hash, rows),
							 0);
				rows++;
				words[at] = 0;
			}
	tally_chain_table_clear(&table);
	assert_int_equal(
		tally_chain_table_find(&table, tally_chain_table_hash(&table, words, 0, 0, 0)),
		UINT32_MAX);
	tally_chain_table_release(&table);
}

static void places_of_any_number_are_read_back(void **state)
{
	static const uint32_t places[] = { 0,
					   1,
					   127,
					   128,
					   129,
					   16383,
					   16384,
					   1u << 21,
					   (1u << 28) - 1,
					   1u << 28,
					   UINT32_MAX - 2 };
	enum { PLACES = sizeof(places) / sizeof(places[0]) };
	uint8_t bytes[PLACES * TALLY_PLACE_BYTES_MAX], *end = bytes;
	const uint8_t *at = bytes;
	(void)state;
	for (unsigned i = 0; i < PLACES; i++)
		end = tally_stack_put_place(end, places[i]);
	for (unsigned i = 0; i < PLACES; i++)
		assert_int_equal(tally_stack_next_place(&at), places[i]);
	assert_ptr_equal(at, end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_those_of_a_plain_walk),
		cmocka_unit_test(stacks_are_the_rows_of_an_event),
		cmocka_unit_test(reports_are_those_of_the_plain_way),
		cmocka_unit_test(sorted_stacks_are_a_tree),
		cmocka_unit_test(different_chains_have_different_rows),
		cmocka_unit_test(places_of_any_number_are_read_back),
	};
	return cmocka_run_group_tests_name("aggregate", tests, random_set_up_map,
					   fixture_tear_down_map);
}
