/* transcript: runs a fixed script of calls on a surface and prints a line for each: the call, and
 * its result as far as it is determined (errno, sizes, counts of known work, record layouts).
 *
 *     transcript [--surface sim --model arm64]
 *
 * On an arm64 kernel with a PMU and on the simulated machine's arm64 model, the output must be the
 * same.  The script avoids results that a model may choose (times, and which events it has besides
 * cycles and instructions). */
#include "hardware.h"
#include "ring_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define USER_ONLY (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV)
#define TIMES (TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING)

/* "ok", "7", "-EINVAL". */
struct result_text {
	char text[32];
};

static struct result_text result_of(long result)
{
	struct result_text out;
	const char *name = result < 0 ? strerrorname_np((int)-result) : NULL;
	if (name)
		snprintf(out.text, sizeof(out.text), "-%s", name);
	else
		snprintf(out.text, sizeof(out.text), "%ld", result);
	return out;
}

static struct result_text opened_of(int fd)
{
	return fd >= 0 ? (struct result_text){ "opened" } : result_of(fd);
}

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

/* --- opening -------------------------------------------------------------- */

static void try_attr(struct surface *surface, const char *what, const struct tally_attr *attr,
		     pid_t pid, int cpu, int group, unsigned long flags)
{
	int fd = CALL(open, attr, pid, cpu, group, flags);
	say("open %s: %s", what, opened_of(fd).text);
	if (fd >= 0)
		CALL(close, fd);
}

static void open_flags(struct surface *surface)
{
	char what[64];
	for (unsigned event = 0; event < 2; event++)
		for (unsigned bit = 0; bit < 26; bit++) {
			struct tally_attr attr = hardware_event(event, 1ull << bit);
			if (bit == 10)
				attr.sample_period = 1000; /* freq */
			snprintf(what, sizeof(what), "hardware %u, flag %u", event, bit);
			try_attr(surface, what, &attr, 0, -1, -1, 0);
		}
}

static void open_targets(struct surface *surface)
{
	static const struct { pid_t pid; int cpu, group; unsigned long flags;
	} targets[] = {
		{ 0, -1, -1, 0 },        { 0, 0, -1, 0 },       { -1, 0, -1, 0 },
		{ -1, -1, -1, 0 },       { 0, 1000000, -1, 0 }, { 0, -2, -1, 0 },
		{ 0x3fffff, -1, -1, 0 }, { 0, -1, 1000, 0 },    { 0, -1, -1, 16 },
		{ 0, -1, -1, 8 },        { 0, -1, -1, 1 },      { -1, -1, -1, 4 },
	};
	char what[64];
	for (unsigned type = 0; type < 2; type++)
		for (unsigned i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
			struct tally_attr attr = hardware_event(TALLY_HW_CPU_CYCLES, USER_ONLY);
			attr.type = type;
			snprintf(what, sizeof(what), "type %u, target %u", type, i);
			try_attr(surface, what, &attr, targets[i].pid, targets[i].cpu,
				 targets[i].group, targets[i].flags);
		}
}

static void open_events(struct surface *surface)
{
	static const struct { uint32_t type; uint64_t config;
	} events[] = {
		{ 0, TALLY_HW_REF_CPU_CYCLES },
		{ 0, TALLY_HW_MAX },
		{ 1, TALLY_SW_MAX },
		{ 1, TALLY_SW_DUMMY },
		{ 2, 0xffffff },
		{ 3, TALLY_CACHE_MAX },
		{ 3, TALLY_CACHE_OP_MAX << 8 },
		{ 3, TALLY_CACHE_RESULT_MAX << 16 },
		{ 3, TALLY_CACHE_NODE },
		{ 4, 0x11 },
		{ 4, 0x08 },
		{ 0x7ffffff0, 0 },
	};
	static const uint64_t config1[] = { 0, ARM_LONG, ARM_USER_ACCESS,
					    ARM_LONG | ARM_USER_ACCESS };
	char what[64];
	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct tally_attr attr = hardware_event(0, USER_ONLY);
		attr.type = events[i].type;
		attr.config = events[i].config;
		snprintf(what, sizeof(what), "type %u, config 0x%llx", attr.type,
			 (unsigned long long)attr.config);
		try_attr(surface, what, &attr, 0, -1, -1, 0);
	}
	for (unsigned access = 0; access < 2; access++) {
		say("perf_user_access %u: %s", access,
		    result_of(CALL(set_sysctl, "perf_user_access", access)).text);
		for (unsigned event = 0; event < 2; event++)
			for (unsigned i = 0; i < 4; i++) {
				struct tally_attr attr = hardware_event(event, USER_ONLY);
				attr.config1 = config1[i];
				snprintf(what, sizeof(what), "hardware %u, config1 %u", event, i);
				try_attr(surface, what, &attr, 0, -1, -1, 0);
				try_attr(surface, what, &attr, -1, 0, -1, 0);
			}
	}
}

