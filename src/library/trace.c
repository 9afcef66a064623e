/* Tracepoints of programs that have no engine of their own: these functions do nothing.  The process
 * provider's object puts its own in place of the first three (hosts/process/process_trace.c), and no
 * hit calls any of them without it, since nothing enables an event.
 *
 * They are weak: a program that links the engine (libtallyengine.a), too, gets the engine's. */
#include "tally/tracepoint.h"

#define WEAK __attribute__((weak))

WEAK int tally_trace_publish(struct tally_trace_group *group)
{
	(void)group;
	return 0;
}

WEAK void tally_trace_count(struct tally_trace_event *event, uint64_t count)
{
	(void)event, (void)count;
}

WEAK void *tally_trace_begin(struct tally_trace_hit *hit, size_t size)
{
	(void)hit, (void)size;
	return NULL;
}

WEAK void tally_trace_end(struct tally_trace_hit *hit)
{
	(void)hit;
}

WEAK void *tally_trace_begin_line(struct tally_trace_hit *hit,
				  struct tally_trace_listener *listener, size_t size)
{
	(void)hit, (void)listener, (void)size;
	return NULL;
}

WEAK void tally_trace_end_line(struct tally_trace_hit *hit, struct tally_trace_listener *listener)
{
	(void)hit, (void)listener;
}

WEAK const struct tally_trace_probe *tally_trace_walk(struct tally_trace_event *event, void **mark)
{
	(void)event;
	*mark = NULL;
	return NULL;
}

WEAK void tally_trace_walked(void *mark)
{
	(void)mark;
}

WEAK void tally_trace_print(struct tally_trace_text *text, const char *format, ...)
{
	(void)text, (void)format;
}

WEAK const char *tally_trace_symbolic(struct tally_trace_text *text, int64_t value,
				      const struct tally_trace_symbol *symbols, size_t count)
{
	(void)text, (void)value, (void)symbols, (void)count;
	return "";
}

WEAK const char *tally_trace_flags(struct tally_trace_text *text, const char *delimiter,
				   uint64_t value, const struct tally_trace_symbol *symbols,
				   size_t count)
{
	(void)text, (void)delimiter, (void)value, (void)symbols, (void)count;
	return "";
}

WEAK const char *tally_trace_hex(struct tally_trace_text *text, const void *bytes, long length)
{
	(void)text, (void)bytes, (void)length;
	return "";
}

WEAK const char *tally_trace_array(struct tally_trace_text *text, const void *array, long count,
				   long element_size)
{
	(void)text, (void)array, (void)count, (void)element_size;
	return "";
}
