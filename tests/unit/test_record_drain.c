/* Side-band records of several CPUs are applied in the order in which they happened (session/record_drain.c). */
#include "test.h"

#include "session/recorder_state.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CPUS = 2 };

/* A provider whose rings are ordinary memory: handle N is CPU N's. */
struct fake {
	struct tally_provider provider;
	struct tally_user_page *pages[CPUS];
};

static struct tally_user_page *fake_map(struct tally_provider *provider, int handle, size_t data_pages, int overwrite)
{
	struct fake *fake = (struct fake *)provider;
	size_t bytes = (data_pages + 1) * (size_t)sysconf(_SC_PAGESIZE);
	(void)overwrite;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	return fake->pages[handle] = memory;
}

static void fake_unmap(struct tally_provider *provider, struct tally_user_page *page, size_t data_pages)
{
	(void)provider;
	munmap(page, (data_pages + 1) * (size_t)sysconf(_SC_PAGESIZE));
}

static const struct tally_provider_ops fake_ops = { .name = "fake", .map = fake_map, .unmap = fake_unmap };

struct fixture {
	struct fake fake;
	struct tally_recorder recorder;
	struct tally_record_source source;
	struct tally_ring sample_rings[CPUS], side_rings[CPUS];
	int fd;
};

static const uint64_t TRAILER = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU;

static void start(struct fixture *f)
{
	struct tally_recorder *recorder = &f->recorder;
	const struct tally_perfdata_options plain = { 0 };
	*f = (struct fixture){ .fake.provider.ops = &fake_ops };
	f->source.attr = (struct tally_attr){ .type = TALLY_TYPE_SOFTWARE, .size = sizeof(struct tally_attr),
					      .config = TALLY_SW_DUMMY, .sample_type = TRAILER,
					      .flags = TALLY_ATTR_SAMPLE_ID_ALL };
	recorder->sources = &f->source;
	recorder->source_count = 1;
	recorder->rings = f->sample_rings;
	recorder->side_rings = f->side_rings;
	recorder->ring_count = CPUS;
	for (int cpu = 0; cpu < CPUS; cpu++)
		assert_int_equal(tally_ring_open(&f->side_rings[cpu], &f->fake.provider, cpu, cpu, 1), 0);
	static struct tally_recorded_event event;
	event = (struct tally_recorded_event){ .attr = f->source.attr, .name = "dummy" };
	event.attr.size = tally_attr_size_needed(&event.attr);
	f->fd = memfd_create("recording", MFD_CLOEXEC);
	assert_int_equal(tally_perfdata_writer_new(f->fd, &event, 1, &plain, &recorder->writer, NULL), 0);
}

static void end(struct fixture *f)
{
	tally_perfdata_writer_free(f->recorder.writer);
	tally_tasks_release(&f->recorder.tasks);
	for (int cpu = 0; cpu < CPUS; cpu++)
		tally_ring_close(&f->side_rings[cpu]);
	close(f->fd);
}

/* As the kernel: the words behind the header and the trailer, then the head. */
static void put(struct fixture *f, int cpu, uint32_t type, uint64_t time, const void *body, size_t size)
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
	const struct { uint32_t ids[4]; uint64_t time; } body = { { pid, parent, pid, parent }, time };
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
	const struct tally_mapping *mapping = tally_tasks_find(&f->recorder.tasks, pid, false, 0x1800);
	return mapping ? tally_tasks_path(&f->recorder.tasks, mapping->file) : "nothing";
}

/* The fork stands in CPU 1's ring, what the child maps in CPU 0's, which is read first. */
static void a_fork_is_applied_before_its_child_s_maps(void **state)
{
	struct fixture f;
	(void)state;
	start(&f);
	put_map(&f, 1, 5, 100, "/bin/parent");
	put_fork(&f, 1, 10, 100, 101);
	put_map(&f, 0, 20, 101, "/bin/child");
	assert_int_equal(tally_record_drain(&f.recorder, false, NULL), 0);
	assert_string_equal(mapped(&f, 101), "/bin/child");
	assert_string_equal(mapped(&f, 100), "/bin/parent");
	end(&f);
}

/* What causes a record may still be on its way when the record is younger than the pass. */
static void younger_records_wait_for_the_next_pass(void **state)
{
	const uint64_t later = UINT64_MAX - 1;
	struct fixture f;
	(void)state;
	start(&f);
	put_map(&f, 0, 5, 101, "/bin/old");
	put_map(&f, 0, later, 101, "/bin/new");
	assert_int_equal(tally_record_drain(&f.recorder, false, NULL), 0);
	assert_string_equal(mapped(&f, 101), "/bin/old");
	assert_int_equal(tally_record_drain(&f.recorder, true, NULL), 0); /* the last pass takes what there is */
	assert_string_equal(mapped(&f, 101), "/bin/new");
	assert_int_equal(f.fake.pages[0]->data_tail, f.fake.pages[0]->data_head);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fork_is_applied_before_its_child_s_maps),
		cmocka_unit_test(younger_records_wait_for_the_next_pass),
	};
	return cmocka_run_group_tests_name("record_drain", tests, NULL, NULL);
}
