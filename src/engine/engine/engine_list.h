/* Intrusive lists: doubly linked ones, and the singly linked ones that hits walk. */
#ifndef TALLY_ENGINE_LIST_H
#define TALLY_ENGINE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct engine_list {
	struct engine_list *next, *previous;
};

#define ENGINE_CONTAINER(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* The body may remove `item`. */
#define ENGINE_LIST_EACH(item, head, type, member) \
	for (type *item = ENGINE_CONTAINER((head)->next, type, member), \
		  *item##_next = ENGINE_CONTAINER(item->member.next, type, member); \
	     &item->member != (head); \
	     item = item##_next, item##_next = ENGINE_CONTAINER(item->member.next, type, member))

/* Walks from the last item to the first. */
#define ENGINE_LIST_EACH_BACK(item, head, type, member) \
	for (type *item = ENGINE_CONTAINER((head)->previous, type, member); \
	     &item->member != (head); \
	     item = ENGINE_CONTAINER(item->member.previous, type, member))

static inline void engine_list_init(struct engine_list *head)
{
	head->next = head->previous = head;
}

static inline bool engine_list_empty(const struct engine_list *head)
{
	return head->next == head;
}

static inline void engine_list_add(struct engine_list *item, struct engine_list *after)
{
	item->next = after->next;
	item->previous = after;
	after->next->previous = item;
	after->next = item;
}

static inline void engine_list_add_tail(struct engine_list *item, struct engine_list *head)
{
	engine_list_add(item, head->previous);
}

/* Afterwards the item may be removed again, and engine_list_empty() of it is true. */
static inline void engine_list_remove(struct engine_list *item)
{
	item->next->previous = item->previous;
	item->previous->next = item->next;
	engine_list_init(item);
}

/* The listeners of a hit on one CPU.  Changed on that CPU only, with interrupts off, by single
 * stores, so that a hit at any instruction walks a consistent list.  A removed link keeps its
 * `next` until no hit can use it (engine_retire()). */
struct engine_hits {
	struct engine_hit_link *first;
};

struct engine_hit_link {
	struct engine_hit_link *next;
	struct engine_hit_link **where; /* NULL: on no list */
};

#define ENGINE_HITS_EACH(link, hits) \
	for (struct engine_hit_link *link = __atomic_load_n(&(hits)->first, __ATOMIC_ACQUIRE); \
	     link; link = __atomic_load_n(&link->next, __ATOMIC_ACQUIRE))

static inline void engine_hits_add(struct engine_hits *hits, struct engine_hit_link *link)
{
	link->next = hits->first;
	link->where = &hits->first;
	if (link->next)
		link->next->where = &link->next;
	__atomic_store_n(&hits->first, link, __ATOMIC_RELEASE);
}

static inline void engine_hits_remove(struct engine_hit_link *link)
{
	if (!link->where)
		return;
	if (link->next)
		link->next->where = link->where;
	__atomic_store_n(link->where, link->next, __ATOMIC_RELEASE);
	link->where = NULL;
}

#endif
