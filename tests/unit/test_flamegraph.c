#include "test.h"

#include "base/vector.h"
#include "flamegraph/flamegraph.h"
#include "flamegraph/flamegraph_internal.h"
#include "output/output_text.h"

#include <errno.h>
#include <math.h>

static const struct tally_flamegraph_options plain;
static const struct tally_flame_tree_options whole_trees = { .nodes_max = { SIZE_MAX, SIZE_MAX } };

static void read_text(struct tally_stacks *stacks, const char *text)
{
	*stacks = (struct tally_stacks){ 0 };
	assert_int_equal(tally_stacks_read_text(stacks, text, strlen(text), NULL), 0);
}

typedef int draw_function(const struct tally_stacks *, const struct tally_flamegraph_options *,
			  struct tally_buffer *, struct tally_error *);

static struct tally_buffer draw_text(draw_function *draw, const char *text,
				     const struct tally_flamegraph_options *options)
{
	struct tally_stacks stacks;
	struct tally_buffer out = { 0 };
	read_text(&stacks, text);
	assert_int_equal(draw(&stacks, options, &out, NULL), 0);
	tally_stacks_release(&stacks);
	return out;
}

static unsigned count_of(const char *text, const char *part)
{
	unsigned count = 0;
	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

static void totals_are_self_plus_children(void **state)
{
	(void)state;
	struct tally_stacks stacks;
	struct tally_flame_tree tree = { 0 }, by_thread = { 0 };
	read_text(&stacks, "b;x;y 6\na;x 2\nb;x;y;z 4\nb;x 8\nb 2\na;w;v;u 10\n");
	assert_int_equal(tally_flame_trees_build(&by_thread, &tree, &stacks, &whole_trees), 0);
	static const struct {
		const char *name;
		uint32_t depth;
		uint64_t self, total;
		size_t end;
	} expected[] = {
		{ "all", 0, 0, 16, 10 }, { "a", 1, 0, 6, 6 },  { "w", 2, 0, 5, 5 },
		{ "v", 3, 0, 5, 5 },     { "u", 4, 5, 5, 5 },  { "x", 2, 1, 1, 6 },
		{ "b", 1, 1, 10, 10 },   { "x", 2, 4, 9, 10 }, { "y", 3, 3, 5, 10 },
		{ "z", 4, 2, 2, 10 },
	};
	assert_int_equal(tree.unit, 2);
	assert_int_equal(tree.nodes.count, 10);
	for (unsigned i = 0; i < 10; i++) {
		const struct tally_flame_node *node = &tree.nodes.items[i];
		assert_string_equal(tally_flame_node_name(&tree, &stacks, node), expected[i].name);
		assert_int_equal(node->depth, expected[i].depth);
		assert_int_equal(node->self, expected[i].self);
		assert_int_equal(node->total, expected[i].total);
		assert_int_equal(node->end, expected[i].end);
	}
	assert_int_equal(tally_flame_tree_threshold(&tree, 10), 1);
	assert_int_equal(tally_flame_tree_threshold(&tree, 4), 6);
	tally_flame_tree_release(&tree);
	tally_flame_tree_release(&by_thread);
	tally_stacks_release(&stacks);
}

/* Finds every box of the picture: "<rect class=… x= y= width=".  Returns their number. */
static unsigned boxes_of(const char *svg, double (*boxes)[3], unsigned room)
{
	unsigned count = 0;
	const char *at = strstr(svg, "picture-frames\">");
	for (; count < room && (at = strstr(at, "<rect")); at++, count++)
		if (sscanf(at, "<rect class=\"%*[^\"]\" x=\"%lf\" y=\"%lf\" width=\"%lf\"",
			   &boxes[count][0], &boxes[count][1], &boxes[count][2]) != 3)
			break;
	return count;
}

static void widths_are_weights_and_boxes_never_overlap(void **state)
{
	(void)state;
	double boxes[16][3];
	struct tally_buffer svg = draw_text(tally_flamegraph_svg,
					    "a;f;g 30\na;f;h 10\na;k 20\nb;f 40\n", &plain);
	unsigned count = boxes_of(tally_buffer_string(&svg), boxes, 16);
	static const struct { double x, width; int row;
	} expected[] = {
		{ 0, 100, 0 }, { 0, 60, 1 },  { 0, 40, 2 },  { 0, 30, 3 },
		{ 30, 10, 3 }, { 40, 20, 2 }, { 60, 40, 1 }, { 60, 40, 2 },
	};
	assert_int_equal(count, 8);
	for (unsigned i = 0; i < count; i++) {
		assert_true(fabs(boxes[i][0] - (16 + 11.68 * expected[i].x)) < 0.01);
		assert_true(fabs(boxes[i][2] + 0.6 - 11.68 * expected[i].width) < 0.01);
		assert_true(fabs(boxes[0][1] - boxes[i][1] - 18 * expected[i].row) < 0.01);
	}
	tally_buffer_release(&svg);
	const struct tally_flamegraph_options icicle = { .icicle = true };
	svg = draw_text(tally_flamegraph_svg, "a;f;g 30\n", &icicle);
	assert_int_equal(boxes_of(tally_buffer_string(&svg), boxes, 16), 4);
	assert_true(boxes[0][1] < boxes[3][1]);
	tally_buffer_release(&svg);
}

static void the_same_stacks_give_the_same_bytes(void **state)
{
	(void)state;
	draw_function *const draws[] = { tally_flamegraph_svg, tally_flamegraph_html };
	for (unsigned i = 0; i < 2; i++) {
		struct tally_buffer one = draw_text(
			draws[i], "a;f;g 3\nb;f_[k];[libc.so.6] 1\na;f 2\n", &plain);
		struct tally_buffer two = draw_text(
			draws[i], "b;f_[k];[libc.so.6] 1\na;f 2\na;f;g 3\n", &plain);
		assert_string_equal(tally_buffer_string(&one), tally_buffer_string(&two));
		tally_buffer_release(&one);
		tally_buffer_release(&two);
	}
}

static void names_cannot_leave_their_place(void **state)
{
	(void)state;
	const char *text =
		"</script><script>alert(1)</script>;]]><b>\"'&;\x01\x1b[31m\xff\xfe\xc3;"
		"\xe2\x80\xa8\xe2\x80\xae\xef\xbf\xbf;</title></noscript><img src=x "
		"onerror=alert(1)> 5\n";
	const struct tally_flamegraph_options options = { .title = "</title><script>t",
							  .subtitle = "\"]]>\x02" };
	draw_function *const draws[] = { tally_flamegraph_svg, tally_flamegraph_html };
	for (unsigned i = 0; i < 2; i++) {
		struct tally_buffer file = draw_text(draws[i], text, &options);
		const char *out = tally_buffer_string(&file);
		assert_int_equal(strlen(out), file.length);
		assert_int_equal(count_of(out, "<script"), 2);
		assert_int_equal(count_of(out, "</script"), 2);
		assert_int_equal(count_of(out, "]]>"), i ? 0 : 2);
		assert_int_equal(count_of(out, "<img"), 0);
		assert_int_equal(count_of(out, "<b>"), 0);
		for (const char *c = out; *c; c++)
			assert_true((unsigned char)*c >= 0x20 || *c == '\n' || *c == '\t');
		/* Invalid UTF-8, line separators, direction marks, non-characters. */
		assert_null(strchr(out, 0xff));
		assert_null(strstr(out, "\xe2\x80\xa8"));
		assert_null(strstr(out, "\xe2\x80\xae"));
		assert_null(strstr(out, "\xef\xbf\xbf"));
		assert_non_null(strstr(out, "&lt;/script&gt;&lt;script&gt;alert(1)"));
		assert_non_null(strstr(out, "\\u003c/script\\u003e"));
		tally_buffer_release(&file);
	}
}

static void style_and_script_fit_into_both_files(void **state)
{
	(void)state;
	const char *const parts[] = { tally_flamegraph_css, tally_flamegraph_js };
	for (unsigned i = 0; i < 2; i++) {
		assert_null(strstr(parts[i], "]]>"));
		assert_null(strstr(parts[i], "</"));
		assert_null(strstr(parts[i], "<!--"));
		assert_null(strstr(parts[i], "innerHTML"));
		assert_null(strstr(parts[i], "https:"));
	}
}

static void what_is_left_out_is_counted(void **state)
{
	(void)state;
	struct tally_buffer text = { 0 };
	for (unsigned i = 0; i < 3000; i++)
		tally_buffer_printf(&text, "a;f%u;g%u %u\n", i % 30, i, i < 10 ? 100000 : 1);
	const struct tally_flamegraph_options options = { .nodes_max = 100 };
	struct tally_buffer svg = draw_text(tally_flamegraph_svg, tally_buffer_string(&text),
					    &options);
	const char *out = tally_buffer_string(&svg);
	/* 10 of f and 10 of g are heavy. */
	assert_non_null(strstr(out, "\"left\":{\"frames\":2990,\"weight\":2990,"));
	assert_non_null(strstr(
		out,
		">3,010 frames are too narrow or too deep to be drawn here: 0.30\u00a0% of the "
		"weight<"));
	double boxes[64][3];
	/* and the narrow f's between f1 and f2, f2 and f3 */
	assert_int_equal(boxes_of(out, boxes, 64), 22 + 2);
	tally_buffer_release(&svg);
	tally_buffer_release(&text);
}

static void deep_stacks_are_drawn_to_a_limit(void **state)
{
	(void)state;
	struct tally_buffer text = { 0 };
	tally_buffer_text(&text, "a");
	for (unsigned i = 0; i < 100000; i++)
		tally_buffer_text(&text, ";f");
	tally_buffer_text(&text, " 1\n");
	struct tally_buffer svg = draw_text(tally_flamegraph_svg, tally_buffer_string(&text),
					    &plain);
	double (*boxes)[3] = calloc(1000, sizeof(*boxes));
	assert_int_equal(boxes_of(tally_buffer_string(&svg), boxes, 1000), 400);
	free(boxes);
	tally_buffer_release(&svg);
	tally_buffer_release(&text);
}

static void many_threads_share_a_box_by_command(void **state)
{
	(void)state;
	struct tally_stacks stacks = { 0 };
	struct tally_flame_tree tree = { 0 }, by_comm = { 0 };
	uint32_t frame = tally_stacks_frame(&stacks, "f", NULL, TALLY_FRAME_PROGRAM);
	for (uint32_t i = 1; i <= 1000; i++)
		tally_stacks_add(&stacks,
				 tally_stacks_thread(&stacks, i % 2 ? "odd" : "even", i, i), &frame,
				 1, i, 1);
	assert_int_equal(tally_flame_trees_build(&tree, &by_comm, &stacks, &whole_trees), 0);
	assert_int_equal(tree.slots.count, TALLY_FLAME_THREADS_MAX + 2);
	assert_int_equal(tree.nodes.items[0].total, 500500);
	uint32_t threads = 0;
	for (size_t i = 0; i < tree.slots.count; i++)
		threads += tree.slots.items[i].threads;
	assert_int_equal(threads, 1000);
	assert_int_equal(by_comm.slots.count, 2);
	assert_int_equal(by_comm.slots.items[1].threads, 500);
	assert_int_equal(by_comm.nodes.items[by_comm.nodes.items[1].end].total, 250000);
	tally_flame_tree_release(&tree);
	tally_flame_tree_release(&by_comm);
	tally_stacks_release(&stacks);
}

static void a_thread_that_calls_exec_is_counted_once(void **state)
{
	(void)state;
	struct tally_stacks stacks = { 0 };
	struct tally_buffer svg = { 0 };
	struct tally_error err = { 0 };
	static const struct { const char *comm; uint32_t tid; } threads[] = {
		{ "sh", 7 }, { "sh", 8 }, { "date", 8 }, { "sed", 9 }, { "sh", 7 },
	};
	uint32_t frame = tally_stacks_frame(&stacks, "f", NULL, TALLY_FRAME_PROGRAM);
	for (size_t i = 0; i < 5; i++)
		tally_stacks_add(&stacks,
				 tally_stacks_thread(&stacks, threads[i].comm, threads[i].tid,
						     threads[i].tid),
				 &frame, 1, 1, 1);
	assert_int_equal(tally_flamegraph_svg(&stacks, &plain, &svg, &err), 0);
	assert_non_null(strstr(tally_buffer_string(&svg), "\u00b7 3 threads"));
	tally_buffer_release(&svg);
	tally_stacks_release(&stacks);
}

/* Returns the weight of all stacks that begin with the path; path[1] is the slot. */
static uint64_t weight_of_path(const struct tally_stacks *stacks,
			       const struct tally_flame_tree *tree, bool by_thread,
			       const uint32_t *path, uint32_t depth)
{
	uint64_t weight = 0;
	struct tally_frame_list frames = { 0 };
	for (size_t i = 0; i < stacks->rows.rows.count; i++) {
		const struct tally_row *stack = &stacks->rows.rows.items[i];
		const struct tally_thread_label *thread = &stacks->threads.items[stack->class];
		const struct tally_flame_slot *slot = &tree->slots.items[path[1]];
		assert_int_equal(tally_stacks_frames(stacks, i, &frames), 0);
		if (thread->comm == slot->comm && (!by_thread || thread->tid == slot->tid) &&
		    frames.count + 1 >= depth &&
		    (depth < 2 || !memcmp(frames.items, path + 2, (depth - 1) * sizeof(*path))))
			weight += stack->period;
	}
	tally_vector_release(&frames);
	return weight / tree->unit;
}

static void check_weights(const struct tally_stacks *stacks, const struct tally_flame_tree *tree,
			  bool by_thread)
{
	uint32_t path[64] = { 0 };
	for (size_t i = 1; i < tree->nodes.count; i++) {
		const struct tally_flame_node *node = &tree->nodes.items[i];
		path[node->depth] = node->id;
		assert_int_equal(node->total,
				 weight_of_path(stacks, tree, by_thread, path, node->depth));
		uint64_t below = node->self;
		for (size_t child = i + 1; child < node->end; child = tree->nodes.items[child].end)
			below += tree->nodes.items[child].total;
		assert_int_equal(below, node->total);
	}
}

/* Checks that the runs hold exactly the frames that were pruned, in the right places. */
static void check_pruned(const struct tally_flame_tree *pruned,
			 const struct tally_flame_tree *whole)
{
	size_t at = 0;
	assert_int_equal(pruned->depth_max, whole->depth_max);
	assert_memory_equal(pruned->level_weights, whole->level_weights,
			    (whole->depth_max + 1) * sizeof(*whole->level_weights));
	for (size_t i = 0; i < pruned->nodes.count; i++) {
		const struct tally_flame_node *node = &pruned->nodes.items[i];
		assert_int_equal(node->depth, whole->nodes.items[at].depth);
		assert_int_equal(tally_flame_tree_frames(pruned, i), node->id != TALLY_FLAME_RUN ?
				 whole->nodes.items[at].end - at : node->self);
		if (node->id != TALLY_FLAME_RUN) {
			assert_int_equal(node->id, whole->nodes.items[at].id);
			assert_int_equal(node->self, whole->nodes.items[at].self);
			assert_int_equal(node->total, whole->nodes.items[at++].total);
			continue;
		}
		uint64_t total = 0, frames = 0;
		for (; frames < node->self; at = whole->nodes.items[at].end) {
			assert_true(whole->nodes.items[at].total < pruned->least);
			assert_int_equal(whole->nodes.items[at].depth, node->depth);
			total += whole->nodes.items[at].total;
			frames += whole->nodes.items[at].end - at;
		}
		assert_int_equal(frames, node->self);
		assert_int_equal(total, node->total);
	}
	assert_int_equal(at, whole->nodes.count);
}

/* Makes stacks of frames, or of steps: some steps have several frames, some the same, one none. */
static void random_stacks(struct tally_stacks *stacks, uint64_t *random, uint64_t weight_max,
			  bool has_steps)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	static const struct { unsigned count, frames[3];
	} steps[] = {
		{ 1, { 3 } }, { 1, { 0 } }, { 2, { 1, 2 } }, { 3, { 4, 4, 0 } },
		{ 1, { 3 } }, { 0, { 0 } }, { 1, { 2 } },
	};
	uint32_t frames[5], threads[6], codes[12];
	for (unsigned i = 0; i < 5; i++)
		frames[i] = tally_stacks_frame(stacks, names[4 - i], NULL,
					       i & 1 ? TALLY_FRAME_KERNEL : TALLY_FRAME_LIBRARY);
	for (uint32_t i = 0; i < 6; i++)
		threads[i] = tally_stacks_thread(stacks, i % 3 ? "x" : "w", i / 2, i);
	for (unsigned i = 0; has_steps && i < 7; i++) {
		struct tally_step step = { (uint32_t)stacks->step_frames.count, steps[i].count };
		assert_int_equal(tally_vector_push(&stacks->steps, step), 0);
		for (unsigned frame = 0; frame < step.count; frame++)
			assert_int_equal(tally_vector_push(&stacks->step_frames,
							   frames[steps[i].frames[frame]]),
					 0);
	}
	for (unsigned i = 0; i < 400; i++) {
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		uint64_t bits = *random >> 20;
		unsigned count = (unsigned)(bits % 12);
		for (unsigned at = 0; at < count; at++)
			codes[at] = has_steps ? (bits >> (at * 3) & 7) % 7
					      : frames[(bits >> (at * 3) & 7) % 5];
		assert_int_equal(tally_stacks_add(stacks, threads[(bits >> 36) % 6], codes, count,
						  1 + (bits >> 8) % weight_max, 1), 0);
	}
}

