/* C4: the records other than samples, each compared with the action that caused it. */
#include "ring_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MILLISECOND 1000000ull

/* Opens an enabled dummy event for side-band records on the calling task. */
static int open_sideband(struct surface *surface, struct ring *ring, uint64_t flags)
{
	struct tally_attr attr = ring_sideband_attr(flags);
	CHECK_RING(ring, surface, &attr, 0, -1, 16);
	CHECK_EQUAL(CALL(ioctl, ring->fd, TALLY_IOC_ENABLE, 0), 0);
	return 0;
}

#define SIDEBAND(ring, flags) \
	do { int opened_ = open_sideband(surface, ring, flags); \
	     if (opened_) \
		     return opened_; } while (0)

/* --- MMAP, MMAP2 ---------------------------------------------------------- */

static int mmap_tells_of_code(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	SIDEBAND(&ring, TALLY_ATTR_MMAP);
	CALL(map_code, true);
	CHECK_FOUND(&ring, TALLY_RECORD_MMAP, &record);
	CHECK_EQUAL(record.mmap.pid, CALL(process));
	CHECK_EQUAL(record.mmap.tid, CALL(self));
	CHECK(record.mmap.start != 0);
	CHECK_EQUAL(record.mmap.start % surface->page_size, 0);
	CHECK_EQUAL(record.mmap.length, surface->page_size);
	CHECK_EQUAL(record.mmap.file_offset % surface->page_size, 0);
	CHECK_EQUAL(strcmp(record.mmap.filename, CALL(mapped_path)), 0);
	CHECK_EQUAL(record.header.misc, TALLY_MISC_USER);
	return 0;
}

static int mmap_tells_of_data_by_mmap_data(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	SIDEBAND(&ring, TALLY_ATTR_MMAP | TALLY_ATTR_MMAP_DATA);
	CALL(map_code, false);
	CHECK_FOUND(&ring, TALLY_RECORD_MMAP, &record);
	CHECK_EQUAL(strcmp(record.mmap.filename, CALL(mapped_path)), 0);
	CHECK_EQUAL(record.header.misc, TALLY_MISC_USER | TALLY_MISC_MMAP_DATA);
	return 0;
}

static int mmap_without_mmap_data_is_code_alone(struct surface *surface)
{
	struct ring ring;
	SIDEBAND(&ring, TALLY_ATTR_MMAP);
	CALL(map_code, false);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_MMAP), 0);
	return 0;
}

static int mmap_data_alone_is_data_alone(struct surface *surface)
{
	struct ring ring;
	SIDEBAND(&ring, TALLY_ATTR_MMAP_DATA);
	CALL(map_code, true);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_MMAP), 0);
	CALL(map_code, false);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_MMAP), 1);
	return 0;
}

static int mmap2_has_protection_and_flags(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	SIDEBAND(&ring, TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2);
	CALL(map_code, true);
	CHECK_FOUND(&ring, TALLY_RECORD_MMAP2, &record);
	CHECK_EQUAL(record.mmap.tid, CALL(self));
	CHECK_EQUAL(record.mmap.length, surface->page_size);
	CHECK_EQUAL(strcmp(record.mmap.filename, CALL(mapped_path)), 0);
	CHECK_EQUAL(record.mmap.protection, PROT_READ | PROT_EXEC);
	CHECK_EQUAL(record.mmap.flags, MAP_PRIVATE);
	return 0;
}

static int mmap2_takes_the_place_of_mmap(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	SIDEBAND(&ring, TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2);
	CALL(map_code, true);
	unsigned seen = 0;
	while (ring_next(&ring, &record) == 1) {
		CHECK(record.header.type != TALLY_RECORD_MMAP);
		seen += record.header.type == TALLY_RECORD_MMAP2;
	}
	CHECK_EQUAL(seen, 1);
	return 0;
}

static int mmap2_has_the_files_inode(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	struct surface_file file;
	CHECK_EQUAL(CALL(mapped_file, &file), 0);
	SIDEBAND(&ring, TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2);
	CALL(map_code, true);
	CHECK_FOUND(&ring, TALLY_RECORD_MMAP2, &record);
	CHECK_EQUAL(record.mmap.has_inode, true);
	CHECK_EQUAL(record.mmap.inode, file.inode);
	return 0;
}

