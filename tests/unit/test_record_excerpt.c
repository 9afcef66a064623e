/* An excerpt has the same places as the whole recording (recorder/recorder_excerpt.h).  The whole
 * one, read like a report does, is the reference. */
#include "test.h"

#include "profile_fixture.h"
#include "random_recording.h"
#include "recorder/recorder_excerpt.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 3000, SEEDS = 30, KERNEL_CODE_MAPS = 0x60 };

static const struct tally_attr usual_attr = {
	.sample_period = 1, .sample_type = PROFILE_SAMPLE_TYPE, .flags = TALLY_ATTR_SAMPLE_ID_ALL,
};

/* Events with ids 1 and 2, and the side-band event. */
struct excerpt_fixture {
	struct tally_map events;
	struct tally_recorder_excerpt *excerpt;
	struct tally_buffer records;
};

static void excerpt_open(struct excerpt_fixture *fixture, const struct tally_attr *attr)
{
	const struct tally_attr *attrs[] = { attr, attr, &usual_attr };
	*fixture = (struct excerpt_fixture){ 0 };
	*tally_map_put(&fixture->events, 1, NULL) = 0;
	*tally_map_put(&fixture->events, 2, NULL) = 1;
	fixture->excerpt = tally_recorder_excerpt_new(attrs, 3, &fixture->events);
}

static bool excerpt_close(struct excerpt_fixture *fixture)
{
	bool is_whole = fixture->excerpt &&
			tally_recorder_excerpt_take(fixture->excerpt, &fixture->records);
	tally_recorder_excerpt_free(fixture->excerpt);
	tally_map_release(&fixture->events);
	return is_whole;
}

static struct tally_record_header header_at(const void *bytes)
{
	struct tally_record_header header;
	memcpy(&header, bytes, sizeof(header));
	return header;
}

/* ---- as a recorder does -------------------------------------------------- */

/* Makes a pass over the rings: first the records about tasks, then each CPU's samples. */
static void one_pass(struct tally_recorder_excerpt *excerpt, const char *at, const char *end)
{
	const struct tally_record_header round = { .type = TALLY_RECORD_FINISHED_ROUND,
						   .size = sizeof(round) };
	for (const char *record = at; record < end; record += header_at(record).size)
		if (header_at(record).type != TALLY_RECORD_SAMPLE)
			tally_recorder_excerpt_add(excerpt, record, header_at(record).size);
	for (uint32_t cpu = 3; cpu-- > 0;)
		for (const char *record = at; record < end; record += header_at(record).size)
			if (header_at(record).type == TALLY_RECORD_SAMPLE &&
			    ((const uint32_t *)(const void *)record)[10] == cpu)
				tally_recorder_excerpt_add_sample(excerpt, record);
	tally_recorder_excerpt_add(excerpt, &round, sizeof(round));
}

static void record_all(struct tally_recorder_excerpt *excerpt,
		       const struct profile_fixture *fixture, uint64_t seed)
{
	uint64_t place[2], passes = 0;
	/* place and size of the data, from the header */
	memcpy(place, fixture->bytes + 40, sizeof(place));
	const char *at = fixture->bytes + place[0], *end = at + place[1];
	while (at < end) {
		const char *begin = at;
		for (uint64_t records = 1 + tally_hash64(seed * 1000 + ++passes) % 200;
		     at < end && records--;)
			at += header_at(at).size;
		one_pass(excerpt, begin, at);
	}
}

static void put_kernel_symbol(struct random_recording *recording)
{
	const bool is_gone = random_next(recording, 2);
	uint64_t words[8] = { 0xffffffff81000010,
			      0x20 | (1ull | (uint64_t)is_gone << 16) << 32,
			      0,
			      0,
			      0,
			      ++recording->fixture.time_ns,
			      0,
			      1 };
	memcpy(&words[2], random_next(recording, 2) ? "bpf_prog_one" : "bpf_prog_two", 13);
	fixture_put_words(&recording->fixture, TALLY_RECORD_KSYMBOL, 0, words, 8);
}

static void put_kernel_map(struct random_recording *recording)
{
	bool is_one = random_next(recording, 2);
	uint64_t words[11] = { UINT32_MAX,
			       0xffffffff81000000,
			       KERNEL_CODE_MAPS,
			       0,
			       0,
			       0,
			       0,
			       0,
			       ++recording->fixture.time_ns,
			       0,
			       1 };
	memcpy(&words[4], is_one ? "/nowhere/one.ko" : "/nowhere/two.ko", 15);
	fixture_put_words(&recording->fixture, TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, words, 11);
}

