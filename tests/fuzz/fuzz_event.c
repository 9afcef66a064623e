/* Event expressions: for any text, the parser returns complete events, or an error whose position
 * is in the text. */
#include "fuzz.h"

#include "../event_fixture.h"

#include <stdlib.h>
#include <string.h>

static void check(const char *text, const struct tally_event_list *list, int code,
		  const struct tally_error *err)
{
	if (code < 0 && (list->count || list->group_count || !err->message[0]))
		abort();
	if (code < 0 && err->position != TALLY_NO_POSITION &&
	    (err->position < 0 || (size_t)err->position > strlen(text)))
		abort();
	for (size_t i = 0; i < list->count; i++)
		if (!list->items[i].name || !list->items[i].unit ||
		    list->items[i].group >= list->group_count)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_catalogue catalogue;
	struct tally_arena arena = TALLY_ARENA_INIT;
	struct tally_event_list list = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	char *text = strndup((const char *)data, size);
	if (!text || fixture_catalogue(&catalogue) < 0)
		abort();
	int code = tally_event_parse(text, &catalogue, &arena, &list, &err);
	check(text, &list, code, &err);
	for (size_t i = 0; i < list.count && i < 16; i++)
		if (!tally_event_name_of(&list.items[i].attr, &catalogue, &arena))
			abort();
	tally_event_list_release(&list);
	tally_arena_release(&arena);
	tally_catalogue_release(&catalogue);
	free(text);
	return 0;
}