static void light_nodes_are_left_out_exactly(void **state)
{
	(void)state;
	static const size_t nodes_max[] = { 1, 5, 30, 100, 400, 100000 };
	uint64_t random = 1;
	for (unsigned round = 0; round < 12; round++) {
		struct tally_stacks stacks = { 0 };
		struct tally_flame_tree whole[2] = { 0 };
		random_stacks(&stacks, &random, round % 3 ? round % 3 * 3 : 1000000, round & 1);
		assert_int_equal(
			tally_flame_trees_build(&whole[0], &whole[1], &stacks, &whole_trees), 0);
		check_weights(&stacks, &whole[0], true);
		check_weights(&stacks, &whole[1], false);
		for (unsigned i = 0; i < sizeof(nodes_max) / sizeof(nodes_max[0]); i++) {
			struct tally_flame_tree pruned[2] = { 0 };
			const struct tally_flame_tree_options options = {
				.nodes_max = { nodes_max[i], nodes_max[(i + round) % 6] },
				.threads_from = round & 2 ? 1 : SIZE_MAX,
			};
			assert_int_equal(
				tally_flame_trees_build(&pruned[0], &pruned[1], &stacks, &options),
				0);
			for (unsigned tree = 0; tree < 2; tree++) {
				check_pruned(&pruned[tree], &whole[tree]);
				for (size_t asked = options.nodes_max[tree]; asked; asked /= 2)
					assert_int_equal(
						tally_flame_tree_threshold(&pruned[tree], asked),
						tally_flame_tree_threshold(&whole[tree], asked));
				assert_true(options.nodes_max[tree] != 30 ||
					    pruned[tree].nodes.count < whole[tree].nodes.count / 2);
				tally_flame_tree_release(&pruned[tree]);
			}
		}
		tally_flame_tree_release(&whole[0]);
		tally_flame_tree_release(&whole[1]);
		tally_stacks_release(&stacks);
	}
}

