/* Side-band records of several CPUs are applied in the order in which they happened.  Everything in
 * the sample rings reaches the file once, in stretches or one by one
 * (recorder/recorder_drain.c). */
#include "test.h"

#include "recorder/recorder_state.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CPUS = 2 };

/* A provider whose rings are ordinary memory: handle N is CPU N's side-band, CPUS + N its
 * samples. */
struct fake {
	struct tally_provider provider;
	/* The sample rings follow the side-band rings. */
	struct tally_user_page *pages[2 * CPUS];
};

static struct tally_user_page *fake_map(struct tally_provider *provider, int handle,
					size_t data_pages, int overwrite)
{
	struct fake *fake = (struct fake *)provider;
	size_t bytes = (data_pages + 1) * (size_t)sysconf(_SC_PAGESIZE);
	(void)overwrite;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	return fake->pages[handle] = memory;
}

static void fake_unmap(struct tally_provider *provider, struct tally_user_page *page,
		       size_t data_pages)
{
	(void)provider;
	munmap(page, (data_pages + 1) * (size_t)sysconf(_SC_PAGESIZE));
}

static const struct tally_provider_ops fake_ops = { .name = "fake",
						    .map = fake_map,
						    .unmap = fake_unmap };

struct fixture {
	struct fake fake;
	struct tally_recorder recorder;
	struct tally_recorder_source source;
	struct tally_ring sample_rings[CPUS], side_rings[CPUS];
	int fd;
};

static const uint64_t TRAILER = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
				TALLY_SAMPLE_CPU;