static int mmap2_has_the_build_id(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	struct surface_file file;
	CHECK_EQUAL(CALL(mapped_file, &file), 0);
	unsigned size = file.build_id_size;
	SIDEBAND(&ring, TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_BUILD_ID);
	CALL(map_code, true);
	CHECK_FOUND(&ring, TALLY_RECORD_MMAP2, &record);
	CHECK_EQUAL(!!(record.header.misc & TALLY_MISC_MMAP_BUILD_ID), size > 0);
	CHECK_EQUAL(record.mmap.build_id_size, size);
	CHECK_EQUAL(size ? memcmp(record.mmap.build_id, file.build_id, size) : 0, 0);
	CHECK_EQUAL(strcmp(record.mmap.filename, CALL(mapped_path)), 0);
	return 0;
}

/* --- COMM ----------------------------------------------------------------- */

static int comm_tells_the_new_name(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	SIDEBAND(&ring, TALLY_ATTR_COMM);
	CALL(set_comm, "renamed");
	CHECK_FOUND(&ring, TALLY_RECORD_COMM, &record);
	CHECK_EQUAL(record.comm.pid, CALL(process));
	CHECK_EQUAL(record.comm.tid, CALL(self));
	CHECK_EQUAL(strcmp(record.comm.comm, "renamed"), 0);
	CHECK_EQUAL(record.header.misc & TALLY_MISC_COMM_EXEC, 0);
	return 0;
}

static int comm_is_padded_to_words(struct surface *surface)
{
	static const struct {
		const char *comm;
		unsigned words;
	} names[] = { { "abcdefg", 1 }, { "abcdefgh", 2 }, { "abcdefghijklmno", 2 } };
	struct ring ring;
	struct tally_record record;
	SIDEBAND(&ring, TALLY_ATTR_COMM);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CALL(set_comm, names[i].comm);
		CHECK_FOUND(&ring, TALLY_RECORD_COMM, &record);
		CHECK_EQUAL(strcmp(record.comm.comm, names[i].comm), 0);
		CHECK_EQUAL(record.header.size, 8 + 8 + 8 * names[i].words + 6 * 8);
	}
	return 0;
}

static void become_another_program(struct surface *surface)
{
	CALL(exec, "tally-exec", exits_at_once, "", 1);
}

/* Does not use ring_child_go(): a task that executes another program never posts `done`. */
static int comm_of_an_exec_is_marked(struct surface *surface)
{
	struct tally_attr attr = ring_sideband_attr(TALLY_ATTR_COMM | TALLY_ATTR_COMM_EXEC);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, become_another_program);
	struct ring ring;
	struct tally_record record;
	attr.flags &= ~TALLY_ATTR_DISABLED;
	CHECK(child);
	CHECK_RING(&ring, surface, &attr, child->task, -1, 16);
	CALL(post, &child->go, 1);
	CHECK_EQUAL(CALL(wait, child->task), 0);
	CHECK_FOUND(&ring, TALLY_RECORD_COMM, &record);
	CHECK_EQUAL(strcmp(record.comm.comm, "tally-exec"), 0);
	CHECK_EQUAL(record.comm.tid, child->task);
	CHECK_EQUAL(record.header.misc & TALLY_MISC_COMM_EXEC, TALLY_MISC_COMM_EXEC);
	return 0;
}

/* --- FORK, EXIT, READ ----------------------------------------------------- */

static int fork_record(struct surface *surface, uint64_t flags, enum surface_task_kind kind,
		       pid_t *task, struct tally_record *record)
{
	struct ring ring;
	SIDEBAND(&ring, flags);
	uint64_t before = CALL(now);
	*task = CALL(spawn, kind, exits_at_once, NULL);
	CHECK(*task > 0);
	CHECK_EQUAL(CALL(wait, *task), 0);
	CHECK_FOUND(&ring, TALLY_RECORD_FORK, record);
	CHECK_BETWEEN(record->task.time, before, CALL(now));
	CHECK_EQUAL(record->task.tid, *task);
	CHECK_EQUAL(record->task.parent_pid, CALL(process));
	CHECK_EQUAL(record->task.parent_tid, CALL(self));
	return 0;
}