static void nothing_to_draw_is_an_error(void **state)
{
	(void)state;
	struct tally_stacks stacks = { 0 };
	struct tally_buffer out = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_flamegraph_svg(&stacks, &plain, &out, &err), -ENODATA);
	assert_true(err.hint[0]);
	assert_int_equal(out.length, 0);
}

static void labels_fit_or_are_cut(void **state)
{
	(void)state;
	static const struct { const char *name; unsigned columns; const char *label;
	} labels[] = {
		{ "main", 4, "main" },
		{ "main", 3, "ma\u2026" },
		{ "main", 2, "" },
		{ "f(int, char)", 12, "f(int, char)" },
		{ "f(int, char)", 5, "f" },
		{ "(anonymous namespace)::f()", 12, "f()" },
		{ "engine::Sorter<std::pair<int, long>>::bubble", 20,
		  "Sorter&lt;\u2026&gt;::bubble" },
		{ "T::operator()(int)", 13, "T::operator()" },
		{ "\u6f22\u5b57", 4, "\u6f22\u5b57" },
		{ "\u6f22\u5b57", 3, "\u6f22\u2026" },
		{ "a<b>", 4, "a&lt;b&gt;" },
		{ "a\xff"
		  "b",
		  3,
		  "a\ufffd"
		  "b" },
	};
	for (unsigned i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		struct tally_buffer out = { 0 };
		tally_flame_label(&out, labels[i].name, labels[i].columns);
		assert_string_equal(tally_buffer_string(&out), labels[i].label);
		tally_buffer_release(&out);
	}
}