static void start(struct fixture *f)
{
	struct tally_recorder *recorder = &f->recorder;
	const struct tally_perfdata_options plain = { 0 };
	*f = (struct fixture){ .fake.provider.ops = &fake_ops };
	tally_recorder_init(recorder);
	f->source.attr = (struct tally_attr){ .type = TALLY_TYPE_SOFTWARE,
					      .size = sizeof(struct tally_attr),
					      .config = TALLY_SW_DUMMY,
					      .sample_type = TRAILER,
					      .flags = TALLY_ATTR_SAMPLE_ID_ALL };
	recorder->events.sources = &f->source;
	recorder->events.source_count = 1;
	recorder->rings.samples = f->sample_rings;
	recorder->rings.sides = f->side_rings;
	recorder->rings.count = CPUS;
	for (int cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(
			tally_ring_open(&f->side_rings[cpu], &f->fake.provider, cpu, cpu, 1), 0);
	static struct tally_recorded_event event;
	event = (struct tally_recorded_event){ .attr = f->source.attr, .name = "dummy" };
	event.attr.size = tally_attr_size_needed(&event.attr);
	f->fd = memfd_create("recording", MFD_CLOEXEC);
	assert_int_equal(tally_perfdata_writer_new(f->fd, &event, 1, &plain,
						   &recorder->output.writer, NULL),
			 0);
}

static void end(struct fixture *f)
{
	tally_perfdata_writer_free(f->recorder.output.writer);
	tally_endings_release(&f->recorder.tasks.endings);
	tally_tasks_release(&f->recorder.tasks.known);
	for (int cpu = 0; cpu < CPUS; cpu++)
		tally_ring_close(&f->side_rings[cpu]);
	for (int cpu = 0; cpu < CPUS; cpu++)
		if (f->sample_rings[cpu].page)
			tally_ring_close(&f->sample_rings[cpu]);
	close(f->fd);
}

/* Writes a record like the kernel: the words after the header and the trailer, then the head. */
static void put(struct fixture *f, int cpu, uint32_t type, uint64_t time, const void *body,
		size_t size)
{
	struct tally_user_page *page = f->fake.pages[cpu];
	uint8_t *at = (uint8_t *)page + (size_t)sysconf(_SC_PAGESIZE) + page->data_head;
	struct tally_sample_id id = { .pid = 1, .tid = 1, .time = time, .cpu = (uint32_t)cpu };
	struct tally_record_header header = { .type = type, .misc = TALLY_MISC_USER };
	header.size = (uint16_t)(sizeof(header) + size + tally_sample_id_size(&f->source.attr));
	memcpy(at, &header, sizeof(header));
	memcpy(at + sizeof(header), body, size);
	tally_sample_id_encode(&f->source.attr, &id, at + sizeof(header) + size);
	__atomic_store_n(&page->data_head, page->data_head + header.size, __ATOMIC_RELEASE);
}

static void put_fork(struct fixture *f, int cpu, uint64_t time, uint32_t parent, uint32_t pid)
{
	const struct {
		uint32_t ids[4];
		uint64_t time;
	} body = { { pid, parent, pid, parent }, time };
	put(f, cpu, TALLY_RECORD_FORK, time, &body, sizeof(body));
}

static void put_map(struct fixture *f, int cpu, uint64_t time, uint32_t pid, const char *path)
{
	struct { uint32_t pid, tid; uint64_t start, length, offset; char path[16]; } body = {
		.pid = pid, .tid = pid, .start = 0x1000, .length = 0x1000
	};
	snprintf(body.path, sizeof(body.path), "%s", path);
	put(f, cpu, TALLY_RECORD_MMAP, time, &body, sizeof(body));
}

static const char *mapped(struct fixture *f, uint32_t pid)
{
	const struct tally_mapping *mapping = tally_tasks_find(&f->recorder.tasks.known, pid, false,
							       0x1800);
	return mapping ? tally_tasks_path(&f->recorder.tasks.known, mapping->file) : "nothing";
}

/* The fork is in CPU 1's ring, and the child's mapping in CPU 0's, which is read first. */
static void a_fork_is_applied_before_its_child_s_maps(void **state)
{
	struct fixture f;
	(void)state;
	start(&f);
	put_map(&f, 1, 5, 100, "/bin/parent");
	put_fork(&f, 1, 10, 100, 101);
	put_map(&f, 0, 20, 101, "/bin/child");
	assert_int_equal(tally_recorder_drain(&f.recorder, false, NULL), 0);
	assert_string_equal(mapped(&f, 101), "/bin/child");
	assert_string_equal(mapped(&f, 100), "/bin/parent");
	end(&f);
}

/* If a record is younger than the pass, the record that caused it may not have arrived yet. */
static void younger_records_wait_for_the_next_pass(void **state)
{
	const uint64_t later = tally_recorder_now_ns() + 1000000000;
	struct fixture f;
	(void)state;
	start(&f);
	put_map(&f, 0, 5, 101, "/bin/old");
	put_map(&f, 0, later, 101, "/bin/new");
	assert_int_equal(tally_recorder_drain(&f.recorder, false, NULL), 0);
	assert_string_equal(mapped(&f, 101), "/bin/old");
	/* the last pass takes everything */
	assert_int_equal(tally_recorder_drain(&f.recorder, true, NULL), 0);
	assert_string_equal(mapped(&f, 101), "/bin/new");
	assert_int_equal(f.fake.pages[0]->data_tail, f.fake.pages[0]->data_head);
	end(&f);
}

static void put_too_long(struct fixture *f, uint32_t type, uint64_t time, const void *body,
			 size_t size)
{
	enum { BEFORE_BYTES = 32 };
	struct tally_user_page *page = f->fake.pages[0];
	uint8_t *at = (uint8_t *)page + (size_t)sysconf(_SC_PAGESIZE) + page->data_head;
	struct tally_record_header *header = (struct tally_record_header *)at;
	put(f, 0, type, time, body, size);
	memset(at + header->size, 0x7f, BEFORE_BYTES);
	header->size += BEFORE_BYTES;
	page->data_head += BEFORE_BYTES;
}

/* Linux writes records about BPF programs that claim to be longer than they are, with older content
 * of the ring at their end.  Reading a time from there gave a far future, and no later record was
 * taken. */
static void what_linux_writes_too_long_is_cut(void **state)
{
	const struct {
		uint16_t type, flags;
		uint32_t id;
		uint8_t tag[8];
	} loaded = { 1, 0, 7, "program" };
	const struct {
		uint64_t address;
		uint32_t length;
		uint16_t type, flags;
		char name[16];
	} symbol = { 0xffffffffc0000000, 64, 1, 0, "bpf_prog_p" };
	struct tally_raw_record raw;
	struct tally_record record;
	struct tally_perfdata *data;
	struct fixture f;
	(void)state;
	start(&f);
	put_too_long(&f, TALLY_RECORD_KSYMBOL, 4, &symbol, sizeof(symbol));
	put_too_long(&f, TALLY_RECORD_BPF_EVENT, 5, &loaded, sizeof(loaded));
	put_map(&f, 0, 6, 101, "/bin/behind");
	assert_int_equal(tally_recorder_drain(&f.recorder, false, NULL), 0);
	assert_string_equal(mapped(&f, 101), "/bin/behind");
	assert_int_equal(f.fake.pages[0]->data_tail, f.fake.pages[0]->data_head);
	assert_int_equal(tally_perfdata_finish(f.recorder.output.writer, NULL), 0);

	static uint8_t file[1 << 16];
	ssize_t size = pread(f.fd, file, sizeof(file), 0);
	assert_int_equal(tally_perfdata_open_memory(file, (size_t)size, &data, NULL), 0);
	size_t around = sizeof(record.header) + tally_sample_id_size(&f.source.attr);
	assert_int_equal(tally_perfdata_next(data, &raw, NULL), 1);
	assert_int_equal(tally_record_decode(&f.source.attr, raw.bytes, raw.size, &record), 0);
	assert_int_equal(record.header.size, around + sizeof(symbol));
	assert_int_equal(record.sample_id.time, 4);
	assert_string_equal(record.ksymbol.name, "bpf_prog_p");
	assert_int_equal(tally_perfdata_next(data, &raw, NULL), 1);
	assert_int_equal(tally_record_decode(&f.source.attr, raw.bytes, raw.size, &record), 0);
	assert_int_equal(record.header.size, around + sizeof(loaded));
	assert_int_equal(record.sample_id.time, 5);
	assert_int_equal(record.bpf.id, 7);
	tally_perfdata_close(data);
	end(&f);
}

/* Any other record may have a wrong time too. */
static void a_time_far_ahead_holds_up_nothing(void **state)
{
	struct fixture f;
	(void)state;
	start(&f);
	put_map(&f, 0, UINT64_MAX - 1, 101, "/bin/never");
	put_map(&f, 0, 6, 102, "/bin/behind");
	assert_int_equal(tally_recorder_drain(&f.recorder, false, NULL), 0);
	assert_string_equal(mapped(&f, 102), "/bin/behind");
	end(&f);
}

/* ---- samples ------------------------------------------------------------- */

enum { RING_PAGES = 16 };

struct expected {
	uint8_t bytes[8 << 20]; /* bytes of the file's data */
	size_t size;
	uint64_t samples, lost, throttled, first_ns, last_ns;
};

static size_t ring_bytes(void)
{
	return RING_PAGES * (size_t)sysconf(_SC_PAGESIZE);
}

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 33) % limit;
}