static void make_recording(struct random_recording *recording, uint64_t seed)
{
	random_recording_begin(recording, seed);
	for (size_t i = 0; i < SAMPLES; i++) {
		switch (random_next(recording, 100)) {
		case 0: random_fork(recording); break;
		case 1:
			random_map_library(recording,
					   (unsigned)random_next(recording, RANDOM_PROCESSES));
			break;
		case 2: put_kernel_map(recording); break;
		case 3: put_kernel_symbol(recording); break;
		}
		random_sample(recording);
	}
	fixture_finish(&recording->fixture, 0, 0);
}

/* Makes stacks that grow and shrink, with addresses that are mostly new, and markers between them:
 * each place is in few samples. */
static void make_related(struct profile_fixture *fixture, uint64_t seed)
{
	enum { DEPTH = 16, CHAINS = 1500 };
	static const uint64_t markers[] = { TALLY_CONTEXT_KERNEL, TALLY_CONTEXT_USER,
					    (uint64_t)-56 };
	/* Most addresses are in the kernel, where each one is a place of its own.  A program's
	 * addresses outside its mapping are all one place. */
	const uint64_t kernel = 0xffffffff81000000;
	uint64_t stack[DEPTH], fresh = 0;
	size_t depth = 0; /* index + 1 of the innermost frame */
	*fixture = (struct profile_fixture){ 0 };
	fixture_map(fixture);
	for (uint64_t i = 0; i < CHAINS; i++) {
		uint64_t chance = tally_hash64(seed * CHAINS + i);
		size_t kept = depth ? chance % (depth + 1) : 0, next = 1 + kept + chance / 64 % 4;
		next = next > DEPTH ? DEPTH : next;
		for (depth = kept; depth < next; depth++) {
			uint64_t kind = tally_hash64(chance + depth) % 16;
			if (kind < 3)
				stack[depth] = markers[kind];
			else if (kind < 6)
				stack[depth] = stack[depth / 2 * (depth > 0)];
			else
				stack[depth] = (kind == 6 ? CODE : kernel) + fresh++;
			if (!depth && kind >= 3)
				stack[depth] = CODE + fresh++;
		}
		uint64_t words[7 + DEPTH] = { 1 + (chance >> 40 & 1),
					      LOOP,
					      fixture_ids_of(fixture_pid() + (chance >> 50 & 1), 1),
					      ++fixture->time_ns,
					      0,
					      1 + i,
					      depth };
		for (size_t at = 0; at < depth; at++)
			words[7 + at] = stack[depth - 1 - at];
		fixture_put_words(fixture, TALLY_RECORD_SAMPLE,
				  chance >> 45 & 1 ? TALLY_MISC_USER : TALLY_MISC_KERNEL, words,
				  7 + depth);
	}
	fixture_finish(fixture, 0, 0);
}

/* ---- reading an excerpt -------------------------------------------------- */

static struct tally_profile *read_places(const struct profile_fixture *fixture,
					 const struct tally_buffer *records)
{
	struct tally_profile_options options = { .only_places = true,
						 .merge_unknown = true,
						 .merge_threads = true };
	struct tally_recording *recording;
	struct tally_profile *profile;
	assert_int_equal(
		tally_recording_open_memory(fixture->bytes, fixture->size, &recording, NULL), 0);
	/* names don't matter, so don't read the kernel's */
	tally_names_set_kernel(&recording->names, NULL, true);
	if (records)
		tally_perfdata_replace_data(recording->data, records->bytes, records->length);
	assert_int_equal(tally_profile_new(recording, &options, &profile, NULL), 0);
	return profile;
}

/* Compares files by name, since numbers may differ. */
static bool is_same_place(const struct tally_profile *a, const struct tally_place *x,
			  const struct tally_profile *b, const struct tally_place *y)
{
	if (x->address != y->address || x->before != y->before || x->is_late != y->is_late)
		return false;
	bool x_is_none = x->file == TALLY_FILE_NONE, y_is_none = y->file == TALLY_FILE_NONE;
	if (x_is_none || y_is_none)
		return x_is_none && y_is_none;
	return !strcmp(tally_tasks_path(&a->recording->tasks, x->file),
		       tally_tasks_path(&b->recording->tasks, y->file));
}

struct weight {
	uint64_t samples, period;
};