static int fork_of_a_process(struct surface *surface)
{
	struct tally_record record;
	pid_t task;
	int failed = fork_record(surface, TALLY_ATTR_TASK, SURFACE_PROCESS, &task, &record);
	if (failed)
		return failed;
	CHECK_EQUAL(record.task.pid, task);
	return 0;
}

static int fork_of_a_thread(struct surface *surface)
{
	struct tally_record record;
	pid_t task;
	int failed = fork_record(surface, TALLY_ATTR_TASK, SURFACE_THREAD, &task, &record);
	if (failed)
		return failed;
	CHECK_EQUAL(record.task.pid, CALL(process));
	return 0;
}

/* map_code() unmaps its page again. */
static int unmapping_tells_nothing(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	unsigned seen = 0;
	SIDEBAND(&ring, TALLY_ATTR_MMAP | TALLY_ATTR_MMAP_DATA | TALLY_ATTR_MMAP2 |
				TALLY_ATTR_COMM | TALLY_ATTR_TASK);
	CALL(map_code, true);
	for (; ring_next(&ring, &record) == 1; seen++)
		CHECK_EQUAL(record.header.type, TALLY_RECORD_MMAP2);
	CHECK_EQUAL(seen, 1);
	return 0;
}
static int fork_comes_with_comm_or_mmap(struct surface *surface)
{
	static const uint64_t flags[] = { TALLY_ATTR_COMM, TALLY_ATTR_MMAP, TALLY_ATTR_MMAP_DATA };
	for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct tally_record record;
		pid_t task;
		int failed = fork_record(surface, flags[i], SURFACE_PROCESS, &task, &record);
		if (failed)
			return failed;
	}
	return 0;
}

static int exit_tells_who_went(struct surface *surface)
{
	struct tally_attr attr = ring_sideband_attr(TALLY_ATTR_TASK);
	struct ring_child *child = ring_child_new(surface, SURFACE_PROCESS, NULL);
	struct ring ring;
	struct tally_record record;
	attr.flags &= ~TALLY_ATTR_DISABLED;
	CHECK(child);
	CHECK_RING(&ring, surface, &attr, child->task, -1, 1);
	uint64_t before = CALL(now);
	CHECK_EQUAL(ring_child_leave(surface, child), 0);
	CHECK_FOUND(&ring, TALLY_RECORD_EXIT, &record);
	CHECK_EQUAL(record.task.pid, child->task);
	CHECK_EQUAL(record.task.tid, child->task);
	CHECK_EQUAL(record.task.parent_pid, CALL(process));
	CHECK_BETWEEN(record.task.time, before, CALL(now));
	return 0;
}

static int no_flags_no_records(struct surface *surface)
{
	struct ring ring;
	SIDEBAND(&ring, 0);
	CALL(map_code, true);
	CALL(set_comm, "unheard");
	pid_t task = CALL(spawn, SURFACE_PROCESS, exits_at_once, NULL);
	CALL(wait, task);
	CALL(sleep, 100000);
	CHECK_EQUAL(ring_count(&ring, 0), 0);
	return 0;
}

static int disabled_event_writes_no_records(struct surface *surface)
{
	struct ring ring;
	SIDEBAND(&ring, TALLY_ATTR_COMM);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0), 0);
	CALL(set_comm, "unheard");
	CHECK_EQUAL(ring_count(&ring, 0), 0);
	return 0;
}

static void fault_seven(struct surface *surface)
{
	CALL(fault, 7);
}

static int read_records(struct surface *surface, uint64_t flags, struct ring *ring,
			struct ring_child **child)
{
	struct tally_attr attr = ring_faults_attr(0, TALLY_SAMPLE_TID | TALLY_SAMPLE_ID);
	int cpu = CALL(this_cpu);
	attr.flags |= TALLY_ATTR_INHERIT | flags;
	attr.flags &= ~TALLY_ATTR_DISABLED;
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_ID;
	CHECK_EQUAL(CALL(pin, cpu), 0);
	CHECK(ring_keep_contexts_apart(surface) >= 0);
	CHECK_RING(ring, surface, &attr, 0, cpu, 1);
	*child = ring_child_new(surface, SURFACE_PROCESS, fault_seven);
	CHECK(*child);
	CHECK_EQUAL(ring_child_leave(surface, *child), 0);
	return 0;
}

