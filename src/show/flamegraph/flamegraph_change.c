/* Red boxes grew, blue boxes shrank: people with any common kind of colour blindness can tell these
 * two apart. The steps follow the square root of the change, so that one large change doesn't leave
 * all others pale. A change within the sampling error has no colour. The test is Agresti and
 * Caffo's interval for the difference of two shares, which follows Wilson's idea and is simple
 * enough to repeat in the script. */
#include "flamegraph/flamegraph_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct scale {
	uint32_t shrank, none, grew; /* each has a contrast of 4.5 to 1 to its text */
};

static const struct scale light = { 0x6ea0e8, 0xe6e0d8, 0xf0795f },
			  dark = { 0x2b5fb8, 0x3b3630, 0xb0392b };

static const double deviations = 1.959963984540054; /* normal quantile for 95 % */

/* Children have the same order in both trees, so one cursor per level is enough. */
static void pair_nodes(struct tally_flame_old *old, const struct tally_flame_tree *new,
		       uint32_t *cursors, uint32_t *parents)
{
	const struct tally_flame_node *nodes = new->nodes.items, *others = old->by_comm.nodes.items;
	const uint32_t *ranks = old->by_thread.frame_ranks; /* both sides have the same frames */
	old->others[0] = parents[0] = 0;
	cursors[1] = 1;
	for (size_t i = 1; i < new->nodes.count; i++) {
		uint32_t depth = nodes[i].depth, parent = parents[depth - 1], at = UINT32_MAX;
		old->others[i] = parents[depth] = UINT32_MAX;
		if (parent == UINT32_MAX || nodes[i].id == TALLY_FLAME_RUN)
			continue;
		uint32_t end = others[parent].end;
		if (depth == 1) {
			for (at = 1; at < end; at = others[at].end)
				if (old->by_comm.slots.items[others[at].id].comm ==
				    new->slots.items[nodes[i].id].comm)
					break;
		} else {
			for (at = cursors[depth]; at < end; at = others[at].end)
				if (others[at].id != TALLY_FLAME_RUN &&
				    ranks[others[at].id] >= ranks[nodes[i].id])
					break;
			cursors[depth] = at;
			if (at < end && others[at].id != nodes[i].id)
				at = end;
		}
		if (at >= end)
			continue;
		old->others[i] = parents[depth] = at;
		cursors[depth + 1] = at + 1;
	}
}

double tally_flame_old_share(const struct tally_flame_old *old, size_t node)
{
	const struct tally_flame_node *nodes = old->by_comm.nodes.items;
	uint32_t other = old->others[node];
	if (other == UINT32_MAX)
		return 0;
	return (double)nodes[other].total / (double)nodes[0].total;
}

static double samples_of(const struct tally_stacks *stacks)
{
	if (stacks->total_samples)
		return (double)stacks->total_samples;
	return (double)stacks->total_weight;
}

int tally_flame_old_pair(struct tally_flame_old *old, const struct tally_stacks *new,
			 const struct tally_flame_tree *new_tree)
{
	size_t depths = (size_t)new_tree->depth_max + 3;
	uint32_t *cursors = calloc(depths, sizeof(*cursors)),
		 *parents = calloc(depths, sizeof(*parents));
	old->others = calloc(new_tree->nodes.count + 1, sizeof(*old->others));
	int result = -ENOMEM;
	old->samples = samples_of(old->stacks);
	old->new_samples = samples_of(new);
	if (!cursors || !parents || !old->others)
		goto out;
	pair_nodes(old, new_tree, cursors, parents);
	for (size_t i = 0; i < new_tree->nodes.count; i++) {
		double share = (double)new_tree->nodes.items[i].total /
			       (double)new_tree->nodes.items[0].total;
		double change = fabs(share - tally_flame_old_share(old, i));
		if (new_tree->nodes.items[i].id != TALLY_FLAME_RUN && change > old->largest)
			old->largest = change;
	}
	result = 0;
out:
	free(cursors);
	free(parents);
	return result;
}

