/* A balanced binary tree (AVL) that is never changed where it is shared.
 *
 * A sorted array would be simpler, but each mapping put in front of others moves them all, and each
 * process that changes one mapping after a fork copies them all: both take time with the square of
 * a recording's size.  Here each costs the logarithm.
 *
 * A node counts its references: from other nodes and from address spaces.  Whoever changes a node
 * with more than one reference changes a copy, and copies the nodes on the way to it.  Two trees
 * are joined through a node between them (Adams 1992, "Implementing sets efficiently in a
 * functional language"): all changes are splits and joins.
 *
 * Each change first makes sure that enough nodes are free, so that it can't fail halfway.
 */
#include "task/task.h"

#include <errno.h>
#include <stdlib.h>

struct tally_mapping_node {
	struct tally_mapping mapping;
	struct tally_mapping_node *left, *right; /* right: also the next free node */
	uint32_t references;
	uint32_t visit; /* number of the last one that saw this node and those below */
	uint8_t height; /* 1: a leaf */
	bool has_made;  /* this mapping, or one below, has is_made */
};

/* ---- nodes --------------------------------------------------------------- */

static unsigned height_of(const struct tally_mapping_node *node)
{
	if (!node)
		return 0;
	return node->height;
}

static bool has_made(const struct tally_mapping_node *node)
{
	return node && node->has_made;
}

/* Makes sure that a change of a tree finds the free nodes that it needs.  A change splits twice and
 * joins at most four times.  Each split, with the joins on its way back, copies at most five times
 * as many nodes as the tree is high; each other join at most twice as many. */
static int reserve(struct tally_mapping_pool *pool, const struct tally_mapping_node *root)
{
	size_t need = 20 * (size_t)height_of(root) + 20;
	while (pool->free_count < need) {
		struct tally_mapping_node *node = malloc(sizeof(*node));
		if (!node)
			return -ENOMEM;
		node->right = pool->free;
		pool->free = node;
		pool->free_count++;
	}
	return 0;
}

/* Returns a leaf with one reference. */
static struct tally_mapping_node *take(struct tally_mapping_pool *pool,
				       const struct tally_mapping *mapping)
{
	struct tally_mapping_node *node = pool->free;
	pool->free = node->right;
	pool->free_count--;
	*node = (struct tally_mapping_node){
		.mapping = *mapping, .references = 1, .height = 1, .has_made = mapping->is_made
	};
	return node;
}

static struct tally_mapping_node *hold(struct tally_mapping_node *node)
{
	if (node)
		node->references++;
	return node;
}

static void drop(struct tally_mapping_pool *pool, struct tally_mapping_node *node)
{
	while (node && !--node->references) {
		struct tally_mapping_node *right = node->right;
		drop(pool, node->left);
		node->right = pool->free;
		pool->free = node;
		pool->free_count++;
		node = right;
	}
}

/* Takes a reference, and returns the only one to a node that is equal. */
static struct tally_mapping_node *own(struct tally_mapping_pool *pool,
				      struct tally_mapping_node *node)
{
	if (node->references == 1)
		return node;
	struct tally_mapping_node *copy = take(pool, &node->mapping);
	copy->left = hold(node->left);
	copy->right = hold(node->right);
	copy->visit = node->visit;
	copy->height = node->height;
	copy->has_made = node->has_made;
	node->references--;
	return copy;
}

/* ---- trees: functions take the references that they get, and return one ----- */

static struct tally_mapping_node *with_children(struct tally_mapping_node *node,
						struct tally_mapping_node *left,
						struct tally_mapping_node *right)
{
	unsigned left_height = height_of(left), right_height = height_of(right);
	node->left = left;
	node->right = right;
	node->height = (uint8_t)(1 + (left_height > right_height ? left_height : right_height));
	node->has_made = node->mapping.is_made || has_made(left) || has_made(right);
	return node;
}

static struct tally_mapping_node *rotate_left(struct tally_mapping_pool *pool,
					      struct tally_mapping_node *node)
{
	struct tally_mapping_node *right = own(pool, node->right);
	struct tally_mapping_node *below = with_children(node, node->left, right->left);
	return with_children(right, below, right->right);
}