static int read_is_the_childs_at_its_exit(struct surface *surface)
{
	struct ring ring;
	struct ring_child *child;
	struct tally_record record;
	int failed = read_records(surface, TALLY_ATTR_INHERIT_STAT, &ring, &child);
	if (failed)
		return failed;
	int found = ring_find(&ring, TALLY_RECORD_READ, &record);
	if (found == 0 && ring_kernel_is_old(surface))
		/* 6.1 writes no record: the context has lost its task by then */
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL;
	CHECK_EQUAL(found, 1);
	CHECK_EQUAL(record.read.pid, child->task);
	CHECK_EQUAL(record.read.tid, child->task);
	CHECK_BETWEEN(record.read.values.values[0], 7, ring_event_count(surface, ring.fd));
	CHECK(record.read.values.time_enabled > 0);
	CHECK_EQUAL(record.header.size, 8 + 8 + 3 * 8);
	CHECK_EQUAL(ring.bytes[4], ring_event_id(surface, ring.fd));
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_READ), 0);
	return 0;
}

static int no_read_without_inherit_stat(struct surface *surface)
{
	struct ring ring;
	struct ring_child *child;
	int failed = read_records(surface, 0, &ring, &child);
	if (failed)
		return failed;
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_READ), 0);
	return 0;
}

/* --- SWITCH --------------------------------------------------------------- */

static int switch_out_and_in(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	SIDEBAND(&ring, TALLY_ATTR_CONTEXT_SWITCH);
	CALL(sleep, 100000);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	bool out = false, slept = false;
	int got;
	while ((got = ring_next(&ring, &record)) == 1) {
		CHECK_EQUAL(record.header.type, TALLY_RECORD_SWITCH);
		CHECK_EQUAL(record.header.size, 8 + 6 * 8);
		CHECK_EQUAL(!!(record.header.misc & TALLY_MISC_SWITCH_OUT), !out);
		out = !out;
		slept |= out && !(record.header.misc & TALLY_MISC_SWITCH_OUT_PREEMPT);
	}
	CHECK_EQUAL(got, 0);
	CHECK_EQUAL(out, false);
	CHECK_EQUAL(slept, true);
	return 0;
}

static int preempted_switch_out_is_marked(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	volatile uint32_t *stop = CALL(shared, sizeof(*stop));
	bool preempted = false;
	CHECK_EQUAL(CALL(pin, CALL(this_cpu)), 0);
	pid_t rival = CALL(spawn, SURFACE_PROCESS, ring_burns_until_told, (void *)stop);
	CHECK(rival > 0);
	SIDEBAND(&ring, TALLY_ATTR_CONTEXT_SWITCH);
	for (unsigned i = 0; i < 1000 && !preempted; i++) {
		CALL(burn, 5 * MILLISECOND);
		while (ring_next(&ring, &record) == 1)
			preempted |= record.header.misc ==
				     (TALLY_MISC_SWITCH_OUT | TALLY_MISC_SWITCH_OUT_PREEMPT);
	}
	CALL(post, stop, 1);
	CHECK_EQUAL(CALL(wait, rival), 0);
	CHECK_EQUAL(preempted, true);
	return 0;
}

static int switch_cpu_wide_names_the_other_task(struct surface *surface)
{
	struct tally_attr attr = ring_sideband_attr(TALLY_ATTR_CONTEXT_SWITCH);
	struct ring ring;
	struct tally_record record;
	bool left = false, came = false;
	int cpu = CALL(this_cpu);
	pid_t self = CALL(self);
	CHECK_EQUAL(CALL(pin, cpu), 0);
	CHECK_RING(&ring, surface, &attr, -1, cpu, 64);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(sleep, 100000);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	while (ring_next(&ring, &record) == 1) {
		CHECK_EQUAL(record.header.type, TALLY_RECORD_SWITCH_CPU_WIDE);
		bool out = record.header.misc & TALLY_MISC_SWITCH_OUT;
		pid_t other = (pid_t)record.switched.next_prev_tid;
		if ((pid_t)record.sample_id.tid != self)
			continue; /* idle tasks' records are not always written */
		CHECK(other != self);
		left |= out;
		came |= !out;
	}
	CHECK_EQUAL(left, true);
	CHECK_EQUAL(came, true);
	return 0;
}

