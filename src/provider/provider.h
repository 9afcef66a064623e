/* Where events come from: one interface over the kernel, scripted playback (tests) and the engine,
 * in its hosts.
 *
 * Handles, not descriptors: small non-negative numbers of the provider's.  The calls mirror
 * perf_event_open(2) and what one may do with its descriptor.
 */
#ifndef TALLY_PROVIDER_PROVIDER_H
#define TALLY_PROVIDER_PROVIDER_H

#include "abi/attr.h"
#include "abi/record.h"
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tally_catalogue;

/* ioctl requests, as linux/perf_event.h numbers them; the argument is a value or a pointer. */
enum tally_ioctl {
	TALLY_IOCTL_ENABLE,
	TALLY_IOCTL_DISABLE,
	TALLY_IOCTL_REFRESH,
	TALLY_IOCTL_RESET,
	TALLY_IOCTL_PERIOD,     /* const uint64_t * */
	TALLY_IOCTL_SET_OUTPUT, /* handle, or -1 */
	TALLY_IOCTL_SET_FILTER, /* const char * */
	TALLY_IOCTL_ID,         /* uint64_t * */
	TALLY_IOCTL_PAUSE_OUTPUT
};

struct tally_wait_item {
	int handle;
	short revents; /* POLLIN, POLLHUP, POLLERR */
};

struct tally_provider {
	const struct tally_provider_ops *ops;
};

struct tally_provider_ops {
	const char *
		name; /* "kernel", "scripted": printed beside figures that did not come from hardware */

	/* Adds what this provider can count.  NULL: tally_kernel_catalogue() serves
	 * (kernel_catalogue.h). */
	int (*catalogue)(struct tally_provider *provider, struct tally_catalogue *catalogue,
			 struct tally_error *err);

	/* A handle, or -errno as perf_event_open(2).  `group` is a handle or -1. */
	int (*open)(struct tally_provider *provider, const struct tally_attr *attr, pid_t pid,
		    int cpu, int group, unsigned long flags);
	/* Bytes as read(2), or -errno. */
	ssize_t (*read)(struct tally_provider *provider, int handle, void *bytes, size_t size);
	/* `argument`: a pointer, or a number cast to one, as ioctl(2) takes; `whole_group`:
	 * PERF_IOC_FLAG_GROUP. 0 or -errno. */
	int (*ioctl)(struct tally_provider *provider, int handle, enum tally_ioctl request,
		     void *argument, int whole_group);
	/* Maps 1 + `data_pages` pages; NULL with errno set.  `overwrite`: read-only. */
	struct tally_user_page *(*map)(struct tally_provider *provider, int handle,
				       size_t data_pages, int overwrite);
	void (*unmap)(struct tally_provider *provider, struct tally_user_page *page,
		      size_t data_pages);
	/* Waits for data in any of the handles, or for `extra_fd` (-1: none) to be readable: how
	 * many are ready, 0 after the time, -EINTR, … */
	int (*wait)(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		    int extra_fd, int timeout_ms);
	void (*close)(struct tally_provider *provider, int handle);
	void (*release)(struct tally_provider *provider);

	/* The rest is NULL in providers that it doesn't concern. */

	/* Events count none but commands that the provider starts itself, on one CPU, number 0;
	 * their times are no measure of the command's own.  Called before each start, ahead of the
	 * first open(): `path` is the file that execvp(3) would run for `command`; *out gets what
	 * to execute instead, the provider's until the next call. 0 or -errno. */
	int (*command)(struct tally_provider *provider, const char *path, char **command,
		       char ***out, struct tally_error *err);
	/* Moves records from where they are written into the mapped rings, as far as those have
	 * room: bytes, or -errno. */
	ssize_t (*gather)(struct tally_provider *provider);
	/* Why open() gave `code`, in a few words; *hint (may be NULL) gets the way out, or NULL.
	 * Static texts. */
	const char *(*reason)(struct tally_provider *provider, const struct tally_attr *attr,
			      int code, const char **hint);
	/* How far a figure can be trusted: "model".  Static. */
	const char *(*quality)(struct tally_provider *provider, const struct tally_attr *attr);
	/* Why nothing could be counted so far though all events were on; NULL: something could.
	 * Static.  May be NULL. */
	const char *(*uncounted)(struct tally_provider *provider);
	/* What the CPU is on which things were counted, in a line: all of it, or what fits beside
	 * figures. */
	const char *(*machine)(struct tally_provider *provider, bool is_short);
	/* What the user should know once a command has ended (`signal`: what ended it, or 0): how
	 * many lines were put into `notes`, in `arena`. */
	size_t (*notes)(struct tally_provider *provider, int signal, struct tally_arena *arena,
			const char **notes, size_t maximum);
	const char *call_graph; /* how it makes call chains by itself: no stack copies are needed */
	/* of a PMU that is its own, with a number that isn't the machine's */
	const char *pmu_name;
	uint32_t pmu_type;
};

/* The running kernel's perf events.  One per process is enough; it has no state of its own. */
struct tally_provider *tally_provider_kernel(void);

/* Plays back a script: see scripted.h. */
int tally_provider_scripted_new(const char *script_path, struct tally_provider **out,
				struct tally_error *err);

#endif