static struct weight weight_of(const struct tally_profile *profile, uint32_t event,
			       const struct tally_profile *other, const struct tally_place *leaf)
{
	struct weight weight = { 0 };
	for (size_t i = 0; i < profile->rows.rows.count; i++) {
		const struct tally_row *row = &profile->rows.rows.items[i];
		const uint8_t *end, *at = tally_row_stack(&profile->rows, i, &end);
		if (profile->classes.items[row->class].event != event || (at == end) != !leaf ||
		    (leaf &&
		     !is_same_place(profile,
				    &profile->places.places.items[tally_stack_next_place(&at)],
				    other, leaf)))
			continue;
		weight.samples += row->samples;
		weight.period += row->period;
	}
	return weight;
}

static void assert_has(const struct tally_profile *profile, const struct tally_profile *other,
		       const struct tally_place *place)
{
	for (size_t i = 0; i < profile->places.places.count; i++)
		if (is_same_place(profile, &profile->places.places.items[i], other, place))
			return;
	fail_msg("0x%llx is missing", (unsigned long long)place->address);
}

static void assert_same(const struct tally_profile *whole, const struct tally_profile *excerpt)
{
	assert_int_equal(whole->places.places.count, excerpt->places.places.count);
	for (size_t i = 0; i <= whole->places.places.count; i++) {
		const struct tally_place *place = i ? &whole->places.places.items[i - 1] : NULL;
		if (place)
			assert_has(excerpt, whole, place);
		for (uint32_t event = 0; event < 2; event++) {
			struct weight all = weight_of(whole, event, whole, place),
				      kept = weight_of(excerpt, event, whole, place);
			assert_int_equal(all.period, kept.period);
			assert_true(kept.samples <= all.samples &&
				    kept.samples >= (all.samples < 2 ? all.samples : 2));
		}
	}
}

/* ---- what must hold ------------------------------------------------------ */

static void an_excerpt_has_all_places_and_periods(void **state)
{
	(void)state;
	struct random_recording *recording = malloc(sizeof(*recording));
	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		struct excerpt_fixture fixture;
		make_recording(recording, seed);
		excerpt_open(&fixture, &usual_attr);
		record_all(fixture.excerpt, &recording->fixture, seed);
		assert_true(excerpt_close(&fixture));
		assert_true(fixture.records.length < recording->fixture.size * 9 / 10);
		struct tally_profile *whole = read_places(&recording->fixture, NULL);
		struct tally_profile *excerpt = read_places(&recording->fixture, &fixture.records);
		assert_true(whole->places.places.count > 50);
		assert_same(whole, excerpt);
		tally_profile_free(excerpt);
		tally_buffer_release(&fixture.records);
		fixture_release(&recording->fixture, whole);
	}
	free(recording);
}

static void chains_that_end_alike_have_all_their_places(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 6; seed++) {
		struct profile_fixture recording;
		struct excerpt_fixture fixture;
		make_related(&recording, seed);
		excerpt_open(&fixture, &usual_attr);
		record_all(fixture.excerpt, &recording, seed);
		assert_true(excerpt_close(&fixture));
		struct tally_profile *whole = read_places(&recording, NULL),
				     *excerpt = read_places(&recording, &fixture.records);
		assert_true(whole->places.places.count > 1000);
		assert_same(whole, excerpt);
		tally_profile_free(excerpt);
		tally_buffer_release(&fixture.records);
		fixture_release(&recording, whole);
	}
}

static void put_sample(struct tally_recorder_excerpt *excerpt, uint64_t id, uint64_t time_ns,
		       uint64_t leaf)
{
	const struct {
		struct tally_record_header header;
		uint64_t words[9];
	} sample = { { TALLY_RECORD_SAMPLE, TALLY_MISC_USER, sizeof(sample) },
		     { id, leaf, fixture_ids_of(7, 7), time_ns, 0, 1, 2, TALLY_CONTEXT_USER,
		       leaf } };
	tally_recorder_excerpt_add_sample(excerpt, &sample);
}

static void a_million_equal_hits_are_two(void **state)
{
	(void)state;
	struct excerpt_fixture fixture;
	excerpt_open(&fixture, &usual_attr);
	for (uint64_t i = 1; i <= 1000000; i++)
		put_sample(fixture.excerpt, 1, i, LEAF);
	assert_true(excerpt_close(&fixture));
	assert_int_equal(fixture.records.length, 2 * 80);
	uint64_t period;
	memcpy(&period, fixture.records.bytes + 80 + 48, sizeof(period));
	assert_int_equal(period, 999999);
	tally_buffer_release(&fixture.records);
}