/* --- Of the kernel's other parts ------------------------------------------ */

static int namespaces_of_a_child_are_its_own(struct surface *surface)
{
	static const char *const names[] = { "net", "uts", "ipc", "pid", "user", "mnt", "cgroup" };
	enum { NAMES = sizeof(names) / sizeof(names[0]) };
	struct ring ring;
	struct tally_record record;
	SIDEBAND(&ring, TALLY_ATTR_NAMESPACES);
	pid_t task = CALL(spawn, SURFACE_PROCESS, exits_at_once, NULL);
	CHECK(task > 0);
	CHECK_EQUAL(CALL(wait, task), 0);
	CHECK_FOUND(&ring, TALLY_RECORD_NAMESPACES, &record);
	CHECK_EQUAL(record.namespaces.pid, task);
	CHECK_EQUAL(record.namespaces.tid, task);
	CHECK_EQUAL(record.namespaces.count, NAMES);
	for (unsigned i = 0; i < NAMES && surface->features & SURFACE_VFS; i++) {
		char path[64];
		struct stat status;
		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		if (stat(path, &status) < 0)
			continue; /* this kernel lacks this kind of namespace */
		CHECK_EQUAL(record.namespaces.dev_inode[2 * i + 1], status.st_ino);
	}
	return 0;
}

static int namespaces_body(struct surface *surface, void *argument)
{
	struct tally_attr attr = ring_sideband_attr(TALLY_ATTR_NAMESPACES);
	(void)argument;
	if (CALL(drop_privileges))
		return 2;
	return CALL(open, &attr, 0, -1, -1, 0) == -EACCES ? 0 : 1;
}

static int namespaces_need_privilege(struct surface *surface)
{
	pid_t task = CALL(spawn, SURFACE_PROCESS, namespaces_body, NULL);
	CHECK(task > 0);
	CHECK_EQUAL(CALL(wait, task), 0);
	return 0;
}

static int cgroup_tells_of_a_new_group(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	uint64_t id = 0;
	char name[64];
	snprintf(name, sizeof(name), "tally-conformance-%d", (int)CALL(process));
	SIDEBAND(&ring, TALLY_ATTR_CGROUP);
	int made = CALL(make_cgroup, name, &id);
	if (made < 0)
		return CLAUSE_NOT_APPLICABLE +
		       (made == -EOPNOTSUPP ? NA_NEEDS_VFS : NA_NOT_PRIVILEGED);
	CHECK_FOUND(&ring, TALLY_RECORD_CGROUP, &record);
	CHECK_EQUAL(record.cgroup.id, id);
	CHECK(strlen(record.cgroup.path) > strlen(name));
	CHECK_EQUAL(strcmp(record.cgroup.path + strlen(record.cgroup.path) - strlen(name), name),
		    0);
	return 0;
}

static int ksymbol_tells_of_new_code(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	struct surface_ksymbol symbol = { 0 };
	SIDEBAND(&ring, TALLY_ATTR_KSYMBOL);
	if (CALL(make_ksymbol, &symbol) < 0 || ring_find(&ring, TALLY_RECORD_KSYMBOL, &record) == 0)
		/* the program is interpreted: no new code was made */
		return CLAUSE_NOT_APPLICABLE + NA_NEEDS_BPF;
	CHECK_EQUAL(record.ksymbol.type, symbol.type);
	CHECK_EQUAL(record.ksymbol.flags, 0);
	CHECK(record.ksymbol.address >> 63);
	CHECK(!symbol.address || symbol.address == record.ksymbol.address);
	CHECK(record.ksymbol.length > 0 &&
	      (!symbol.length || symbol.length == record.ksymbol.length));
	CHECK_EQUAL(strncmp(record.ksymbol.name, symbol.name_start, strlen(symbol.name_start)), 0);
	CHECK_EQUAL(CALL(make_ksymbol, NULL), 0);
	symbol.address = record.ksymbol.address;
	CHECK_FOUND(&ring, TALLY_RECORD_KSYMBOL, &record);
	CHECK_EQUAL(record.ksymbol.flags, 1); /* UNREGISTER */
	CHECK_EQUAL(record.ksymbol.address, symbol.address);
	return 0;
}

