/* A recording with stacks of known functions: JIT code of one process, whose names are in a perf
 * map that the test writes.
 *
 *     main → work → leaf      threads 100 "alpha" (pid 100) and 101 "beta" (pid 100), CPUs 0 and 1
 *     main → loop → loop → leaf */
#ifndef TALLY_TEST_PROFILE_FIXTURE_H
#define TALLY_TEST_PROFILE_FIXTURE_H

#include "base/buffer.h"
#include "perfdata/perfdata.h"
#include "profile/profile.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CODE = 0x10000, MAIN = CODE, WORK = CODE + 0x100, LOOP = CODE + 0x200, LEAF = CODE + 0x300 };

#define PROFILE_SAMPLE_TYPE \
	(TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | \
	 TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_CALLCHAIN)

/* Returns a pid above every pid that the kernel assigns. */
static inline uint32_t fixture_pid(void)
{
	return 0x40000000u + (uint32_t)getpid();
}

static inline void fixture_map_path(char path[64])
{
	snprintf(path, 64, "/tmp/perf-%u.map", fixture_pid());
}

/* Writes the map; `begin` is the name of main. */
static inline void fixture_write_map_of(const char *begin)
{
	char path[64];
	fixture_map_path(path);
	FILE *map = fopen(path, "w");
	assert_non_null(map);
	fprintf(map, "%x 80 %s\n%x 80 work\n%x 80 loop\n%x 80 leaf\nnot a line\n", MAIN, begin,
		WORK, LOOP, LEAF);
	fclose(map);
}

static inline void fixture_write_map(void)
{
	fixture_write_map_of("main");
}

static inline void fixture_remove_map(void)
{
	char path[64];
	fixture_map_path(path);
	unlink(path);
}

/* cmocka's set-up for groups of tests. */
static inline int fixture_set_up_map(void **state)
{
	(void)state;
	fixture_write_map();
	return 0;
}

static inline int fixture_tear_down_map(void **state)
{
	(void)state;
	fixture_remove_map();
	return 0;
}

struct profile_fixture {
	struct tally_buffer records;
	uint64_t time_ns;
	char *bytes; /* bytes of the file */
	size_t size;
};

static inline void fixture_put_words(struct profile_fixture *fixture, uint32_t type, uint16_t misc,
				     const uint64_t *words, size_t count)
{
	struct tally_record_header header = { type, misc, (uint16_t)(sizeof(header) + count * 8) };
	tally_buffer_append(&fixture->records, &header, sizeof(header));
	tally_buffer_append(&fixture->records, words, count * 8);
}

static inline uint64_t fixture_ids_of(uint32_t pid, uint32_t tid)
{
	return (uint64_t)tid << 32 | pid;
}

static inline void fixture_comm(struct profile_fixture *fixture, uint32_t tid, const char *comm)
{
	uint64_t words[7] = { fixture_ids_of(fixture_pid(), tid),
			      0,
			      0,
			      fixture_ids_of(fixture_pid(), tid),
			      ++fixture->time_ns,
			      0,
			      1 };
	strncpy((char *)&words[1], comm, 15);
	fixture_put_words(fixture, TALLY_RECORD_COMM, 0, words, 7);
}

static inline void fixture_map(struct profile_fixture *fixture)
{
	uint64_t words[10] = { fixture_ids_of(fixture_pid(), fixture_pid()),
			       CODE,
			       0x1000,
			       0,
			       0,
			       0,
			       fixture_ids_of(fixture_pid(), fixture_pid()),
			       ++fixture->time_ns,
			       0,
			       1 };
	memcpy(&words[4], "//anon", 7);
	fixture_put_words(fixture, TALLY_RECORD_MMAP, TALLY_MISC_USER, words, 10);
}

/* Adds a sample with a stack, leaf first: the leaf's ip, then return addresses.  The call is at the
 * byte before a return address. */
static inline void fixture_sample(struct profile_fixture *fixture, uint64_t id, uint32_t tid,
				  uint32_t cpu, uint64_t period, const uint64_t *stack,
				  size_t depth)
{
	uint64_t words[64] = { id,
			       stack[0],
			       fixture_ids_of(fixture_pid(), tid),
			       ++fixture->time_ns,
			       cpu,
			       period,
			       depth + 1,
			       TALLY_CONTEXT_USER };
	memcpy(&words[8], stack, depth * 8);
	fixture_put_words(fixture, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, words, 8 + depth);
}

