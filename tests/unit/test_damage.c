/* Truncated recordings and flipped bits, through everything that script and report do.  Nothing may
 * crash or hang, the part before the damage is used, and a useless file is an error with a
 * message. */
#include "test.h"

#include "perfdata_fixture.h"
#include "random.h"
#include "recording_walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

/* A walk through everything takes six times as long in sanitized builds. */
enum { CUTS = __has_feature(address_sanitizer) ? 250 : 1000, FLIPS = CUTS, BYTES_MAX = 8 << 20 };

struct bytes {
	uint8_t *at;
	size_t size;
};

static char directory[] = "/tmp/tally-damage-XXXXXX";

static struct bytes read_all(int fd)
{
	struct stat status;
	struct bytes bytes = { 0 };
	assert_int_equal(fstat(fd, &status), 0);
	bytes.size = (size_t)status.st_size;
	bytes.at = malloc(bytes.size + 1);
	assert_non_null(bytes.at);
	assert_int_equal(pread(fd, bytes.at, bytes.size, 0), bytes.size);
	return bytes;
}

static struct bytes ours(bool pipe, int level)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/ours", directory);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	fixture_record(fd, pipe, level, 300, true);
	struct bytes bytes = read_all(fd);
	close(fd);
	return bytes;
}

/* Records with perf.  Returns size 0 if that is impossible. */
static struct bytes perfs(const char *arguments, bool pipe)
{
	char command[512], path[64];
	snprintf(path, sizeof(path), "%s/perfs", directory);
	if (pipe)
		snprintf(command, sizeof(command), "perf record -q -o - %s 2>/dev/null >%s",
			 arguments, path);
	else
		snprintf(command, sizeof(command), "perf record -q -o %s %s >/dev/null 2>&1", path,
			 arguments);
	int fd = system(command) ? -1 : open(path, O_RDONLY);
	struct bytes bytes = { 0 };
	if (fd >= 0) {
		bytes = read_all(fd);
		close(fd);
	}
	return bytes;
}

/* Walks a copy of exactly this size, so that the sanitizer sees reads beyond it. */
static struct recording_walk walk_copy(const uint8_t *bytes, size_t size, unsigned turn)
{
	uint8_t *copy = malloc(size ? size : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, size);
	struct recording_walk walk = recording_walk(copy, size, turn);
	free(copy);
	return walk;
}

static void damage(struct bytes whole, unsigned cuts, unsigned flips)
{
	uint64_t state = 88172645463325252ull;
	struct recording_walk intact = walk_copy(whole.at, whole.size, 0);
	size_t most = 0;
	assert_true(intact.samples > 0);
	assert_true(intact.reported > 0);
	for (unsigned i = 0; i < cuts; i++) {
		struct recording_walk walk = walk_copy(whole.at, whole.size * i / cuts, i);
		assert_true(walk.samples <= intact.samples);
		assert_true(!walk.opened || walk.damaged || walk.samples == intact.samples ||
			    walk.samples >= most);
		most = walk.samples > most ? walk.samples : most;
	}
	for (unsigned i = 0; i < flips; i++) {
		size_t at = next_random(&state) % whole.size;
		uint8_t bit = (uint8_t)(1u << next_random(&state) % 8);
		whole.at[at] ^= bit;
		walk_copy(whole.at, whole.size, i);
		whole.at[at] ^= bit;
	}
	free(whole.at);
}

static void our_files_survive_damage(void **state)
{
	(void)state;
	damage(ours(false, 0), CUTS, FLIPS);
}

static void our_compressed_files_survive_damage(void **state)
{
	(void)state;
	damage(ours(false, 1), CUTS, FLIPS);
}

static void our_pipes_survive_damage(void **state)
{
	(void)state;
	damage(ours(true, 0), CUTS, FLIPS);
}

static void damage_perfs(const char *arguments, bool pipe, unsigned times)
{
	struct bytes bytes = perfs(arguments, pipe);
	if (!bytes.size || bytes.size > BYTES_MAX) {
		free(bytes.at);
		print_message("SKIP: perf can't record this here\n");
		skip();
	}
	damage(bytes, times, times);
}

static void perfs_stacks_survive_damage(void **state)
{
	(void)state;
	damage_perfs(
		"-e cpu-clock -g -c 250000 -- sh -c 'for i in 1 2 3; do ls / >/dev/null; done'",
		false, CUTS / 4);
}

static void perfs_stack_copies_survive_damage(void **state)
{
	(void)state;
	damage_perfs(
		"-e cpu-clock --call-graph dwarf,2048 -c 250000 -- sh -c 'ls / >/dev/null; ls /'",
		false, CUTS / 4);
}

static void perfs_compressed_tracepoints_survive_damage(void **state)
{
	(void)state;
	damage_perfs(
		"-z -e sched:sched_switch,sched:sched_wakeup -g -- "
		"sh -c 'ls / >/dev/null; sleep 0.01'",
		false, CUTS / 4);
}

static void perfs_pipes_survive_damage(void **state)
{
	(void)state;
	damage_perfs(
		"-e '{cpu-clock,page-faults}:S' -c 250000 -- "
		"sh -c 'ls / >/dev/null; ls / >/dev/null'",
		true, CUTS / 4);
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char command[64];
	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_files_survive_damage),
		cmocka_unit_test(our_compressed_files_survive_damage),
		cmocka_unit_test(our_pipes_survive_damage),
		cmocka_unit_test(perfs_stacks_survive_damage),
		cmocka_unit_test(perfs_stack_copies_survive_damage),
		cmocka_unit_test(perfs_compressed_tracepoints_survive_damage),
		cmocka_unit_test(perfs_pipes_survive_damage),
	};
	return cmocka_run_group_tests_name("damage", tests, make_directory, remove_directory);
}
