/* Writes all stacks as lines into one buffer, sorts the lines, and adds up equal ones.  Before
 * that, two passes over the names choose how much of each name to write. */
#include "output/output.h"

#include "base/terminal.h"
#include "base/vector.h"
#include "output/output_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct folded_line {
	/* in `lines`; set when that has stopped growing, until then `offset` counts */
	const char *text;
	size_t offset;
	uint64_t weight;
};

/* Appends a name, cleaned, and without what would end the frame. */
static void append_name(struct tally_buffer *out, const char *name, size_t length, bool full)
{
	size_t start = out->length;
	tally_put_name_bytes(out, name, length);
	size_t kept = start;
	for (size_t i = start; i < out->length; i++) {
		char byte = out->bytes[i];
		if (!full && (byte == '"' || byte == '\''))
			continue;
		if (byte == ';')
			byte = ':';
		out->bytes[kept++] = byte;
	}
	out->length = kept;
}

static void append_thread(const struct tally_stacks *stacks,
			  const struct tally_thread_label *thread,
			  const struct tally_folded_options *options, struct tally_buffer *out)
{
	size_t start = out->length;
	const char *comm = tally_strings_text(&stacks->strings, thread->comm);
	append_name(out, comm, strlen(comm), true);
	for (size_t i = start; i < out->length && !options->full_names; i++)
		if (out->bytes[i] == ' ')
			out->bytes[i] = '_';
	if (!options->with_pid && !options->with_tid)
		return;
	if (thread->pid)
		tally_buffer_printf(out, "-%" PRIu32, thread->pid);
	else
		tally_buffer_text(out, "-?");
	if (options->with_tid)
		tally_buffer_printf(out, "/%" PRIu32, thread->tid);
}

/* Returns, by frame, how many bytes of its name to write. Parameters are left out only if no other
 * name becomes the same: overloads stay apart. The caller frees the array. NULL: out of memory. */
static size_t *choose_lengths(const struct tally_stacks *stacks)
{
	enum { SEVERAL = UINT32_MAX - 1 };
	size_t *lengths = malloc((stacks->frames.count + 1) * sizeof(*lengths));
	struct tally_map names = { 0 }; /* short name → the only whole name + 1, or SEVERAL */
	struct tally_strings shorts = { 0 };
	if (!lengths)
		return NULL;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < stacks->frames.count; i++) {
			uint32_t whole = stacks->frames.items[i].name;
			const char *text = tally_strings_text(&stacks->strings, whole);
			size_t length = tally_function_name_length(text);
			uint32_t id = tally_strings_add(&shorts, text, length);
			uint64_t *only = NULL;
			if (id != TALLY_STRING_NONE)
				only = tally_map_put(&names, id, NULL);
			if (!only) {
				free(lengths);
				lengths = NULL;
				goto out;
			}
			lengths[i] = length;
			if (pass && *only == SEVERAL)
				lengths[i] = strlen(text);
			else if (!pass && *only && *only != whole + 1u)
				*only = SEVERAL;
			else if (!pass)
				*only = whole + 1u;
		}
out:
	tally_map_release(&names);
	tally_strings_release(&shorts);
	return lengths;
}

static void append_frame(const struct tally_stacks *stacks, const struct tally_frame *frame,
			 size_t length, bool is_java, const struct tally_folded_options *options,
			 struct tally_buffer *out)
{
	const char *name = tally_strings_text(&stacks->strings, frame->name);
	bool full = options->full_names;
	if (full)
		length = strlen(name);
	/* In "Ljava/io/PrintStream;::print", the L is the JVM's mark of a class. */
	if (is_java && !full && *name == 'L' && memchr(name, '/', length)) {
		name++;
		length--;
	}
	tally_buffer_char(out, ';');
	append_name(out, name, length, full);
	if (options->suffix_kernel && frame->kind == TALLY_FRAME_KERNEL)
		tally_buffer_text(out, "_[k]");
	if (options->suffix_jit && frame->kind == TALLY_FRAME_JIT)
		tally_buffer_text(out, "_[j]");
	if (options->suffix_inlined && frame->kind == TALLY_FRAME_INLINED)
		tally_buffer_text(out, "_[i]");
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct folded_line *)a)->text, ((const struct folded_line *)b)->text);
}

/* Appends a weight; one in millionths as a decimal fraction. */
static void append_weight(struct tally_buffer *out, uint64_t weight, bool is_millionths)
{
	if (!is_millionths) {
		tally_buffer_printf(out, " %" PRIu64, weight);
		return;
	}
	tally_buffer_printf(out, " %" PRIu64, weight / 1000000);
	if (weight % 1000000 == 0)
		return;
	tally_buffer_printf(out, ".%06" PRIu64, weight % 1000000);
	while (out->length && out->bytes[out->length - 1] == '0')
		out->length--;
}

static void write_sorted(struct folded_line *lines, size_t count, const char *texts,
			 bool is_millionths, struct tally_buffer *out)
{
	for (size_t i = 0; i < count; i++)
		lines[i].text = texts + lines[i].offset;
	qsort(lines, count, sizeof(*lines), compare);
	for (size_t i = 0, next; i < count; i = next) {
		uint64_t sum = lines[i].weight;
		for (next = i + 1; next < count && !strcmp(lines[i].text, lines[next].text); next++)
			if (__builtin_add_overflow(sum, lines[next].weight, &sum))
				sum = UINT64_MAX;
		tally_buffer_text(out, lines[i].text);
		append_weight(out, sum, is_millionths);
		tally_buffer_char(out, '\n');
	}
}

int tally_folded_write(const struct tally_stacks *stacks,
		       const struct tally_folded_options *options, struct tally_buffer *out,
		       struct tally_error *err)
{
	struct tally_buffer texts = { .maximum = SIZE_MAX / 2 };
	struct folded_line *lines = calloc(stacks->rows.rows.count + 1, sizeof(*lines));
	bool by_samples = options->by_samples && stacks->total_samples;
	struct tally_frame_list frames = { 0 };
	size_t *lengths = choose_lengths(stacks);
	bool failed = !lines || !lengths;
	for (size_t i = 0; !failed && i < stacks->rows.rows.count; i++) {
		const struct tally_row *stack = &stacks->rows.rows.items[i];
		lines[i].offset = texts.length;
		lines[i].weight = stack->period;
		if (by_samples)
			lines[i].weight = stack->samples;
		const struct tally_thread_label *thread = &stacks->threads.items[stack->class];
		bool is_java = !strncmp(tally_strings_text(&stacks->strings, thread->comm), "java",
					4);
		append_thread(stacks, thread, options, &texts);
		failed = tally_stacks_frames(stacks, i, &frames) < 0;
		for (size_t f = 0; !failed && f < frames.count; f++)
			append_frame(stacks, &stacks->frames.items[frames.items[f]],
				     lengths[frames.items[f]], is_java, options, &texts);
		tally_buffer_char(&texts, '\0');
	}
	failed |= texts.failed;
	if (!failed)
		write_sorted(lines, stacks->rows.rows.count, tally_buffer_string(&texts),
			     !strcmp(stacks->unit, TALLY_MILLIONTHS), out);
	failed |= out->failed;
	free(lines);
	free(lengths);
	tally_vector_release(&frames);
	tally_buffer_release(&texts);
	if (failed)
		return tally_error_set(err, -ENOMEM, "out of memory while folding stacks");
	return 0;
}