static inline void fixture_lost(struct profile_fixture *fixture, uint64_t lost)
{
	uint64_t words[6] = {
		1, lost, fixture_ids_of(fixture_pid(), fixture_pid()), ++fixture->time_ns, 0, 1
	};
	fixture_put_words(fixture, TALLY_RECORD_LOST, 0, words, 6);
}

/* Makes a file of the records so far, with events "clock" (id 1) and "faults" (id 2). */
static inline void fixture_finish(struct profile_fixture *fixture, uint64_t extra_type,
				  uint64_t read_format)
{
	static const uint64_t ids[2] = { 1, 2 };
	char path[] = "/tmp/tally-profile-XXXXXX";
	struct tally_recorded_event events[2];
	struct tally_perfdata_options options = { 0 };
	struct tally_perfdata_writer *writer;
	struct tally_buffer names = { 0 };
	struct stat status;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	for (unsigned i = 0; i < 2; i++)
		events[i] = (struct tally_recorded_event){
			.attr = { .type = TALLY_TYPE_SOFTWARE,
				  .config = i ? TALLY_SW_PAGE_FAULTS : TALLY_SW_CPU_CLOCK,
				  .sample_period = 1,
				  .sample_type = PROFILE_SAMPLE_TYPE | extra_type,
				  .read_format = read_format,
				  .flags = TALLY_ATTR_SAMPLE_ID_ALL },
			.name = i ? "faults" : "clock",
			.ids = &ids[i],
			.id_count = 1,
		};
	assert_int_equal(tally_perfdata_writer_new(fd, events, 2, &options, &writer, NULL), 0);
	tally_feature_event_desc(&names, events, 2);
	assert_int_equal(tally_perfdata_write_feature(writer, TALLY_FEATURE_EVENT_DESC, names.bytes,
						      names.length, NULL),
			 0);
	assert_int_equal(
		tally_perfdata_write(writer, fixture->records.bytes, fixture->records.length, NULL),
		0);
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
	tally_perfdata_writer_free(writer);
	assert_int_equal(fstat(fd, &status), 0);
	fixture->size = (size_t)status.st_size;
	fixture->bytes = malloc(fixture->size);
	assert_int_equal(pread(fd, fixture->bytes, fixture->size, 0), fixture->size);
	close(fd);
	unlink(path);
	tally_buffer_release(&names);
	tally_buffer_release(&fixture->records);
}

/* Makes the usual samples: 10 + 20 of main→work→leaf (alpha, CPU 0; beta, CPU 1), 40 of
 * main→loop→loop→leaf, 5 of loop, and 100 faults in work. */
static inline void fixture_usual(struct profile_fixture *fixture)
{
	const uint64_t straight[] = { LEAF + 8, WORK + 8, MAIN + 8 };
	const uint64_t recursive[] = { LEAF + 8, LOOP + 8, LOOP + 8, MAIN + 8 },
		       loop[] = { LOOP + 4, MAIN + 8 };
	const uint64_t work[] = { WORK + 4, MAIN + 8 };
	*fixture = (struct profile_fixture){ 0 };
	fixture_comm(fixture, fixture_pid(), "alpha");
	fixture_comm(fixture, 101, "beta");
	fixture_map(fixture);
	fixture_sample(fixture, 1, fixture_pid(), 0, 10, straight, 3);
	fixture_sample(fixture, 1, 101, 1, 20, straight, 3);
	fixture_sample(fixture, 1, fixture_pid(), 0, 40, recursive, 4);
	fixture_sample(fixture, 1, fixture_pid(), 1, 5, loop, 2);
	fixture_sample(fixture, 2, 101, 1, 100, work, 2);
	fixture_lost(fixture, 7);
	fixture_finish(fixture, 0, 0);
}

static inline struct tally_profile *fixture_profile(struct profile_fixture *fixture,
						    const struct tally_profile_filter *filter)
{
	struct tally_profile_options options = { 0 };
	struct tally_recording *recording;
	struct tally_profile *profile;
	if (filter)
		options.filter = *filter;
	assert_int_equal(
		tally_recording_open_memory(fixture->bytes, fixture->size, &recording, NULL), 0);
	assert_int_equal(tally_profile_new(recording, &options, &profile, NULL), 0);
	return profile;
}

static inline void fixture_release(struct profile_fixture *fixture, struct tally_profile *profile)
{
	tally_profile_free(profile);
	free(fixture->bytes);
}

#endif
