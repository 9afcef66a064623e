/* libtraceevent, for print formats that our compiler doesn't know.  It is loaded on demand, so it
 * is no dependency.
 *
 * The library trusts formats and events too much for recordings of other people: a missing field is
 * a NULL pointer, and a length in an event is not checked.  So formats that could run into this are
 * not given to it, and events are copied to a buffer that is larger than the largest 16-bit offset
 * and length together.
 */
#include "tracepoint/print_program.h"

#include "base/loaded.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_ROOM = 3 * 65536 };

/* The parts of libtraceevent's ABI (libtraceevent.so.1) that this file uses. */
struct tep_handle;
struct tep_event;
struct library_record {
	unsigned long long ts, offset;
	long long missed_events;
	int record_size, size;
	void *data;
	int cpu, ref_count, locked;
	void *private;
	void *spare[4];
};
struct library_sequence {
	char *buffer;
	unsigned buffer_size, length, read_position;
	int state;
	void *spare[4];
};

struct tally_print_library {
	void *handle;
	struct tep_handle *tep;
	uint8_t *room;
	struct tep_handle *(*tep_alloc)(void);
	void (*tep_free)(struct tep_handle *);
	int (*tep_parse_event)(struct tep_handle *, const char *, unsigned long, const char *);
	void (*tep_set_long_size)(struct tep_handle *, int);
	void (*tep_set_file_bigendian)(struct tep_handle *, int);
	void (*tep_set_loglevel)(int);
	struct tep_event *(*tep_find_event)(struct tep_handle *, int);
	void (*tep_print_event)(struct tep_handle *, struct library_sequence *,
				struct library_record *, const char *, ...);
	void (*trace_seq_init)(struct library_sequence *);
	void (*trace_seq_destroy)(struct library_sequence *);
};

/* True if every REC->name is a field, and no length or divisor comes from the event. */
static bool is_safe(const struct tally_tracepoint *tracepoint)
{
	const char *format = tracepoint->print_format;
	if (strstr(format, "__print_hex") || strstr(format, "__print_array") ||
	    strstr(format, "%*") || strstr(format, ".*") || strpbrk(format, "/{"))
		return false;
	for (const char *at = format; (at = strstr(at, "->")) != NULL;) {
		char name[128];
		size_t length = 0;
		for (at += 2; isspace((unsigned char)*at); at++)
			;
		while ((isalnum((unsigned char)*at) || *at == '_') && length < sizeof(name) - 1)
			name[length++] = *at++;
		name[length] = '\0';
		if (!tally_tracepoint_field(tracepoint, name))
			return false;
	}
	/* Inside the format string a % begins a conversion; behind it, % divides. */
	const char *arguments = strstr(format, "\",");
	return !(arguments && strchr(arguments, '%'));
}

static bool find_functions(struct tally_print_library *library)
{
	struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{ "tep_alloc", &library->tep_alloc },
		{ "tep_free", &library->tep_free },
		{ "tep_parse_event", &library->tep_parse_event },
		{ "tep_set_long_size", &library->tep_set_long_size },
		{ "tep_set_file_bigendian", &library->tep_set_file_bigendian },
		{ "tep_set_loglevel", &library->tep_set_loglevel },
		{ "tep_find_event", &library->tep_find_event },
		{ "tep_print_event", &library->tep_print_event },
		{ "trace_seq_init", &library->trace_seq_init },
		{ "trace_seq_destroy", &library->trace_seq_destroy },
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!tally_loaded_find(library->handle, wanted[i].name, wanted[i].slot))
			return false;
	return true;
}

static bool parse_with(struct tally_print_library *library,
		       const struct tally_tracepoint *tracepoint, const char *system)
{
	bool big_endian = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != tracepoint->swap;
	library->tep_set_loglevel(0); /* a library must not print warnings */
	library->tep = library->tep_alloc();
	if (!library->tep)
		return false;
	library->tep_set_long_size(library->tep, (int)tracepoint->long_bytes);
	library->tep_set_file_bigendian(library->tep, big_endian);
	library->tep_parse_event(library->tep, tracepoint->text, tracepoint->text_length, system);
	return library->tep_find_event(library->tep, (int)tracepoint->id) != NULL;
}

struct tally_print_library *tally_print_library_open(const struct tally_tracepoint *tracepoint,
						     const char *system)
{
	if (!is_safe(tracepoint))
		return NULL;
	struct tally_print_library *library = calloc(1, sizeof(*library));
	if (!library)
		return NULL;
	library->handle = tally_loaded_open("libtraceevent.so.1");
	library->room = calloc(1, EVENT_ROOM);
	if (library->handle && library->room && find_functions(library) &&
	    parse_with(library, tracepoint, system))
		return library;
	tally_print_library_close(library);
	return NULL;
}

void tally_print_library_close(struct tally_print_library *library)
{
	if (!library)
		return;
	if (library->tep)
		library->tep_free(library->tep);
	free(library->room);
	if (library->handle)
		dlclose(library->handle);
	free(library);
}

bool tally_print_library_event(struct tally_print_library *library, const void *raw, size_t size,
			       struct tally_buffer *out)
{
	if (size > 65535)
		return false;
	memset(library->room, 0, EVENT_ROOM);
	memcpy(library->room, raw, size);
	struct library_record record = { .size = (int)size,
					 .record_size = (int)size,
					 .data = library->room };
	struct library_sequence sequence = { 0 };
	library->trace_seq_init(&sequence);
	library->tep_print_event(library->tep, &sequence, &record, "%s", "INFO");
	if (sequence.buffer && sequence.length <= sequence.buffer_size)
		tally_buffer_append(out, sequence.buffer, sequence.length);
	library->trace_seq_destroy(&sequence);
	return true;
}