static void open_samples(struct surface *surface)
{
	char what[64];
	for (unsigned bit = 0; bit < 26; bit++) {
		struct tally_attr attr = hardware_event(TALLY_HW_CPU_CYCLES, USER_ONLY);
		attr.sample_period = 1000000;
		attr.sample_type = 1ull << bit;
		snprintf(what, sizeof(what), "cycles, sample_type %u", bit);
		if (bit != 11 && bit != 20) /* branch stacks and AUX depend on the PMU */
			try_attr(surface, what, &attr, 0, -1, -1, 0);
	}
	for (unsigned frequency = 0; frequency < 4; frequency++) {
		static const uint64_t periods[] = { 0, 1, 1ull << 62, 1ull << 63 };
		struct tally_attr attr = hardware_event(TALLY_HW_CPU_CYCLES, USER_ONLY);
		attr.sample_period = periods[frequency];
		snprintf(what, sizeof(what), "cycles, period 0x%llx",
			 (unsigned long long)attr.sample_period);
		try_attr(surface, what, &attr, 0, -1, -1, 0);
	}
}

/* --- counting ------------------------------------------------------------- */

static void read_formats(struct surface *surface)
{
	for (unsigned format = 0; format < 32; format++) {
		struct tally_attr attr = hardware_event(TALLY_HW_INSTRUCTIONS, USER_ONLY);
		uint64_t words[16];
		attr.read_format = format;
		int leader = CALL(open, &attr, 0, -1, -1, 0),
		    member = CALL(open, &attr, 0, -1, leader, 0);
		ssize_t size = CALL(read, leader, words, sizeof(words));
		long first = size > 0 && format & TALLY_FORMAT_GROUP ? (long)words[0] : 1;
		ssize_t less = CALL(read, leader, words, (size_t)size - 8),
			none = CALL(read, leader, words, 0);
		say("read_format %u: %s, a word less %s, none %s, members %ld", format,
		    result_of(size).text, result_of(less).text, result_of(none).text, first);
		CALL(close, member);
		CALL(close, leader);
	}
}

static void count_loops(struct surface *surface)
{
	int fd = hardware_open(surface, TALLY_HW_INSTRUCTIONS, USER_ONLY | TALLY_ATTR_DISABLED, -1);
	uint64_t first = 0;
	for (uint64_t n = 1000; n <= 16000; n *= 2) {
		struct hardware_values values = { 0 };
		CALL(ioctl, fd, TALLY_IOC_RESET, 0);
		CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
		CALL(loop, n);
		CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
		int result = hardware_read(surface, fd, &values);
		first = first ? first : values.value - 2 * n;
		say("loop of %llu: %s, %lld instructions more", (unsigned long long)n,
		    result_of(result).text, (long long)(values.value - first));
	}
	CALL(close, fd);
}

static void fill_groups(struct surface *surface)
{
	for (unsigned event = 0; event < 2; event++) {
		int fds[64], result = 0;
		unsigned count = 0;
		while (count < 64 && (result = fds[count] = hardware_open(
					      surface, event, USER_ONLY, count ? fds[0] : -1)) >= 0)
			count++;
		say("group of hardware %u: %u members, then %s", event, count,
		    result_of(result).text);
		struct hardware_values values;
		CALL(loop, 1000);
		for (unsigned i = 0; i < count; i++) {
			result = hardware_read(surface, fds[i], &values);
			say("  member %u: %s, %s", i, result_of(result).text,
			    values.time_running == values.time_enabled ? "all the time"
								       : "at times");
		}
		while (count)
			CALL(close, fds[--count]);
	}
}

static void fill_pinned(struct surface *surface)
{
	int fds[10];
	for (unsigned i = 0; i < 10; i++) {
		fds[i] = hardware_open(surface, TALLY_HW_INSTRUCTIONS,
				       USER_ONLY | TALLY_ATTR_PINNED, -1);
		CALL(loop, 1000);
	}
	for (unsigned i = 0; i < 10; i++) {
		struct hardware_values values;
		struct pollfd ready = { .fd = fds[i], .events = POLLIN };
		int polled = CALL(poll, &ready, 1, 0);
		say("pinned %u: read %s, poll %d 0x%x", i,
		    result_of(CALL(read, fds[i], &values, sizeof(values))).text, polled,
		    (unsigned)ready.revents);
	}
	for (unsigned i = 0; i < 10; i++) {
		struct hardware_values values;
		CALL(close, fds[i]);
		long enabled = i < 9 ? CALL(ioctl, fds[9], TALLY_IOC_ENABLE, 0) : -EBADF;
		say("pinned %u closed: ENABLE of the last %s, read %s", i, result_of(enabled).text,
		    result_of(CALL(read, fds[9], &values, sizeof(values))).text);
	}
}