/* Adds samples; every `each`-th has a new place.  Returns true if an excerpt was made. */
static bool has_excerpt_of(uint64_t samples, uint64_t each)
{
	struct excerpt_fixture fixture;
	excerpt_open(&fixture, &usual_attr);
	for (uint64_t i = 1; i <= samples; i++)
		put_sample(fixture.excerpt, 1, i, i % each ? LEAF : LEAF + i);
	bool is_whole = excerpt_close(&fixture);
	assert_true(is_whole == (fixture.records.length > 0));
	tally_buffer_release(&fixture.records);
	return is_whole;
}

static void what_would_be_large_is_given_up(void **state)
{
	(void)state;
	assert_true(has_excerpt_of(80 * 1000, 8));
	assert_true(has_excerpt_of(800 * 1000, 8)); /* 8 MB */
	assert_false(has_excerpt_of(1000 * 1000, 8));
}

static void what_keeps_most_samples_is_given_up(void **state)
{
	(void)state;
	assert_true(has_excerpt_of(3000, 1)); /* too few samples to decide */
	assert_true(has_excerpt_of(30000, 5));
	assert_false(has_excerpt_of(30000, 3));
}

/* Everything is new when a program starts. */
static void a_beginning_may_be_all_new(void **state)
{
	(void)state;
	struct excerpt_fixture fixture;
	excerpt_open(&fixture, &usual_attr);
	for (uint64_t i = 1; i <= 4000; i++)
		put_sample(fixture.excerpt, 1, i, CODE + 0x1000 + i);
	for (uint64_t i = 4001; i <= 30000; i++)
		put_sample(fixture.excerpt, 1, i, i % 2 ? LEAF : WORK);
	assert_true(excerpt_close(&fixture));
	tally_buffer_release(&fixture.records);
}

static void what_it_cannot_tell_is_given_up(void **state)
{
	(void)state;
	static const uint64_t foreign[] = { TALLY_SAMPLE_READ, TALLY_SAMPLE_BRANCH_STACK,
					    TALLY_SAMPLE_STACK_USER };
	struct excerpt_fixture fixture;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		struct tally_attr attr = usual_attr;
		attr.sample_type |= foreign[i];
		excerpt_open(&fixture, &attr);
		assert_null(fixture.excerpt);
		excerpt_close(&fixture);
	}
	struct tally_attr without_period = usual_attr;
	without_period.sample_type &= ~TALLY_SAMPLE_PERIOD;
	excerpt_open(&fixture, &without_period);
	assert_null(fixture.excerpt);
	excerpt_close(&fixture);

	excerpt_open(&fixture, &usual_attr);
	put_sample(fixture.excerpt, 3, 1, LEAF); /* no event has the id 3 */
	assert_false(excerpt_close(&fixture));
}

static void a_jit_dump_is_given_up(void **state)
{
	(void)state;
	struct profile_fixture records = { 0 };
	struct excerpt_fixture fixture;
	uint64_t words[12] = { fixture_ids_of(7, 7), CODE, 0x1000, 0, 0, 0, 0, 0,
			       fixture_ids_of(7, 7), 1,    0,      1 };
	strcpy((char *)&words[4], "/tmp/jit-7.dump");
	fixture_put_words(&records, TALLY_RECORD_MMAP, TALLY_MISC_USER, words, 12);
	excerpt_open(&fixture, &usual_attr);
	tally_recorder_excerpt_add(fixture.excerpt, records.records.bytes, records.records.length);
	put_sample(fixture.excerpt, 1, 2, LEAF);
	assert_false(excerpt_close(&fixture));
	tally_buffer_release(&records.records);
}

/* A change that arrives too late can't be repaired. */
static void a_change_behind_younger_samples_is_given_up(void **state)
{
	(void)state;
	for (uint64_t map_time = 3; map_time <= 4; map_time++) {
		struct profile_fixture map = { 0 };
		struct excerpt_fixture fixture;
		uint64_t words[11] = { UINT32_MAX, 0xffffffff81000000, 0x1000, 0, 0, 0, 0,
				       0,          map_time,           0,      1 };
		fixture_put_words(&map, TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, words, 11);
		excerpt_open(&fixture, &usual_attr);
		for (uint64_t i = 1; i <= 4; i++)
			put_sample(fixture.excerpt, 1, i, LEAF);
		tally_recorder_excerpt_add(fixture.excerpt, map.records.bytes, map.records.length);
		assert_true(excerpt_close(&fixture) == (map_time == 4));
		tally_buffer_release(&fixture.records);
		tally_buffer_release(&map.records);
	}
}

