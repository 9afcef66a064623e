/* A format file, then (after the first NUL) an event's raw bytes.  Without a NUL, the text also
 * serves as the event. */
#include "fuzz.h"

#include "tracepoint/tracepoint_internal.h"

#include <stdlib.h>
#include <string.h>

static void read_fields(const struct tally_tracepoint *tracepoint, const uint8_t *raw, size_t size)
{
	for (size_t i = 0; i < tracepoint->field_count; i++) {
		const struct tally_tracepoint_field *field = &tracepoint->fields[i];
		const void *value;
		uint64_t number;
		size_t length;
		tally_tracepoint_u64(tracepoint, field, raw, size, &number);
		if (tally_tracepoint_bytes(tracepoint, field, raw, size, &value, &length) &&
		    length > (size_t)(raw + size - (const uint8_t *)value))
			abort();
	}
}

/* A program prints the same before and after it is shortened. */
static void compare_fused(const struct tally_tracepoint *tracepoint, const uint8_t *raw,
			  size_t size, const struct tally_buffer *printed)
{
	struct tally_arena arena = { 0 };
	struct tally_print_source source;
	struct tally_print_program program;
	struct tally_buffer out = { .maximum = 1 << 20 };
	if (!tally_print_parse(tracepoint, &arena, &source, NULL) &&
	    !tally_print_generate(tracepoint, &source, &arena, &program, NULL)) {
		tally_print_run(tracepoint, &program, raw, size, NULL, &out);
		if (!out.failed && !printed->failed &&
		    (out.length != printed->length ||
		     memcmp(tally_buffer_string(&out), tally_buffer_string(printed), out.length)))
			abort();
	}
	tally_buffer_release(&out);
	tally_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const uint8_t *nul = size ? memchr(bytes, 0, size) : NULL;
	size_t text_length = nul ? (size_t)(nul - bytes) : size;
	size_t raw_size = nul ? size - text_length - 1 : size;
	/* exact size, so that the sanitizer sees reads beyond it */
	uint8_t *raw = malloc(raw_size ? raw_size : 1);
	if (!raw)
		return 0;
	if (raw_size)
		memcpy(raw, nul ? nul + 1 : bytes, raw_size);
	struct tally_tracepoint_machine machine = { .swap = raw_size & 1,
						    .long_bytes = raw_size & 2 ? 4 : 8 };
	struct tally_tracepoint *tracepoint;
	if (tally_tracepoint_parse((const char *)bytes, text_length, &machine, &tracepoint, NULL) ==
	    0) {
		struct tally_print *print;
		struct tally_buffer out = { .maximum = 1 << 20 };
		read_fields(tracepoint, raw, raw_size);
		if (tally_print_compile(tracepoint, &print, NULL) == 0)
			tally_print_event(print, raw, raw_size, NULL, &out);
		/* "[FAILED TO PARSE]" before the fields */
		if (out.length > TALLY_PRINT_TEXT_MAX + 17)
			abort();
		if (print && tally_print_means(print) == TALLY_PRINT_COMPILED)
			compare_fused(tracepoint, raw, raw_size, &out);
		tally_print_fields(tracepoint, raw, raw_size, &out);
		tally_print_free(print);
		tally_buffer_release(&out);
		tally_tracepoint_free(tracepoint);
	}
	free(raw);
	return 0;
}
