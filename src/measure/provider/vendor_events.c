/* Calls libpfm4 by pointers to its functions, which each entry point of this file finds first.  The
 * list of all names has one entry for each unit mask of an event. */
#include "provider/provider.h"

#include "base/loaded.h"
#include "base/vector.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>
#include <stdbool.h>
#include <string.h>

/* All functions that are called.  The library has one state per process: it is initialised once,
 * and stays. */
struct library {
	pfm_err_t (*initialize)(void);
	const char *(*strerror)(int);
	pfm_err_t (*get_os_event_encoding)(const char *, int, pfm_os_t, void *);
	pfm_err_t (*get_pmu_info)(pfm_pmu_t, pfm_pmu_info_t *);
	int (*get_event_next)(int);
	pfm_err_t (*get_event_info)(int, pfm_os_t, pfm_event_info_t *);
	pfm_err_t (*get_event_attr_info)(int, int, pfm_os_t, pfm_event_attr_info_t *);
};

static int load(struct library *library, struct tally_error *err)
{
	/* stays open, since pointers lead into its tables */
	void *handle = tally_loaded_open("libpfm.so.4");
	bool found = handle && tally_loaded_find(handle, "pfm_initialize", &library->initialize) &&
		     tally_loaded_find(handle, "pfm_strerror", &library->strerror) &&
		     tally_loaded_find(handle, "pfm_get_os_event_encoding",
				       &library->get_os_event_encoding) &&
		     tally_loaded_find(handle, "pfm_get_pmu_info", &library->get_pmu_info) &&
		     tally_loaded_find(handle, "pfm_get_event_next", &library->get_event_next) &&
		     tally_loaded_find(handle, "pfm_get_event_info", &library->get_event_info) &&
		     tally_loaded_find(handle, "pfm_get_event_attr_info",
				       &library->get_event_attr_info);
	if (!found)
		return tally_loaded_refuse(err, -ELIBACC, "vendors' names of events can't be used",
					   "libpfm.so.4", "libpfm4");
	pfm_err_t code = library->initialize();
	if (code != PFM_SUCCESS && code != PFM_ERR_NOTSUPP)
		return tally_error_set(err, -EIO, "libpfm: %s", library->strerror(code));
	return 0;
}

static void take_attr(const struct perf_event_attr *from, struct tally_attr *to)
{
	to->type = from->type;
	to->config = from->config;
	to->config1 = from->config1;
	to->config2 = from->config2;
	to->flags |= (uint64_t)from->precise_ip << TALLY_ATTR_PRECISE_IP_SHIFT;
	if (from->exclude_user)
		to->flags |= TALLY_ATTR_EXCLUDE_USER;
	if (from->exclude_kernel)
		to->flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	if (from->exclude_hv)
		to->flags |= TALLY_ATTR_EXCLUDE_HV;
}

int tally_vendor_event(const char *text, struct tally_attr *attr, struct tally_error *err)
{
	struct library library;
	struct perf_event_attr encoded = { .size = sizeof(encoded) };
	pfm_perf_encode_arg_t argument = { .attr = &encoded, .size = sizeof(argument) };
	int result = load(&library, err);
	if (result < 0)
		return result;
	pfm_err_t code = library.get_os_event_encoding(text, PFM_PLM0 | PFM_PLM3,
						       PFM_OS_PERF_EVENT_EXT, &argument);
	if (code == PFM_ERR_NOTFOUND || code == PFM_ERR_NOINIT)
		return tally_error_set(err, -ENOENT, "libpfm knows no event '%s' of this CPU",
				       text);
	if (code != PFM_SUCCESS) {
		tally_error_set(err, -EINVAL, "libpfm on '%s': %s", text, library.strerror(code));
		tally_error_hint(err, "'tally list pfm %.*s' lists its masks",
				 (int)strcspn(text, ":."), text);
		return -EINVAL;
	}
	take_attr(&encoded, attr);
	return 0;
}

struct listing {
	const struct library *calls;
	struct tally_arena *arena;
	struct tally_vendor_name *items;
	size_t count, capacity;
};

static int add(struct listing *listing, const char *pmu, const char *event, const char *mask,
	       const char *description)
{
	struct tally_vendor_name name = { .pmu = pmu, .description = description };
	if (mask)
		name.name = tally_arena_printf(listing->arena, "%s:%s", event, mask);
	else
		name.name = tally_arena_string(listing->arena, event);
	if (!name.name)
		return -ENOMEM;
	return tally_vector_push(listing, name);
}

/* Adds an event: by itself, or once for each of its unit masks if it has any, since one must be
 * chosen. */
static int add_event(struct listing *listing, const pfm_pmu_info_t *pmu, int index)
{
	pfm_event_info_t event = { .size = sizeof(event) };
	size_t before = listing->count;
	int result = 0;
	if (listing->calls->get_event_info(index, PFM_OS_PERF_EVENT_EXT, &event) != PFM_SUCCESS)
		return 0;
	for (int i = 0; i < event.nattrs && result >= 0; i++) {
		pfm_event_attr_info_t mask = { .size = sizeof(mask) };
		if (listing->calls->get_event_attr_info(index, i, PFM_OS_PERF_EVENT_EXT, &mask) ==
			    PFM_SUCCESS &&
		    mask.type == PFM_ATTR_UMASK)
			result = add(listing, pmu->name, event.name, mask.name, mask.desc);
	}
	if (result >= 0 && listing->count == before)
		result = add(listing, pmu->name, event.name, NULL, event.desc);
	return result;
}

int tally_vendor_events(struct tally_arena *arena, struct tally_vendor_name **out, size_t *count,
			struct tally_error *err)
{
	struct library library;
	struct listing listing = { .calls = &library, .arena = arena };
	*out = NULL;
	*count = 0;
	int result = load(&library, err);
	for (int i = PFM_PMU_NONE + 1; i < PFM_PMU_MAX && result >= 0; i++) {
		pfm_pmu_info_t pmu = { .size = sizeof(pmu) };
		if (library.get_pmu_info((pfm_pmu_t)i, &pmu) != PFM_SUCCESS || !pmu.is_present)
			continue;
		if (pmu.type ==
		    PFM_PMU_TYPE_OS_GENERIC) /* "perf": the kernel's own names, listed elsewhere */
			continue;
		for (int event = pmu.first_event; event != -1 && result >= 0;
		     event = library.get_event_next(event))
			result = add_event(&listing, &pmu, event);
	}
	if (result >= 0 && listing.count) {
		*out = tally_arena_array(arena, listing.count, sizeof(**out));
		if (*out) {
			memcpy(*out, listing.items, listing.count * sizeof(**out));
			*count = listing.count;
		} else {
			result = -ENOMEM;
		}
	}
	tally_vector_release(&listing);
	return result;
}