static int text_poke_has_the_bytes(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	struct surface_text_poke poke = { 0 };
	SIDEBAND(&ring, TALLY_ATTR_TEXT_POKE);
	if (CALL(poke_text, &poke) < 0 || ring_find(&ring, TALLY_RECORD_TEXT_POKE, &record) == 0)
		return CLAUSE_NOT_APPLICABLE + NA_NEEDS_TEXT_PATCHING;
	unsigned old = record.text_poke.old_length, new = record.text_poke.new_length;
	CHECK_EQUAL(record.header.misc & TALLY_MISC_CPUMODE_MASK, TALLY_MISC_KERNEL);
	CHECK(record.text_poke.address >> 63);
	CHECK(old > 0 && new > 0);
	CHECK(memcmp(record.text_poke.bytes, record.text_poke.bytes + old, old < new ? old : new));
	if (!poke.address)
		return 0; /* a surface that does not know the patch can't check more */
	CHECK_EQUAL(record.text_poke.address, poke.address);
	CHECK_EQUAL(old, poke.old_length);
	CHECK_EQUAL(new, poke.new_length);
	CHECK_EQUAL(memcmp(record.text_poke.bytes, poke.old_bytes, old), 0);
	CHECK_EQUAL(memcmp(record.text_poke.bytes + old, poke.new_bytes, new), 0);
	return 0;
}

static int bpf_event_tells_of_a_program(struct surface *surface)
{
	struct ring ring;
	struct tally_record record;
	SIDEBAND(&ring, TALLY_ATTR_BPF_EVENT);
	int program = CALL(bpf_program, true);
	CHECK(program >= 0);
	CHECK_FOUND(&ring, TALLY_RECORD_BPF_EVENT, &record);
	CHECK_EQUAL(record.bpf.type, 1); /* PROG_LOAD */
	CHECK(record.bpf.id != 0);
	return 0;
}

/* --- misc ----------------------------------------------------------------- */

static int sample_of_user_mode(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.misc, TALLY_MISC_USER);
	return 0;
}

static int sample_of_kernel_mode(struct surface *surface)
{
	struct tally_attr attr = ring_switch_attr(surface, 1, TALLY_SAMPLE_IP);
	struct ring ring;
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_switch(surface, ring.fd);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.misc, TALLY_MISC_KERNEL);
	return 0;
}

static int software_ips_are_never_exact(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	struct tally_record record;
	attr.flags |= 2ull << TALLY_ATTR_PRECISE_IP_SHIFT;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
	CHECK_EQUAL(record.header.misc & TALLY_MISC_EXACT_IP, 0);
	return 0;
}

static int lost_has_id_and_number(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 300);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 255);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_FOUND(&ring, TALLY_RECORD_LOST, &record);
	CHECK_EQUAL(record.header.size, 24);
	CHECK_EQUAL(record.lost.id, ring_event_id(surface, ring.fd));
	CHECK_EQUAL(record.lost.lost, 45);
	return 0;
}

