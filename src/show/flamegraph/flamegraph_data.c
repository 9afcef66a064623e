/* The call tree for flamegraph.js: JSON that consists mostly of one array of numbers, in preorder.
 *
 *     {"version":1, "title":…, "subtitle":…, "event":…, "unit":…, "scale":S, "samples":bool,
 *      "icicle":bool, "palette":{…}, "kinds":["program",…],
 *      "names":[…], "objects":[…], "frames":[name, object, style, …],
 *      "threads":[comm, pid, tid, threads, …],
 *      "nodes":[…], "left":{"frames":F,"weight":W,"below":B}}
 *
 * A weight times `scale` is in `unit`; with `samples`, a weight is also a number of samples.
 * `frames` has three numbers for each frame: its name, its object + 1 (0: none), and 4 × kind +
 * shade. Frames are numbered in the order of their names. `nodes` has for each thread, and then for
 * each frame below it:
 *
 *     4 × id + 2 × (has hidden) + (has self), [self,] [hidden,] number of children
 *
 * A differential graph also has, with the same frame numbers:
 *
 *     "old":{"scale":S, "threads":[…], "nodes":[…], "left":{…}},
 *     "change":{"steps":N, "largest":…, "oldSamples":…, "newSamples":…, "light":[…], "dark":[…]}
 *
 * `light` and `dark` hold 2 N + 1 colours, from shrank most to grew most; `largest` is the largest
 * change of a share.
 *
 * `hidden` is the weight of children that are lighter than `left.below` and so not in the file. The
 * file's size is bounded: omissions are counted, and shown as such.
 */
#include "flamegraph/flamegraph_internal.h"

#include "base/vector.h"
#include "output/output_text.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { DATA_BYTES_MAX = 3500000 };

struct data_writer {
	const struct tally_flame_drawing *drawing;
	const struct tally_flame_tree *tree; /* the tree being written */
	uint64_t threshold;                  /* nodes of `tree` below this weight are left out */
	uint32_t *numbers; /* number in the file, by frame id */
	uint32_t *ids;     /* frame id, by number in the file */
	uint32_t frame_count;
	uint64_t hidden_frames, hidden_weight;
};

static bool is_kept(const struct data_writer *writer, const struct tally_flame_node *node)
{
	return node->id != TALLY_FLAME_RUN && (node->depth < 2 || node->total >= writer->threshold);
}

/* Selects the tree to write, and the threshold below which its nodes are left out. */
static void take_tree(struct data_writer *writer, const struct tally_flame_tree *tree,
		      size_t nodes_max)
{
	writer->tree = tree;
	writer->threshold = tally_flame_tree_threshold(tree, nodes_max);
	writer->hidden_frames = writer->hidden_weight = 0;
}

static void mark_frames(struct data_writer *writer)
{
	for (size_t i = 0; i < writer->tree->nodes.count; i++) {
		const struct tally_flame_node *node = &writer->tree->nodes.items[i];
		if (node->depth > 1 && is_kept(writer, node))
			writer->ids[writer->tree->frame_ranks[node->id]] = node->id;
	}
}

/* Numbers the frames of kept nodes in the order of their ranks. */
static void number_frames(struct data_writer *writer, size_t nodes_max)
{
	size_t frames = writer->drawing->stacks->frames.count;
	for (size_t i = 0; i < frames; i++) {
		writer->numbers[i] = UINT32_MAX;
		writer->ids[i] = UINT32_MAX;
	}
	if (writer->drawing->old.stacks) {
		take_tree(writer, &writer->drawing->old.by_thread, nodes_max);
		mark_frames(writer);
	}
	take_tree(writer, &writer->drawing->by_thread, nodes_max);
	mark_frames(writer);
	writer->frame_count = 0;
	for (size_t rank = 0; rank < frames; rank++) {
		uint32_t id = writer->ids[rank];
		if (id == UINT32_MAX)
			continue;
		writer->numbers[id] = writer->frame_count;
		writer->ids[writer->frame_count++] = id;
	}
}

