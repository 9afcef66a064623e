/* Sources of events: one interface over the kernel, scripted playback (tests), and the engine in
 * its hosts.
 *
 * Handles are not descriptors, but small non-negative numbers of the provider.  The calls mirror
 * perf_event_open(2) and the operations on its descriptors. */
#ifndef TALLY_PROVIDER_H
#define TALLY_PROVIDER_H

#include "abi/attr.h"
#include "abi/record.h"
#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tally_catalogue;

/* ioctl requests, numbered as in linux/perf_event.h; the argument is a value or a pointer. */
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
	/* "kernel", "scripted": printed beside figures that did not come from hardware */
	const char *name;

	/* Adds the provider's events to a catalogue.  Returns 0 or -errno.  NULL: use
	 * tally_kernel_catalogue() (kernel_catalogue.h). */
	int (*catalogue)(struct tally_provider *provider, struct tally_catalogue *catalogue,
			 struct tally_error *err);

	/* Like perf_event_open(2): returns a handle or -errno.  `group` is a handle or -1. */
	int (*open)(struct tally_provider *provider, const struct tally_attr *attr, pid_t pid,
		    int cpu, int group, unsigned long flags);
	/* Like read(2): returns a number of bytes or -errno. */
	ssize_t (*read)(struct tally_provider *provider, int handle, void *bytes, size_t size);
	/* Like ioctl(2): `argument` is a pointer, or a number cast to one; `whole_group` is
	 * PERF_IOC_FLAG_GROUP.  Returns 0 or -errno. */
	int (*ioctl)(struct tally_provider *provider, int handle, enum tally_ioctl request,
		     void *argument, int whole_group);
	/* Maps 1 + `data_pages` pages.  Returns NULL with errno set if that fails.  `overwrite`:
	 * read-only. */
	struct tally_user_page *(*map)(struct tally_provider *provider, int handle,
				       size_t data_pages, int overwrite);
	void (*unmap)(struct tally_provider *provider, struct tally_user_page *page,
		      size_t data_pages);
	/* Waits until a handle has data, or `extra_fd` (-1: none) is readable.  Returns the number
	 * of those that are ready, 0 after `timeout_ms`, or -errno (-EINTR, …). */
	int (*wait)(struct tally_provider *provider, struct tally_wait_item *items, size_t count,
		    int extra_fd, int timeout_ms);
	void (*close)(struct tally_provider *provider, int handle);
	void (*release)(struct tally_provider *provider);

	/* The members below are NULL in providers that don't need them. */

	/* For providers that only count commands that they start themselves, on one CPU, number 0,
	 * in times that are not the command's own.  Called before each start, ahead of the first
	 * open().  `path` is the file that execvp(3) would run for `command`.  Sets *out to the
	 * command to execute instead, which belongs to the provider and is valid until the next
	 * call.  Returns 0 or -errno. */
	int (*command)(struct tally_provider *provider, const char *path, char **command,
		       char ***out, struct tally_error *err);
	/* Moves records from where they are written to the mapped rings, as far as these have room.
	 * Returns the number of bytes, or -errno. */
	ssize_t (*gather)(struct tally_provider *provider);
	/* Returns a short reason for open()'s error `code`.  Sets *hint (may be NULL) to the way
	 * out, or NULL.  Static texts. */
	const char *(*reason)(struct tally_provider *provider, const struct tally_attr *attr,
			      int code, const char **hint);
	/* Returns how far a figure can be trusted: "model".  Static. */
	const char *(*quality)(struct tally_provider *provider, const struct tally_attr *attr);
	/* Returns the reason why nothing has been counted so far though all events were on; NULL if
	 * something was.  Static.  May be NULL. */
	const char *(*uncounted)(struct tally_provider *provider);
	/* Describes the CPU that counted, in one line: completely, or, with `is_short`, so that it
	 * fits beside figures. */
	const char *(*machine)(struct tally_provider *provider, bool is_short);
	/* Adds notes for the user after a command has ended (`signal`: the signal that ended it, or
	 * 0).  The texts are in `arena`.  Returns the number of notes. */
	size_t (*notes)(struct tally_provider *provider, int signal, struct tally_arena *arena,
			const char **notes, size_t maximum);
	/* describes the call chains that the provider makes itself: no stack copies are needed; or
	 * NULL */
	const char *call_graph;
	/* the provider's own PMU, whose type isn't one of the machine's */
	const char *pmu_name;
	uint32_t pmu_type;
};

/* The running kernel's perf events.  One per process is enough; it has no state of its own. */
struct tally_provider *tally_provider_kernel(void);

/* Makes a provider that plays back a script: see scripted.h.  Returns 0 or -errno. */
int tally_provider_scripted_new(const char *script_path, struct tally_provider **out,
				struct tally_error *err);

#endif