const struct clause clauses_c_records[] = {
	{ "C4.mmap", "MMAP tells who mapped which file's code where.", 0, mmap_tells_of_code },
	{ "C4.mmap_data", "Maps of data come with mmap_data, marked MMAP_DATA.", 0,
	  mmap_tells_of_data_by_mmap_data },
	{ "C4.mmap_without_mmap_data", "mmap alone tells of code alone.", 0,
	  mmap_without_mmap_data_is_code_alone },
	{ "C4.mmap_data_alone", "mmap_data alone tells of data alone.", 0,
	  mmap_data_alone_is_data_alone },
	{ "C4.mmap2", "MMAP2 has protection and flags.", 0, mmap2_has_protection_and_flags },
	{ "C4.mmap2_instead_of_mmap", "With mmap2 there are no MMAP records.", 0,
	  mmap2_takes_the_place_of_mmap },
	{ "C4.unmapping_tells_nothing", "A mapping that goes leaves no record.", 0,
	  unmapping_tells_nothing },
	{ "C4.mmap2_inode", "MMAP2 has the file's inode.", 0, mmap2_has_the_files_inode },
	{ "C4.mmap_build_id",
	  "With build_id MMAP2 has it in the inode's place, marked MMAP_BUILD_ID.", 0,
	  mmap2_has_the_build_id },
	{ "C4.comm", "COMM tells a task's new name.", 0, comm_tells_the_new_name },
	{ "C4.comm_padding", "COMM's name is padded with zeros to words.", 0,
	  comm_is_padded_to_words },
	{ "C4.comm_exec", "COMM of an exec is marked COMM_EXEC.", 0, comm_of_an_exec_is_marked },
	{ "C4.fork_of_a_process", "FORK tells a new process and its parent.", 0,
	  fork_of_a_process },
	{ "C4.fork_of_a_thread", "FORK of a thread has the process's pid.", 0, fork_of_a_thread },
	{ "C4.fork_with_comm_or_mmap", "FORK comes with comm, mmap, mmap_data as with task.", 0,
	  fork_comes_with_comm_or_mmap },
	{ "C4.exit", "EXIT tells who went, when, whose child.", 0, exit_tells_who_went },
	{ "C4.no_flags_no_records", "Records that aren't asked for don't come.", 0,
	  no_flags_no_records },
	{ "C4.disabled_no_records", "A disabled event writes no records.", 0,
	  disabled_event_writes_no_records },
	{ "C4.read", "READ tells a child's values at its exit.", 0,
	  read_is_the_childs_at_its_exit },
	{ "C4.read_wants_inherit_stat", "Without inherit_stat there is no READ.", 0,
	  no_read_without_inherit_stat },
	{ "C4.lost", "LOST has the event's id and the number.", 0, lost_has_id_and_number },
	{ "C4.switch", "SWITCH comes at switching out, marked SWITCH_OUT, and at switching in.", 0,
	  switch_out_and_in },
	{ "C4.switch_out_preempt", "A task that could have run on is marked SWITCH_OUT_PREEMPT.", 0,
	  preempted_switch_out_is_marked },
	{ "C4.switch_cpu_wide", "SWITCH_CPU_WIDE names the task that comes or went.",
	  SURFACE_PRIVILEGED, switch_cpu_wide_names_the_other_task },
	{ "C4.namespaces", "NAMESPACES of a new task lists device and inode of each kind.",
	  SURFACE_PRIVILEGED, namespaces_of_a_child_are_its_own },
	{ "C4.namespaces_need_privilege", "NAMESPACES without privilege: EACCES.", 0,
	  namespaces_need_privilege },
	{ "C4.cgroup", "CGROUP tells id and path of a new group.", SURFACE_PRIVILEGED,
	  cgroup_tells_of_a_new_group },
	{ "C4.ksymbol", "KSYMBOL tells where code was made, and when it goes.", SURFACE_PRIVILEGED,
	  ksymbol_tells_of_new_code },
	{ "C4.text_poke", "TEXT_POKE has a place's old and new bytes.", SURFACE_PRIVILEGED,
	  text_poke_has_the_bytes },
	{ "C4.bpf_event", "BPF_EVENT tells that a program was loaded.",
	  SURFACE_BPF | SURFACE_PRIVILEGED, bpf_event_tells_of_a_program },
	{ "C4.misc_user", "A sample of user mode has cpumode USER.", 0, sample_of_user_mode },
	{ "C4.misc_kernel", "A sample of kernel mode has cpumode KERNEL.",
	  SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED, sample_of_kernel_mode },
	{ "C4.misc_exact_ip", "EXACT_IP is never set for software events, precise_ip or not.", 0,
	  software_ips_are_never_exact },
	{ NULL, NULL, 0, NULL },
};