/* --- control -------------------------------------------------------------- */

static void control(struct surface *surface)
{
	static const uint32_t requests[] = { TALLY_IOC_ENABLE,       TALLY_IOC_DISABLE,
					     TALLY_IOC_REFRESH,      TALLY_IOC_RESET,
					     TALLY_IOC_PAUSE_OUTPUT, TALLY_IOC_SET_OUTPUT,
					     TALLY_IOC_SET_BPF,      0x24ff };
	static const enum tally_hw events[] = { TALLY_HW_CPU_CYCLES, TALLY_HW_INSTRUCTIONS };
	for (unsigned event = 0; event < 2; event++) {
		int fd = hardware_open(surface, events[event], USER_ONLY, -1);
		for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
			say("ioctl 0x%x of hardware %u: %s", requests[i], event,
			    result_of(CALL(ioctl, fd, requests[i], (uintptr_t)-1)).text);
			say("ioctl 0x%x of nothing: %s", requests[i],
			    result_of(CALL(ioctl, 1999, requests[i], 0)).text);
		}
		for (unsigned i = 0; i < 3; i++) {
			static const uint64_t periods[] = { 0, 1000, 1ull << 63 };
			say("period %u: %s", i,
			    result_of(CALL(ioctl, fd, TALLY_IOC_PERIOD, (uintptr_t)&periods[i]))
				    .text);
		}
		say("period at a bad pointer: %s",
		    result_of(CALL(ioctl, fd, TALLY_IOC_PERIOD, (uintptr_t)SURFACE_BAD_POINTER))
			    .text);
		say("filter: %s",
		    result_of(CALL(ioctl, fd, TALLY_IOC_SET_FILTER, (uintptr_t) "a == 1")).text);
		CALL(close, fd);
	}
}

static void map_pages(struct surface *surface)
{
	for (unsigned sampling = 0; sampling < 2; sampling++) {
		for (size_t pages = 0; pages < 10; pages++) {
			struct tally_attr attr = hardware_event(TALLY_HW_CPU_CYCLES,
								USER_ONLY | TALLY_ATTR_DISABLED);
			attr.sample_period = sampling ? 1000000 : 0;
			int fd = CALL(open, &attr, 0, -1, -1, 0), error = 0;
			struct tally_user_page *page = CALL(mmap, fd, pages * surface->page_size,
							    PROT_READ | PROT_WRITE, MAP_SHARED, 0,
							    &error);
			say("map %zu pages, sampling %u: %s", pages, sampling,
			    result_of(error).text);
			if (page) {
				say("  version %u %u, lock %% 2 %u, index %u, data %llu %llu, head "
				    "%llu",
				    page->version, page->compat_version, page->lock % 2,
				    page->index, (unsigned long long)page->data_offset,
				    (unsigned long long)page->data_size,
				    (unsigned long long)page->data_head);
				say("  unmap: %s",
				    result_of(CALL(munmap, page, pages * surface->page_size)).text);
			}
			CALL(close, fd);
		}
	}
}

static void read_by_user(struct surface *surface)
{
	static const uint64_t config1[] = { 0, ARM_LONG, ARM_USER_ACCESS,
					    ARM_LONG | ARM_USER_ACCESS };
	for (unsigned event = 0; event < 2; event++) {
		for (unsigned i = 0; i < 4; i++) {
			struct tally_attr attr = hardware_event(event, USER_ONLY);
			struct hardware_values before = { 0 }, after = { 0 };
			uint64_t value = 0;
			attr.config1 = config1[i];
			int fd = CALL(open, &attr, 0, -1, -1, 0);
			struct tally_user_page *page = fd < 0 ? NULL
							      : hardware_user_page(surface, fd);
			if (!page) {
				say("user access, hardware %u, config1 %u: %s", event, i,
				    result_of(fd).text);
				continue;
			}
			hardware_read(surface, fd, &before);
			int result = hardware_user_read(surface, page, &value);
			hardware_read(surface, fd, &after);
			const char *shown = page->index ? "another" : "0";
			if (page->index == 32)
				shown = "32";
			say("user access, hardware %u, config1 %u: index %s, width %u, read %s, %s",
			    event, i, shown, page->index ? page->pmc_width : 0,
			    result_of(result).text,
			    result || (value >= before.value && value <= after.value) ? "right"
										      : "wrong");
			CALL(close, fd);
		}
	}
}

/* --- software events, records --------------------------------------------- */