static void put_words(struct tally_recorder_excerpt *excerpt, const uint64_t *words, size_t count)
{
	struct profile_fixture record = { 0 };
	fixture_put_words(&record, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, words, count);
	tally_recorder_excerpt_add_sample(excerpt, record.records.bytes);
	tally_buffer_release(&record.records);
}

static void what_a_sample_does_not_hold_is_given_up(void **state)
{
	(void)state;
	const uint64_t ids = fixture_ids_of(7, 7);
	const uint64_t too_long[] = { 1, LEAF, ids, 1, 0, 1, 2, LEAF },
		       huge[] = { 1, LEAF, ids, 1, 0, 1, UINT64_MAX / 8, LEAF };
	const uint64_t short_one[] = { 1, LEAF, ids, 1, 0, 1 };
	const uint64_t continued[] = { 1, LEAF, ids, 1, 0, 1, 3, LEAF, TALLY_CONTEXT_USER_DEFERRED,
				       5 };
	const struct { const uint64_t *words; size_t count; } samples[] = {
		{ too_long, 8 }, { huge, 8 }, { short_one, 6 }, { continued, 10 },
	};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct excerpt_fixture fixture;
		excerpt_open(&fixture, &usual_attr);
		put_words(fixture.excerpt, samples[i].words, samples[i].count);
		assert_false(excerpt_close(&fixture));
	}
}

/* Whether a leaf is late depends on the sample's own address and on EXACT_IP. */
static void a_leaf_has_a_place_for_each_aim(void **state)
{
	(void)state;
	enum { EACH = 4, SAMPLES_OF_CHAIN = 4 * EACH };
	struct profile_fixture recording = { 0 };
	struct excerpt_fixture fixture;
	fixture_map(&recording);
	for (uint64_t i = 0; i < SAMPLES_OF_CHAIN; i++) {
		bool is_exact = i / EACH & 1, is_elsewhere = i / EACH & 2;
		const uint64_t words[] = { 1,
					   is_elsewhere ? WORK : LEAF,
					   fixture_ids_of(fixture_pid(), fixture_pid()),
					   ++recording.time_ns,
					   0,
					   1 + i,
					   3,
					   TALLY_CONTEXT_USER,
					   LEAF,
					   MAIN };
		fixture_put_words(&recording, TALLY_RECORD_SAMPLE,
				  TALLY_MISC_USER | (is_exact ? TALLY_MISC_EXACT_IP : 0), words,
				  10);
	}
	fixture_finish(&recording, 0, 0);
	excerpt_open(&fixture, &usual_attr);
	record_all(fixture.excerpt, &recording, 1);
	assert_true(excerpt_close(&fixture));
	struct tally_profile *whole = read_places(&recording, NULL),
			     *excerpt = read_places(&recording, &fixture.records);
	assert_int_equal(whole->places.places.count, 3); /* LEAF twice, and MAIN */
	assert_same(whole, excerpt);
	tally_profile_free(excerpt);
	tally_buffer_release(&fixture.records);
	fixture_release(&recording, whole);
}

/* Without a chain, or with an empty one, the sample's own address is the place. */
static void a_sample_s_own_address_is_a_place(void **state)
{
	(void)state;
	struct tally_attr without_chains = usual_attr;
	without_chains.sample_type &= ~TALLY_SAMPLE_CALLCHAIN;
	for (unsigned has_chain = 0; has_chain < 2; has_chain++) {
		struct excerpt_fixture fixture;
		excerpt_open(&fixture, has_chain ? &usual_attr : &without_chains);
		for (uint64_t i = 0; i < 1000; i++) {
			const uint64_t words[] = {
				1, LEAF + i / 100, fixture_ids_of(7, 7), 1 + i, 0, 1, 0
			};
			put_words(fixture.excerpt, words, 6 + has_chain);
		}
		assert_true(excerpt_close(&fixture));
		assert_int_equal(fixture.records.length, 10 * 2 * 8 * (7 + has_chain));
		tally_buffer_release(&fixture.records);
	}
}

