/* Modifiers, as in perf 6.1 (measured with `perf stat -vv`).
 *
 * u, k, h each mean "only": the first of them excludes all three, and each removes its own
 * exclusion.  H and G do the same for host and guest.  Without any modifier guests are excluded.
 * With one, that default no longer applies, unless u or p restore it.  (So cycles:k also counts the
 * kernels of guests.)  A group's modifiers are applied after a member's own.  Pinned and exclusive
 * apply to the leader only, since the kernel refuses them on members. */
#include "event/event_internal.h"

#include <errno.h>
#include <string.h>

static bool *letter_flag(struct tally_event_modifiers *m, char letter)
{
	switch (letter) {
	case 'u': return &m->user;
	case 'k': return &m->kernel;
	case 'h': return &m->hypervisor;
	case 'G': return &m->guest;
	case 'H': return &m->host;
	case 'I': return &m->idle;
	case 'S': return &m->sample_read;
	case 'D': return &m->pinned;
	case 'e': return &m->exclusive;
	case 'W': return &m->weak;
	case 'P': return &m->precise_max;
	default: return NULL;
	}
}

static int bad_letter(struct tally_event_parser *parser, size_t at)
{
	if (parser->text[at] == 'b')
		return tally_event_fail(parser, -EINVAL, at,
					"modifier 'b' (counting by BPF programs) is perf's alone");
	tally_event_fail(parser, -EINVAL, at,
			 "there is no modifier '%c': expected one of u k h H G I p P S D e W",
			 parser->text[at]);
	tally_error_hint(
		parser->err,
		"u user, k kernel, h hypervisor, H host, G guest, I not idle, p/pp/ppp/P precise, "
		"S sample the leader and read the group, D pinned, e exclusive, W weak group");
	return -EINVAL;
}

int tally_event_modifiers_parse(struct tally_event_parser *parser, size_t start, size_t end,
				struct tally_event_modifiers *out)
{
	*out = (struct tally_event_modifiers){ .start = start };
	for (size_t at = start; at < end; at++) {
		char letter = parser->text[at];
		bool *flag = letter_flag(out, letter);
		if (letter == 'p') {
			if (++out->precise > 3)
				return tally_event_fail(
					parser, -EINVAL, at,
					"the highest precision is ppp: expected at most three p");
			continue;
		}
		if (!flag)
			return bad_letter(parser, at);
		if (*flag)
			return tally_event_fail(parser, -EINVAL, at, "modifier '%c' is given twice",
						letter);
		*flag = true;
		if (letter == 'D')
			out->pinned_at = at;
		else if (letter == 'e')
			out->exclusive_at = at;
	}
	return 0;
}

static uint64_t spaces(const struct tally_event_modifiers *m, uint64_t flags)
{
	const uint64_t all = TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL |
			     TALLY_ATTR_EXCLUDE_HV;
	if ((m->user || m->kernel || m->hypervisor) && !(flags & all))
		flags |= all;
	if (m->user)
		flags &= ~TALLY_ATTR_EXCLUDE_USER;
	if (m->kernel)
		flags &= ~TALLY_ATTR_EXCLUDE_KERNEL;
	if (m->hypervisor)
		flags &= ~TALLY_ATTR_EXCLUDE_HV;
	return flags;
}

/* `given`: the event's own modifiers had H or G. */
static uint64_t machines(const struct tally_event_modifiers *m, uint64_t flags, bool given)
{
	const uint64_t all = TALLY_ATTR_EXCLUDE_HOST | TALLY_ATTR_EXCLUDE_GUEST;
	if ((m->host || m->guest) && !given)
		flags |= all;
	if (m->guest)
		flags &= ~TALLY_ATTR_EXCLUDE_GUEST;
	if (m->host)
		flags &= ~TALLY_ATTR_EXCLUDE_HOST;
	if ((m->user || m->precise) && !given && !m->host && !m->guest)
		flags |= TALLY_ATTR_EXCLUDE_GUEST;
	return flags;
}

int tally_event_modifiers_apply(struct tally_event_parser *parser, struct tally_event *event,
				const struct tally_event_modifiers *m, bool of_group)
{
	uint64_t flags = event->attr.flags;
	if (!of_group)
		flags &= ~TALLY_ATTR_EXCLUDE_GUEST;
	unsigned precise = m->precise;
	if (of_group)
		precise += tally_attr_precise(&event->attr);
	if (precise > 3)
		return tally_event_fail(
			parser, -EINVAL, m->start,
			"'%s' would be more precise than ppp with its group's modifiers",
			event->name);
	flags = machines(m, spaces(m, flags), event->host_guest_given);
	flags = (flags & ~TALLY_ATTR_PRECISE_IP) |
		((uint64_t)precise << TALLY_ATTR_PRECISE_IP_SHIFT);
	if (m->idle)
		flags |= TALLY_ATTR_EXCLUDE_IDLE;
	if (m->pinned)
		flags |= TALLY_ATTR_PINNED;
	if (m->exclusive)
		flags |= TALLY_ATTR_EXCLUSIVE;
	event->attr.flags = flags;
	event->host_guest_given |= m->host || m->guest;
	event->precise_max |= m->precise_max;
	event->group_read |= m->sample_read;
	event->weak_group |= m->weak;
	return 0;
}