static void list_records(struct surface *surface, uint64_t sample_type, uint64_t period)
{
	struct tally_attr attr = ring_faults_attr(period, sample_type);
	struct ring ring;
	struct tally_record record;
	int result = ring_open(&ring, surface, &attr, 0, -1, 4);
	if (result >= 0)
		ring_run_faults(surface, ring.fd, 12);
	unsigned count = 0, type = 0, size = 0, mode = 0;
	while (result >= 0 && ring_next(&ring, &record) == 1) {
		count++;
		type = record.header.type;
		size = record.header.size;
		mode = record.header.misc & TALLY_MISC_CPUMODE_MASK;
	}
	say("12 faults, period %llu, sample_type 0x%llx: %s, %u records, the last of type %u, size "
	    "%u, mode %u, count %llu",
	    (unsigned long long)period, (unsigned long long)sample_type, opened_of(result).text,
	    count, type, size, mode,
	    result >= 0 ? (unsigned long long)ring_event_count(surface, ring.fd) : 0);
	if (result >= 0) {
		CALL(munmap, ring.page, ring.map_size);
		CALL(close, ring.fd);
	}
}

static int child_writes(struct surface *surface, void *unused)
{
	(void)unused;
	CALL(touch, TALLY_BREAKPOINT_W, 5);
	return 3;
}

static void software(struct surface *surface)
{
	static const uint64_t types[] = { 0,
					  TALLY_SAMPLE_IP,
					  TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME,
					  TALLY_SAMPLE_ADDR | TALLY_SAMPLE_CPU | TALLY_SAMPLE_ID,
					  TALLY_SAMPLE_PERIOD,
					  TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_STREAM_ID |
						  TALLY_SAMPLE_READ,
					  TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_DATA_SRC };
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (uint64_t period = 1; period <= 4; period += 3)
			list_records(surface, types[i], period);
	for (unsigned inherit = 0; inherit < 2; inherit++) {
		struct tally_attr attr = ring_attr(TALLY_TYPE_BREAKPOINT, 0, 0, 0);
		uint64_t value = 0;
		attr.flags = USER_ONLY | (inherit ? TALLY_ATTR_INHERIT : 0);
		attr.bp_type = TALLY_BREAKPOINT_W;
		attr.config1 = CALL(watched_address, TALLY_BREAKPOINT_W);
		attr.config2 = 4;
		int fd = CALL(open, &attr, 0, -1, -1, 0);
		CALL(touch, TALLY_BREAKPOINT_W, 2);
		pid_t child = CALL(spawn, SURFACE_PROCESS, child_writes, NULL);
		int code = CALL(wait, child);
		ssize_t size = CALL(read, fd, &value, sizeof(value));
		say("breakpoint, inherit %u: %s, child %d, read %s, %llu writes", inherit,
		    opened_of(fd).text, code, result_of(size).text, (unsigned long long)value);
		CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_DISABLE);
		CALL(touch, TALLY_BREAKPOINT_W, 4);
		CALL(prctl, TALLY_PR_TASK_PERF_EVENTS_ENABLE);
		CALL(touch, TALLY_BREAKPOINT_W, 1);
		CALL(read, fd, &value, sizeof(value));
		say("  disabled by prctl meanwhile: %llu writes", (unsigned long long)value);
		int closed = CALL(close, fd);
		say("  close: %s, again: %s", result_of(closed).text,
		    result_of(CALL(close, fd)).text);
	}
}

static int whole_script(struct surface *surface, void *unused)
{
	(void)unused;
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_flags(surface);
	open_targets(surface);
	open_events(surface);
	open_samples(surface);
	read_formats(surface);
	count_loops(surface);
	fill_groups(surface);
	fill_pinned(surface);
	control(surface);
	map_pages(surface);
	read_by_user(surface);
	software(surface);
	say("end");
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	surface_kernel_body(argc, argv);
#ifdef CONFORMANCE_SIM
	if (argc == 5 && !strcmp(argv[1], "--surface") && !strcmp(argv[2], "sim") &&
	    !strcmp(argv[3], "--model")) {
		struct surface *sim = surface_sim(argv[4]);
		int code = sim ? surface_sim_run(sim, whole_script, NULL, 60) : 2;
		surface_sim_free(sim);
		return code;
	}
#endif
	if (argc != 1) {
		fprintf(stderr, "usage: transcript [--surface sim --model MODEL]\n");
		return 2;
	}
	struct surface *kernel = surface_kernel();
	if (!kernel || !(kernel->features & SURFACE_HARDWARE) ||
	    !(kernel->features & SURFACE_PRIVILEGED)) {
		fprintf(stderr, "transcript: cycles and instructions must count, for root\n");
		return 77;
	}
	/* in a guest machine no other user is affected */
	kernel->features |= SURFACE_MAY_SET_SYSCTLS;
	return surface_kernel_run(kernel, whole_script, NULL, 60);
}