/* Interns strings into a JSON array; a string's number is its index in the array. */
struct string_list {
	struct tally_map numbers;
	struct tally_buffer json;
	bool failed;
};

static uint64_t list_string(struct string_list *list, const struct tally_stacks *stacks,
			    uint32_t string)
{
	bool added = false;
	uint64_t *number = tally_map_put(&list->numbers, string, &added);
	if (!number) {
		list->failed = true;
		return 0;
	}
	if (added) {
		*number = list->numbers.count - 1;
		if (*number)
			tally_buffer_char(&list->json, ',');
		tally_flame_json_text(&list->json, tally_strings_text(&stacks->strings, string));
	}
	return *number;
}

static void release_list(struct string_list *list)
{
	tally_map_release(&list->numbers);
	tally_buffer_release(&list->json);
}

static bool write_frames(const struct data_writer *writer, struct tally_buffer *out)
{
	const struct tally_stacks *stacks = writer->drawing->stacks;
	struct string_list names = { 0 }, objects = { 0 };
	struct tally_buffer frames = { 0 };
	for (uint32_t number = 0; number < writer->frame_count; number++) {
		const struct tally_frame *frame = &stacks->frames.items[writer->ids[number]];
		const char *name = tally_strings_text(&stacks->strings, frame->name);
		uint64_t object = 0;
		if (frame->object != TALLY_STRING_NONE)
			object = list_string(&objects, stacks, frame->object) + 1;
		tally_buffer_printf(&frames, "%s%" PRIu64 ",%" PRIu64 ",%u", number ? "," : "",
				    list_string(&names, stacks, frame->name), object,
				    4u * tally_flame_frame_kind(stacks, writer->ids[number]) +
					    tally_flame_shade(name));
	}
	tally_buffer_printf(out, "\"names\":[%s],\n\"objects\":[%s],\n",
			    tally_buffer_string(&names.json), tally_buffer_string(&objects.json));
	tally_buffer_printf(out, "\"frames\":[%s],\n", tally_buffer_string(&frames));
	bool failed = names.failed || objects.failed || names.json.failed || objects.json.failed ||
		      frames.failed;
	release_list(&names);
	release_list(&objects);
	tally_buffer_release(&frames);
	return !failed;
}

static void write_threads(const struct data_writer *writer, struct tally_buffer *out)
{
	tally_buffer_text(out, "\"threads\":[");
	for (size_t i = 0; i < writer->tree->slots.count; i++) {
		const struct tally_flame_slot *slot = &writer->tree->slots.items[i];
		if (i)
			tally_buffer_char(out, ',');
		tally_flame_json_text(
			out, tally_strings_text(&writer->drawing->stacks->strings, slot->comm));
		tally_buffer_printf(out, ",%" PRIu32 ",%" PRIu32 ",%" PRIu32, slot->pid, slot->tid,
				    slot->threads);
	}
	tally_buffer_text(out, "],\n");
}

/* Writes the numbers of one node, and adds up what it hides. */
static void write_node(struct data_writer *writer, size_t index, struct tally_buffer *out)
{
	const struct tally_flame_tree *tree = writer->tree;
	const struct tally_flame_node *node = &tree->nodes.items[index];
	uint64_t hidden = 0, children = 0;
	for (size_t child = index + 1; child < node->end; child = tree->nodes.items[child].end) {
		const struct tally_flame_node *there = &tree->nodes.items[child];
		if (is_kept(writer, there)) {
			children++;
			continue;
		}
		hidden += there->total;
		writer->hidden_frames += tally_flame_tree_frames(tree, child);
	}
	writer->hidden_weight += hidden;
	uint64_t id = node->depth > 1 ? writer->numbers[node->id] : node->id;
	bool has_hidden = hidden > 0, has_self = node->self > 0;
	tally_buffer_printf(out, "%" PRIu64 ",", id << 2 | (uint64_t)has_hidden << 1 | has_self);
	if (node->self)
		tally_buffer_printf(out, "%" PRIu64 ",", node->self);
	if (hidden)
		tally_buffer_printf(out, "%" PRIu64 ",", hidden);
	tally_buffer_printf(out, "%" PRIu64 ",", children);
}