static struct tally_mapping_node *rotate_right(struct tally_mapping_pool *pool,
					       struct tally_mapping_node *node)
{
	struct tally_mapping_node *left = own(pool, node->left);
	struct tally_mapping_node *below = with_children(node, left->right, node->right);
	return with_children(left, left->left, below);
}

/* Balances a node of one reference, whose children differ by at most two in height. */
static struct tally_mapping_node *balance(struct tally_mapping_pool *pool,
					  struct tally_mapping_node *node)
{
	if (height_of(node->left) > height_of(node->right) + 1) {
		struct tally_mapping_node *left = node->left = own(pool, node->left);
		if (height_of(left->right) > height_of(left->left))
			node->left = rotate_left(pool, left);
		return rotate_right(pool, node);
	}
	if (height_of(node->right) > height_of(node->left) + 1) {
		struct tally_mapping_node *right = node->right = own(pool, node->right);
		if (height_of(right->left) > height_of(right->right))
			node->right = rotate_right(pool, right);
		return rotate_left(pool, node);
	}
	return with_children(node, node->left, node->right);
}

/* Joins two trees with a node of one reference between them. */
static struct tally_mapping_node *join(struct tally_mapping_pool *pool,
				       struct tally_mapping_node *left,
				       struct tally_mapping_node *middle,
				       struct tally_mapping_node *right)
{
	if (height_of(left) > height_of(right) + 1) {
		left = own(pool, left);
		left->right = join(pool, left->right, middle, right);
		return balance(pool, left);
	}
	if (height_of(right) > height_of(left) + 1) {
		right = own(pool, right);
		right->left = join(pool, left, middle, right->left);
		return balance(pool, right);
	}
	return with_children(middle, left, right);
}

/* Splits a tree: mappings that start before an address go to the left. */
static void split(struct tally_mapping_pool *pool, struct tally_mapping_node *node,
		  uint64_t address, struct tally_mapping_node **left,
		  struct tally_mapping_node **right)
{
	struct tally_mapping_node *middle;
	*left = *right = NULL;
	if (!node)
		return;
	node = own(pool, node);
	struct tally_mapping_node *node_left = node->left, *node_right = node->right;
	if (node->mapping.start < address) {
		split(pool, node_right, address, &middle, right);
		*left = join(pool, node_left, node, middle);
	} else {
		split(pool, node_left, address, left, &middle);
		*right = join(pool, middle, node, node_right);
	}
}

/* Takes the last node out of a tree that has one.  Returns the rest. */
static struct tally_mapping_node *take_last(struct tally_mapping_pool *pool,
					    struct tally_mapping_node *node,
					    struct tally_mapping_node **last)
{
	node = own(pool, node);
	if (!node->right) {
		*last = node;
		return node->left;
	}
	struct tally_mapping_node *rest = take_last(pool, node->right, last);
	return join(pool, node->left, node, rest);
}

static struct tally_mapping_node *join_two(struct tally_mapping_pool *pool,
					   struct tally_mapping_node *left,
					   struct tally_mapping_node *right)
{
	struct tally_mapping_node *last;
	if (!left)
		return right;
	if (!right)
		return left;
	left = take_last(pool, left, &last);
	return join(pool, left, last, right);
}

static const struct tally_mapping *last_of(const struct tally_mapping_node *node)
{
	while (node && node->right)
		node = node->right;
	if (!node)
		return NULL;
	return &node->mapping;
}

/* Splits off what lies before `start` and behind `end`, and drops what is mapped between. */
static void cut(struct tally_mapping_pool *pool, struct tally_mapping_node *root, uint64_t start,
		uint64_t end, struct tally_mapping_node **before,
		struct tally_mapping_node **behind)
{
	struct tally_mapping_node *inside, *node;
	split(pool, root, start, before, &inside);
	split(pool, inside, end, &inside, behind);
	const struct tally_mapping *last = last_of(inside ? inside : *before);
	if (last && last->end > end) {
		struct tally_mapping rest = *last;
		rest.file_offset += end - rest.start;
		rest.start = end;
		*behind = join(pool, NULL, take(pool, &rest), *behind);
	}
	last = last_of(*before);
	if (last && last->end > start) {
		struct tally_mapping_node *others = take_last(pool, *before, &node);
		node->mapping.end = start;
		*before = join(pool, others, node, NULL);
	}
	drop(pool, inside);
}