static void parameters_begin_behind_the_whole_name(void **state)
{
	(void)state;
	static const char *const names[][2] = {
		{ "main", "" },
		{ "f", "(int, char)" },
		{ "ns::f", "(int) const" },
		{ "(anonymous namespace)::f", "(int (*)(char))" },
		{ "ns::(anonymous namespace)::f", "()" },
		{ "sort<It, ns::f(int)::<lambda(u64, u64)> >", "" },
		{ "sort<It, ns::f(int)::{lambda(long)#1}>", "(It, It)" },
		{ "ns::f(int)::{lambda(long)#1}::operator()", "(long) const" },
		{ "ns::f(int) const::{lambda(long)#1}::operator()", "(long) const" },
		{ "ns::f(int) volatile &&::{lambda()#1}::operator()", "() const" },
		{ "app.main(immutable(char)[][]).__lambda2", "(int)" },
		{ "app.C.run(int) const.__lambda2", "(int)" },
		{ "app.C.run(int) shared inout.__dgliteral3", "() const" },
		{ "app.C.run", "(int) const" },
		{ "operator()", "" },
		{ "operator()<long*, T<long> >", "(long*)" },
		{ "T::operator<< <int>", "(T&, int)" },
		{ "T::operator->", "()" },
		{ "operator new", "(unsigned long)" },
		{ "T<(E)1>::f", "(int)" },
		{ "main.(*T).Run", "" },
		{ "std::map<int, ns::T>::find", "(int const&) const" },
		{ "unclosed", "(int" },
		{ "", "" },
		{ "(", "" },
		{ "a>b", "(c)" },
		{ "operator", "" },
		{ "a<b(c)", "" },
	};
	char name[256];
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", names[i][0], names[i][1]);
		if (tally_function_name_length(name) != strlen(names[i][0]))
			fail_msg("%s: %zu", name, tally_function_name_length(name));
	}
}