static void write_nodes(struct data_writer *writer, struct tally_buffer *out)
{
	const struct tally_flame_tree *tree = writer->tree;
	tally_buffer_text(out, "\"nodes\":[");
	for (size_t i = 1; i < tree->nodes.count;) {
		const struct tally_flame_node *node = &tree->nodes.items[i];
		if (is_kept(writer, node)) {
			write_node(writer, i, out);
			i++;
		} else {
			i = node->end;
		}
	}
	if (out->length && out->bytes[out->length - 1] == ',')
		out->length--;
	tally_buffer_printf(out,
			    "],\n\"left\":{\"frames\":%" PRIu64 ",\"weight\":%" PRIu64
			    ",\"below\":%" PRIu64 "}",
			    writer->hidden_frames, writer->hidden_weight, writer->threshold);
}

static void write_head(const struct tally_flame_drawing *drawing, struct tally_buffer *out)
{
	const char *event = drawing->options.by_samples ? "" : drawing->stacks->event;
	tally_buffer_text(out, "{\"version\":1,\"title\":");
	tally_flame_json_text(out, tally_buffer_string(&drawing->title));
	tally_buffer_text(out, ",\"subtitle\":");
	tally_flame_json_text(out, tally_buffer_string(&drawing->subtitle));
	tally_buffer_text(out, ",\"event\":");
	tally_flame_json_text(out, event);
	tally_buffer_text(out, ",\"unit\":");
	tally_flame_json_text(out, drawing->unit);
	tally_buffer_printf(out, ",\"scale\":%" PRIu64 ",\"samples\":%s,\"icicle\":%s,\n",
			    drawing->by_thread.unit,
			    drawing->by_thread.unit_is_sample ? "true" : "false",
			    drawing->options.icicle ? "true" : "false");
	tally_flame_colour_json(out);
	tally_buffer_text(out, ",\"kinds\":[");
	for (unsigned kind = 0; kind < TALLY_FLAME_KINDS; kind++)
		tally_buffer_printf(out, "%s\"%s\"", kind ? "," : "", tally_flame_kind_names[kind]);
	tally_buffer_text(out, "],\n");
}

static bool write_all(struct data_writer *writer, size_t nodes_max, struct tally_buffer *out)
{
	const struct tally_flame_old *old = &writer->drawing->old;
	number_frames(writer, nodes_max);
	write_head(writer->drawing, out);
	bool written = write_frames(writer, out);
	write_threads(writer, out);
	write_nodes(writer, out);
	if (old->stacks) {
		take_tree(writer, &old->by_thread, nodes_max);
		tally_buffer_printf(out, ",\n\"old\":{\"scale\":%" PRIu64 ",", old->by_thread.unit);
		write_threads(writer, out);
		write_nodes(writer, out);
		tally_buffer_text(out, "},\n");
		tally_flame_change_json(old, out);
	}
	tally_buffer_text(out, "}");
	return written && !out->failed;
}

int tally_flame_data(const struct tally_flame_drawing *drawing, struct tally_buffer *out)
{
	size_t frames = drawing->stacks->frames.count, start = out->length;
	struct data_writer writer = {
		.drawing = drawing,
		.numbers = calloc(frames + 1, sizeof(*writer.numbers)),
		.ids = calloc(frames + 1, sizeof(*writer.ids)),
	};
	bool written = writer.numbers && writer.ids;
	for (size_t nodes_max = drawing->options.nodes_max; written; nodes_max -= nodes_max / 4) {
		out->length = start;
		written = write_all(&writer, nodes_max, out);
		if (out->length - start <= DATA_BYTES_MAX || nodes_max < 8)
			break;
	}
	free(writer.numbers);
	free(writer.ids);
	if (written)
		return 0;
	return -ENOMEM;
}