/* A tracepoint's fields come after the chain.  They stay, byte by byte, when the chain is cut. */
static void what_stands_behind_a_chain_stays(void **state)
{
	(void)state;
	struct tally_attr raw = usual_attr;
	struct excerpt_fixture fixture;
	raw.sample_type |= TALLY_SAMPLE_RAW;
	excerpt_open(&fixture, &raw);
	for (uint64_t i = 0; i < 2; i++) {
		const uint64_t words[] = { 1,
					   LEAF,
					   fixture_ids_of(7, 7),
					   1 + i,
					   0,
					   1,
					   4,
					   TALLY_CONTEXT_USER,
					   LEAF,
					   WORK,
					   MAIN,
					   12 | (0xabcd0000 + i) << 32,
					   0x1122334455667788 + i };
		put_words(fixture.excerpt, words, 13);
	}
	assert_true(excerpt_close(&fixture));
	const size_t whole = 8 * 14, cut = 8 * 12; /* the second keeps only its leaf */
	assert_int_equal(fixture.records.length, whole + cut);
	uint64_t behind[2];
	memcpy(behind, fixture.records.bytes + whole + cut - sizeof(behind), sizeof(behind));
	assert_int_equal(behind[0], 12 | 0xabcd0001ull << 32);
	assert_int_equal(behind[1], 0x1122334455667789);
	tally_buffer_release(&fixture.records);
}

/* A round is written only after records that a reader must put into order. */
static void each_pass_s_end_is_there_once(void **state)
{
	(void)state;
	const struct tally_record_header round = { .type = TALLY_RECORD_FINISHED_ROUND,
						   .size = sizeof(round) };
	struct excerpt_fixture fixture;
	excerpt_open(&fixture, &usual_attr);
	for (uint64_t pass = 0; pass < 100; pass++) {
		put_sample(fixture.excerpt, 1, 1 + pass, LEAF + pass / 10);
		tally_recorder_excerpt_add(fixture.excerpt, &round, sizeof(round));
	}
	assert_true(excerpt_close(&fixture));
	assert_int_equal(fixture.records.length, 20 * (80 + sizeof(round)));
	tally_buffer_release(&fixture.records);
}

/* Rings are read one by one, so a sample from before a change may come after it. */
static void an_older_sample_stays_itself(void **state)
{
	(void)state;
	struct random_recording *recording = calloc(1, sizeof(*recording));
	struct excerpt_fixture fixture;
	excerpt_open(&fixture, &usual_attr);
	recording->fixture.time_ns = 100;
	random_map(recording, 0, "/nowhere/libone.so", CODE, 0);
	struct profile_fixture *map = &recording->fixture;
	uint32_t pid = 7;
	memcpy(map->records.bytes + 8, &pid, sizeof(pid));
	put_sample(fixture.excerpt, 1, 1, LEAF);
	put_sample(fixture.excerpt, 1, 2, LEAF);
	tally_recorder_excerpt_add(fixture.excerpt, map->records.bytes, map->records.length);
	size_t map_bytes = map->records.length;
	put_sample(fixture.excerpt, 1, 50, LEAF);
	put_sample(fixture.excerpt, 1, 60, LEAF);
	put_sample(fixture.excerpt, 1, 102, LEAF);
	put_sample(fixture.excerpt, 1, 103, LEAF);
	put_sample(fixture.excerpt, 1, 104, LEAF);
	put_sample(fixture.excerpt, 1, 70, LEAF);
	assert_true(excerpt_close(&fixture));
	assert_int_equal(fixture.records.length, 7 * 80 + map_bytes); /* all but the one at 104 */
	tally_buffer_release(&fixture.records);
	tally_buffer_release(&map->records);
	free(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_excerpt_has_all_places_and_periods),
		cmocka_unit_test(chains_that_end_alike_have_all_their_places),
		cmocka_unit_test(a_million_equal_hits_are_two),
		cmocka_unit_test(what_keeps_most_samples_is_given_up),
		cmocka_unit_test(a_beginning_may_be_all_new),
		cmocka_unit_test(what_would_be_large_is_given_up),
		cmocka_unit_test(what_it_cannot_tell_is_given_up),
		cmocka_unit_test(a_jit_dump_is_given_up),
		cmocka_unit_test(a_change_behind_younger_samples_is_given_up),
		cmocka_unit_test(what_a_sample_does_not_hold_is_given_up),
		cmocka_unit_test(a_leaf_has_a_place_for_each_aim),
		cmocka_unit_test(a_sample_s_own_address_is_a_place),
		cmocka_unit_test(what_stands_behind_a_chain_stays),
		cmocka_unit_test(each_pass_s_end_is_there_once),
		cmocka_unit_test(an_older_sample_stays_itself),
	};
	return cmocka_run_group_tests_name("record_excerpt", tests, NULL, NULL);
}
