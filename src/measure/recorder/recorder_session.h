/* One run of the recorder, as all its parts see it: the targets, the options, the started command,
 * and the counts so far. */
#ifndef TALLY_RECORDER_SESSION_H
#define TALLY_RECORDER_SESSION_H

#include "base/arena.h"
#include "recorder/recorder.h"

#include <sys/resource.h>

struct tally_recorder_session {
	struct tally_provider *provider;
	struct tally_target *target;
	struct tally_recorder_options options;
	struct tally_spawn *spawn;
	bool is_pipe;               /* the output is one */
	struct tally_buffer *notes; /* lines for the user, while opening */
	struct tally_arena arena;
	uint64_t start_ns;
	struct tally_recorder_status status;
	int wait_status; /* the command's, once it has ended */
	struct rusage command_used; /* including its children that were waited for */
	bool command_ended;
};

uint64_t tally_recorder_now_ns(void);
/* Passes a line to options.say. */
void tally_recorder_say(const struct tally_recorder_session *session, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Takes a signal.  Returns true if it asks for the end; sets *asked_next if it asks for the next
 * file. */
bool tally_recorder_take_signal(struct tally_recorder_session *session,
				const struct tally_signal *signal, bool *asked_next);
/* Takes all pending signals.  Returns how many asked for the end. */
unsigned tally_recorder_take_signals(struct tally_recorder_session *session,
				     struct tally_signals *signals);
/* Does the work of tally_recorder_wait(). */
int tally_recorder_await_command(struct tally_recorder_session *session,
				 struct tally_signals *signals, enum tally_recorder_end end);

/* True if the command is recorded; false if it only determines the time for other targets. */
static inline bool tally_recorder_follows_command(const struct tally_recorder_session *session)
{
	return session->target->command && !session->target->all &&
	       !tally_target_has_tasks(session->target);
}

/* Returns the command's name; NULL if something else is recorded. */
static inline const char *tally_recorder_command(const struct tally_recorder_session *session)
{
	return tally_recorder_follows_command(session) ? session->target->command[0] : NULL;
}

/* True if the whole machine is recorded, so that CPUs may go offline and come online. */
static inline bool tally_recorder_follows_cpus(const struct tally_recorder_session *session)
{
	return session->target->all &&
	       tally_provider_can(session->provider, TALLY_PROVIDER_HOTPLUG);
}

#endif