/* Writes like the kernel, wrapping at the ring's end.  Returns false if there is no room. */
static bool put_in_ring(struct fixture *f, int cpu, const void *bytes, size_t size)
{
	struct tally_user_page *page = f->fake.pages[CPUS + cpu];
	uint8_t *data = (uint8_t *)page + (size_t)sysconf(_SC_PAGESIZE);
	if (page->data_head + size - page->data_tail > ring_bytes())
		return false;
	for (size_t i = 0; i < size; i++)
		data[(page->data_head + i) % ring_bytes()] = ((const uint8_t *)bytes)[i];
	__atomic_store_n(&page->data_head, page->data_head + size, __ATOMIC_RELEASE);
	return true;
}

/* Makes a sample of 40 to 4,000 bytes (now and then 64,000), or another record with the trailer of
 * the samples' event. */
static size_t random_record(struct fixture *f, uint64_t *state, uint64_t time, uint64_t words[8192])
{
	static const uint32_t others[] = { TALLY_RECORD_LOST, TALLY_RECORD_THROTTLE,
					   TALLY_RECORD_UNTHROTTLE };
	struct tally_record_header header = { .type = TALLY_RECORD_SAMPLE };
	size_t longest = random_below(state, 50) ? 500 : 8000,
	       count = 5 + random_below(state, longest - 5);
	bool is_other = !random_below(state, 8);
	for (size_t i = 0; i < count; i++)
		words[i] = random_below(state, UINT32_MAX);
	words[4] = time;
	if (is_other) {
		const struct tally_sample_id id = { .pid = 1, .tid = 1, .time = time };
		header.type = others[random_below(state, 3)];
		count = (header.type == TALLY_RECORD_LOST ? 3 : 4) +
			tally_sample_id_size(&f->source.attr) / 8;
		words[2] = 1 + words[2] % 100;
		tally_sample_id_encode(&f->source.attr, &id,
				       words + count - tally_sample_id_size(&f->source.attr) / 8);
	}
	header.size = (uint16_t)(8 * count);
	memcpy(words, &header, sizeof(header));
	return 8 * count;
}