void tally_flame_old_release(struct tally_flame_old *old)
{
	tally_flame_tree_release(&old->by_thread);
	tally_flame_tree_release(&old->by_comm);
	free(old->others);
	*old = (struct tally_flame_old){ 0 };
}

int tally_flame_step(const struct tally_flame_old *old, double old_share, double new_share)
{
	double n = old->samples + 2, m = old->new_samples + 2;
	double p = (old_share * old->samples + 1) / n, q = (new_share * old->new_samples + 1) / m;
	double error = sqrt(p * (1 - p) / n + q * (1 - q) / m), change = new_share - old_share;
	if (fabs(q - p) <= deviations * error || !(old->largest > 0) || change == 0)
		return 0;
	int step = (int)(TALLY_FLAME_STEPS * sqrt(fabs(change) / old->largest) + 0.5);
	if (step < 1)
		step = 1;
	if (step > TALLY_FLAME_STEPS)
		step = TALLY_FLAME_STEPS;
	if (change > 0)
		return step;
	return -step;
}

/* --- colours -------------------------------------------------------------- */

static uint32_t colour_of(const struct scale *scale, int step)
{
	uint32_t end = step < 0 ? scale->shrank : scale->grew, colour = 0;
	unsigned part = (unsigned)abs(step);
	for (unsigned shift = 0; shift < 24; shift += 8) {
		uint32_t from = scale->none >> shift & 255, to = end >> shift & 255;
		colour |= (from * (TALLY_FLAME_STEPS - part) + to * part) / TALLY_FLAME_STEPS
			  << shift;
	}
	return colour;
}

static void write_rules(struct tally_buffer *out, const struct scale *scale, const char *root)
{
	for (int step = -TALLY_FLAME_STEPS; step <= TALLY_FLAME_STEPS; step++)
		tally_buffer_printf(out, "%s.d%d{fill:#%06x}", root, step + TALLY_FLAME_STEPS,
				    colour_of(scale, step));
	tally_buffer_char(out, '\n');
}

void tally_flame_change_rules(struct tally_buffer *out)
{
	write_rules(out, &light, "");
	tally_buffer_text(out, "@media (prefers-color-scheme:dark){");
	write_rules(out, &dark, ":root:not([data-theme=light]) ");
	tally_buffer_text(out, "}\n");
	write_rules(out, &dark, ":root[data-theme=dark] ");
	tally_buffer_text(
		out,
		".flame-scale{display:flex;align-items:center;gap:8px;color:var(--muted)}"
		".flame-steps{display:flex;border-radius:3px;overflow:hidden}"
		".flame-legend .flame-steps i{width:18px;border-radius:0}"
		".flame-sides{white-space:nowrap}"
		/* The box must keep its height: otherwise the graph moves under the pointer. */
		".flame-details .flame-figures{"
		"overflow:hidden;text-overflow:ellipsis;white-space:nowrap}"
		"@media (max-width:720px){"
		".flame-details .flame-figures{white-space:normal;height:38px}"
		".flame-legend .flame-steps i{width:12px}.flame-sides{gap:8px}}\n");
}

static void write_colours(struct tally_buffer *out, const char *name, const struct scale *scale)
{
	tally_buffer_printf(out, ",\"%s\":[", name);
	for (int step = -TALLY_FLAME_STEPS; step <= TALLY_FLAME_STEPS; step++)
		tally_buffer_printf(out, "%s\"#%06x\"", step > -TALLY_FLAME_STEPS ? "," : "",
				    colour_of(scale, step));
	tally_buffer_char(out, ']');
}

void tally_flame_change_json(const struct tally_flame_old *old, struct tally_buffer *out)
{
	tally_buffer_printf(
		out,
		"\"change\":{\"steps\":%d,\"largest\":%.9g,\"oldSamples\":%.0f,\"newSamples\":%.0f",
		TALLY_FLAME_STEPS, old->largest, old->samples, old->new_samples);
	write_colours(out, "light", &light);
	write_colours(out, "dark", &dark);
	tally_buffer_char(out, '}');
}
