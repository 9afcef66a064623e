/* Commands from another program to a recording (control_fifo.h). */
#include "recorder/recorder_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tally_recorder_say(const struct tally_recorder *recorder, const char *format, ...)
{
	char text[512];
	va_list args;
	if (!recorder->options.say)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	recorder->options.say(recorder->options.context, text);
}

/* Switches all events, or those with a name, on or off. */
static int switch_events(struct tally_recorder *recorder, const char *name, bool enable,
			 struct tally_error *err)
{
	const struct tally_recorder_copies *copies = &recorder->copies;
	const struct tally_provider_ops *ops = recorder->provider->ops;
	size_t matched = 0;
	int result = *name ? 0 : tally_recorder_enable(recorder, enable, err);
	for (size_t i = 0; *name && !result && i < recorder->handles.count; i++) {
		const struct tally_recorder_handle *opened = &recorder->handles.items[i];
		if (strcmp(recorder->sources[opened->source].name, name) != 0)
			continue;
		matched++;
		if (enable && opened->copy_bytes &&
		    opened->copy_bytes != copies->sizes[copies->now])
			continue;
		result = ops->ioctl(recorder->provider, opened->handle,
				    enable ? TALLY_IOCTL_ENABLE : TALLY_IOCTL_DISABLE, NULL, 0);
		if (result < 0)
			tally_error_set(err, result, "switching '%s' failed: %s", name,
					tally_errno_text(result));
	}
	if (*name && !matched)
		tally_recorder_say(recorder, "--control: no event '%s' is recorded", name);
	else if (!result)
		tally_recorder_say(recorder, "%s%s %s", *name ? name : "events",
				   *name ? " is" : " are", enable ? "on" : "off");
	return result;
}

int tally_recorder_obey(struct tally_recorder *recorder,
			const struct tally_control_command *command, enum tally_recorder_wish *wish,
			struct tally_error *err)
{
	switch (command->verb) {
	case TALLY_CONTROL_ENABLE: return switch_events(recorder, command->argument, true, err);
	case TALLY_CONTROL_DISABLE: return switch_events(recorder, command->argument, false, err);
	case TALLY_CONTROL_SNAPSHOT:
		if (recorder->options.next_output)
			*wish = TALLY_RECORDER_WISH_NEXT_FILE;
		else
			tally_recorder_say(
				recorder,
				"--control: snapshot needs --overwrite or --switch-output");
		break;
	case TALLY_CONTROL_STOP:
		*wish = TALLY_RECORDER_WISH_STOP;
		break;
	case TALLY_CONTROL_EVLIST:
		for (size_t i = 0; i < recorder->source_count; i++)
			tally_recorder_say(recorder, "%s", recorder->sources[i].name);
		break;
	case TALLY_CONTROL_UNKNOWN:
		tally_recorder_say(
			recorder,
			"--control: '%s' is none of enable, disable, snapshot, stop, ping, evlist",
			command->argument);
		break;
	case TALLY_CONTROL_PING: break;
	}
	return 0;
}