static void expect(struct expected *expected, const uint64_t *words, size_t size)
{
	struct tally_record_header header;
	memcpy(&header, words, sizeof(header));
	assert_true(size <= sizeof(expected->bytes) - expected->size);
	memcpy(expected->bytes + expected->size, words, size);
	expected->size += size;
	expected->lost += header.type == TALLY_RECORD_LOST ? words[2] : 0;
	expected->throttled += header.type == TALLY_RECORD_THROTTLE;
	if (header.type != TALLY_RECORD_SAMPLE)
		return;
	expected->samples++;
	expected->first_ns = !expected->first_ns || words[4] < expected->first_ns
				     ? words[4]
				     : expected->first_ns;
	expected->last_ns = words[4] > expected->last_ns ? words[4] : expected->last_ns;
}

static void open_sample_rings(struct fixture *f)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(tally_ring_open(&f->sample_rings[cpu], &f->fake.provider,
						 CPUS + cpu, cpu, RING_PAGES),
				 0);
}

static void assert_written(struct fixture *f, const struct expected *expected)
{
	uint64_t data_offset;
	uint8_t *got = malloc(expected->size + 1);
	assert_non_null(got);
	assert_int_equal(tally_perfdata_flush(f->recorder.output.writer, NULL), 0);
	assert_int_equal(pread(f->fd, &data_offset, sizeof(data_offset), 40), sizeof(data_offset));
	assert_int_equal(pread(f->fd, got, expected->size + 1, (off_t)data_offset), expected->size);
	assert_memory_equal(got, expected->bytes, expected->size);
	free(got);
}

static void all_that_stands_in_the_rings_is_written_once_and_in_order(void **state)
{
	const struct tally_record_header round = { .type = TALLY_RECORD_FINISHED_ROUND,
						   .size = sizeof(round) };
	static uint64_t words[8192];
	static struct expected expected;
	uint64_t random = 1, time = 1000;
	struct fixture f;
	(void)state;
	start(&f);
	open_sample_rings(&f);
	for (int pass = 0; pass < 60; pass++) {
		uint64_t fill = random_below(&random, 300);
		for (int cpu = 0; cpu < CPUS; cpu++)
			for (uint64_t i = 0; i < fill; i++) {
				size_t size = random_record(
					&f, &random, time += random_below(&random, 9), words);
				if (!put_in_ring(&f, cpu, words, size))
					break;
				expect(&expected, words, size);
			}
		if (fill)
			expect(&expected, (const uint64_t *)&round, sizeof(round));
		assert_int_equal(tally_recorder_drain(&f.recorder, false, NULL), 0);
		for (int cpu = 0; cpu < CPUS; cpu++)
			assert_int_equal(f.fake.pages[CPUS + cpu]->data_tail,
					 f.fake.pages[CPUS + cpu]->data_head);
	}
	assert_true(f.fake.pages[CPUS]->data_head > 3 * ring_bytes()); /* it wrapped */
	assert_written(&f, &expected);
	assert_int_equal(f.recorder.session.status.samples, expected.samples);
	assert_int_equal(f.recorder.session.status.lost, expected.lost);
	assert_int_equal(f.recorder.output.lost_reported, expected.lost);
	assert_int_equal(f.recorder.session.status.throttled, expected.throttled);
	assert_int_equal(f.recorder.output.first_sample_ns, expected.first_ns);
	assert_int_equal(f.recorder.output.last_sample_ns, expected.last_ns);
	end(&f);
}