static void weights_are_told_in_their_unit(void **state)
{
	(void)state;
	static const struct { double weight; const char *unit, *event, *text;
	} weights[] = {
		{ 1, "samples", "", "1 sample" },
		{ 1234567, "samples", "x", "1,234,567 samples" },
		{ 999, "ns", "", "999 ns" },
		{ 1500, "ns", "", "1.50 \u00b5s" },
		{ 12345678, "ns", "", "12.3 ms" },
		{ 999.9e6, "ns", "", "1.00 s" },
		{ 90e9, "ns", "", "1.50 min" },
		{ 2.5e9, "events", "cycles", "2.50 G cycles" },
		{ 12, "events", "<x>", "12 &lt;x&gt;" },
		{ 12, "events", "", "12 events" },
		{ 123456, "cycles", "", "123 k cycles" },
	};
	for (unsigned i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
		struct tally_buffer out = { 0 };
		tally_flame_weight(&out, weights[i].weight, weights[i].unit, weights[i].event);
		assert_string_equal(tally_buffer_string(&out), weights[i].text);
		tally_buffer_release(&out);
	}
}

static double channel(uint32_t colour, unsigned shift)
{
	double value = (colour >> shift & 255) / 255.0;
	return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

/* Returns the contrast ratio from relative luminances (WCAG 2.2). */
static double contrast(uint32_t a, uint32_t b)
{
	double l = 0.2126 * channel(a, 16) + 0.7152 * channel(a, 8) + 0.0722 * channel(a, 0);
	double m = 0.2126 * channel(b, 16) + 0.7152 * channel(b, 8) + 0.0722 * channel(b, 0);
	return l > m ? (l + 0.05) / (m + 0.05) : (m + 0.05) / (l + 0.05);
}

static void text_has_the_contrast_that_wcag_wants(void **state)
{
	(void)state;
	const struct tally_flame_theme *const themes[] = { &tally_flame_light, &tally_flame_dark };
	for (unsigned t = 0; t < 2; t++) {
		for (unsigned kind = 0; kind < TALLY_FLAME_KINDS; kind++)
			for (unsigned shade = 0; shade < TALLY_FLAME_SHADES; shade++)
				assert_true(contrast(themes[t]->fills[kind][shade],
						     themes[t]->ink) >= 4.5);
		assert_true(contrast(themes[t]->text, themes[t]->background) >= 7);
		assert_true(contrast(themes[t]->muted, themes[t]->background) >= 4.5);
	}
}

/* Checks the page's colours: "light":["#6ea0e8",…],"dark":[…]. */
static void changes_are_told_apart_and_leave_names_legible(void **state)
{
	static const char *const names[] = { "\"light\":[", "\"dark\":[" };
	const struct tally_flame_theme *const themes[] = { &tally_flame_light, &tally_flame_dark };
	struct tally_buffer json = { 0 };
	const struct tally_flame_old old = { .largest = 0.1, .samples = 1000, .new_samples = 1000 };
	(void)state;
	tally_flame_change_json(&old, &json);
	for (unsigned t = 0; t < 2; t++) {
		const char *at = strstr(tally_buffer_string(&json), names[t]) + strlen(names[t]);
		uint32_t before = UINT32_MAX;
		for (int step = -TALLY_FLAME_STEPS; step <= TALLY_FLAME_STEPS;
		     step++, at += strlen("\"#000000\",")) {
			uint32_t colour = (uint32_t)strtoul(at + 2, NULL, 16), red = colour >> 16,
				 blue = colour & 255;
			assert_true(contrast(colour, themes[t]->ink) >= 4.5);
			assert_true(colour != before);
			assert_true(step >= -1 || blue > red);
			assert_true(step <= 1 || red > blue);
			before = colour;
		}
	}
	tally_buffer_release(&json);
	assert_int_equal(tally_flame_step(&old, 0.2, 0.3), TALLY_FLAME_STEPS);
	assert_int_equal(tally_flame_step(&old, 0.3, 0.2), -TALLY_FLAME_STEPS);
	/* 1000 samples each can't show this difference */
	assert_int_equal(tally_flame_step(&old, 0.2, 0.22), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals_are_self_plus_children),
		cmocka_unit_test(widths_are_weights_and_boxes_never_overlap),
		cmocka_unit_test(the_same_stacks_give_the_same_bytes),
		cmocka_unit_test(names_cannot_leave_their_place),
		cmocka_unit_test(style_and_script_fit_into_both_files),
		cmocka_unit_test(what_is_left_out_is_counted),
		cmocka_unit_test(deep_stacks_are_drawn_to_a_limit),
		cmocka_unit_test(many_threads_share_a_box_by_command),
		cmocka_unit_test(a_thread_that_calls_exec_is_counted_once),
		cmocka_unit_test(light_nodes_are_left_out_exactly),
		cmocka_unit_test(nothing_to_draw_is_an_error),
		cmocka_unit_test(labels_fit_or_are_cut),
		cmocka_unit_test(parameters_begin_behind_the_whole_name),
		cmocka_unit_test(weights_are_told_in_their_unit),
		cmocka_unit_test(text_has_the_contrast_that_wcag_wants),
		cmocka_unit_test(changes_are_told_apart_and_leave_names_legible),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