/* ---- the interface ------------------------------------------------------- */

const struct tally_mapping *tally_mappings_behind(const struct tally_mappings *mappings,
						  uint64_t address)
{
	const struct tally_mapping *found = NULL;
	for (const struct tally_mapping_node *node = mappings->root; node;) {
		bool is_behind = node->mapping.end > address;
		if (is_behind)
			found = &node->mapping;
		node = is_behind ? node->left : node->right;
	}
	return found;
}

const struct tally_mapping *tally_mappings_before(const struct tally_mappings *mappings,
						  uint64_t address)
{
	const struct tally_mapping *found = NULL;
	for (const struct tally_mapping_node *node = mappings->root; node;) {
		bool is_before = node->mapping.end <= address;
		if (is_before)
			found = &node->mapping;
		node = is_before ? node->right : node->left;
	}
	return found;
}

const struct tally_mapping *tally_mappings_made_behind(const struct tally_mappings *mappings,
						       uint64_t address)
{
	/* the last node on the way down from which a left turn was made, and whose mapping or
	 * right side has one */
	const struct tally_mapping_node *from = NULL, *node = mappings->root;
	while (node) {
		bool is_behind = node->mapping.end > address;
		if (is_behind && (node->mapping.is_made || has_made(node->right)))
			from = node;
		node = is_behind ? node->left : node->right;
	}
	if (!from)
		return NULL;
	if (from->mapping.is_made)
		return &from->mapping;
	for (node = from->right; has_made(node->left) || !node->mapping.is_made;)
		node = has_made(node->left) ? node->left : node->right;
	return &node->mapping;
}

int tally_mappings_put(struct tally_mapping_pool *pool, struct tally_mappings *mappings,
		       const struct tally_mapping *mapping)
{
	struct tally_mapping_node *before, *behind;
	if (reserve(pool, mappings->root) < 0)
		return -ENOMEM;
	cut(pool, mappings->root, mapping->start, mapping->end, &before, &behind);
	mappings->root = join(pool, before, take(pool, mapping), behind);
	return 0;
}

int tally_mappings_remove(struct tally_mapping_pool *pool, struct tally_mappings *mappings,
			  uint64_t start, uint64_t end)
{
	struct tally_mapping_node *before, *behind;
	if (reserve(pool, mappings->root) < 0)
		return -ENOMEM;
	cut(pool, mappings->root, start, end, &before, &behind);
	mappings->root = join_two(pool, before, behind);
	return 0;
}

struct tally_mappings tally_mappings_share(const struct tally_mappings *mappings)
{
	return (struct tally_mappings){ hold(mappings->root) };
}

void tally_mappings_drop(struct tally_mapping_pool *pool, struct tally_mappings *mappings)
{
	drop(pool, mappings->root);
	mappings->root = NULL;
}

static void visit(struct tally_mapping_node *node, uint32_t number,
		  void (*handle)(struct tally_mapping *mapping, void *context), void *context)
{
	for (; node && node->visit != number; node = node->right) {
		node->visit = number;
		visit(node->left, number, handle, context);
		handle(&node->mapping, context);
	}
}

void tally_mappings_visit(struct tally_mapping_pool *pool, const struct tally_mappings *mappings,
			  void (*handle)(struct tally_mapping *mapping, void *context),
			  void *context)
{
	visit(mappings->root, pool->visits, handle, context);
}

void tally_mapping_pool_release(struct tally_mapping_pool *pool)
{
	while (pool->free) {
		struct tally_mapping_node *next = pool->free->right;
		free(pool->free);
		pool->free = next;
	}
	pool->free_count = 0;
}