/* The records that name a thousand equal samples: the mapping, two samples, and the end of the
 * pass. */
static void an_excerpt_is_made_of_what_is_drained(void **state)
{
	enum { HITS = 500, SAMPLE_WORDS = 7 };
	const struct tally_attr sampled = {
		.sample_type = TRAILER | TALLY_SAMPLE_IP | TALLY_SAMPLE_PERIOD,
		.flags = TALLY_ATTR_SAMPLE_ID_ALL,
	};
	const struct tally_record_header header = { .type = TALLY_RECORD_SAMPLE,
						    .misc = TALLY_MISC_USER,
						    .size = 8 * SAMPLE_WORDS };
	struct tally_map event_of_id = { 0 };
	struct tally_buffer records;
	struct fixture f;
	(void)state;
	start(&f);
	open_sample_rings(&f);
	*tally_map_put(&event_of_id, 1, NULL) = 0;
	f.recorder.output.excerpt = tally_recorder_excerpt_new(
		(const struct tally_attr *[]){ &sampled, &f.source.attr }, 2, &event_of_id);
	assert_non_null(f.recorder.output.excerpt);
	put_map(&f, 0, 5, 1, "/bin/program");
	size_t map_bytes = f.fake.pages[0]->data_head;
	for (uint64_t i = 0; i < 2 * HITS; i++) {
		uint64_t words[SAMPLE_WORDS] = { 0, 1, 0x1800, 1ull << 32 | 1, 10 + i, 0, 3 };
		memcpy(words, &header, sizeof(header));
		assert_true(put_in_ring(&f, i % CPUS, words, sizeof(words)));
	}
	assert_int_equal(tally_recorder_drain(&f.recorder, false, NULL), 0);
	assert_int_equal(f.recorder.session.status.samples, 2 * HITS);
	assert_true(tally_recorder_excerpt_take(f.recorder.output.excerpt, &records));
	assert_int_equal(records.length,
			 map_bytes + 2 * sizeof(uint64_t[SAMPLE_WORDS]) + sizeof(header));
	tally_buffer_release(&records);
	tally_recorder_excerpt_free(f.recorder.output.excerpt);
	tally_map_release(&event_of_id);
	end(&f);
}

/* No kernel writes such a record.  The records before it are kept, and nothing beyond the noted
 * head is read. */
static void a_record_of_no_size_ends_what_is_read(void **state)
{
	static uint64_t words[8192];
	static struct expected expected;
	const uint64_t bad[] = { 0, 5ull << 48, 60000ull << 48 };
	struct fixture f;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const struct tally_record_header round = { .type = TALLY_RECORD_FINISHED_ROUND,
							   .size = sizeof(round) };
		uint64_t random = i;
		expected = (struct expected){ 0 };
		start(&f);
		open_sample_rings(&f);
		size_t size = random_record(&f, &random, 7, words);
		assert_true(put_in_ring(&f, 0, words, size));
		expect(&expected, words, size);
		assert_true(put_in_ring(&f, 0, &bad[i], sizeof(bad[i])));
		expect(&expected, (const uint64_t *)&round, sizeof(round));
		assert_int_equal(tally_recorder_drain(&f.recorder, false, NULL), 0);
		assert_written(&f, &expected);
		assert_int_equal(f.fake.pages[CPUS]->data_tail, f.fake.pages[CPUS]->data_head);
		end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fork_is_applied_before_its_child_s_maps),
		cmocka_unit_test(younger_records_wait_for_the_next_pass),
		cmocka_unit_test(what_linux_writes_too_long_is_cut),
		cmocka_unit_test(a_time_far_ahead_holds_up_nothing),
		cmocka_unit_test(all_that_stands_in_the_rings_is_written_once_and_in_order),
		cmocka_unit_test(an_excerpt_is_made_of_what_is_drained),
		cmocka_unit_test(a_record_of_no_size_ends_what_is_read),
	};
	return cmocka_run_group_tests_name("record_drain", tests, NULL, NULL);
}
