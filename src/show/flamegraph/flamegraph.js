/* The live flame graph, the same in SVG and HTML.  flamegraph_data.c describes the data.
 *
 * A view is a tree over the data: the selected threads, merged by command.  The canvas shows a range of weights
 * [from, to] of it; zooming moves the range.  Boxes at least NARROW pixels wide are drawn one by one; narrower
 * neighbours share a grey box, which splits when one zooms in.
 *
 * Names come from the profiled program and are untrusted: they are only ever set as text.
 */
(function () {
'use strict';

const ROW = 18, BOX = 17, NARROW = 0.4, ZOOM_MS = 190;
const XHTML = 'http://www.w3.org/1999/xhtml', SVG = 'http://www.w3.org/2000/svg';
const FONT = '11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
const data = JSON.parse(document.getElementById('tally-data').textContent);
const page = document.documentElement;
const ALL = -1, THREAD_KIND = data.kinds.length - 1;

/* ---- The tree ---- */

/* A node: `frame` is a frame's number, or a command's name; kids are sorted by name. */
function makeNode(frame, parent, self, hidden) {
	return { frame, parent, self, hidden, total: 0, depth: parent ? parent.depth + 1 : 0, start: 0, kids: [] };
}

/* Makes one tree per thread from the data's nodes. */
//if diff
function readThreads(data) {
	const numbers = data.nodes, threads = [];
//else
function readThreads() {
	const numbers = data.nodes, threads = [];
//end
	let at = 0;
	function read(parent) {
		const word = numbers[at++];
//if diff
		const self = data.scale * (word & 1 ? numbers[at++] : 0), hidden = data.scale * (word & 2 ? numbers[at++] : 0);
//else
		const self = word & 1 ? numbers[at++] : 0, hidden = word & 2 ? numbers[at++] : 0;
//end
		const node = makeNode(Math.floor(word / 4), parent, self, hidden);
		if (parent)
			parent.kids.push(node);
		return { node, left: numbers[at++] };
	}
	while (at < numbers.length) {
		const path = [read(null)], index = path[0].node.frame;
		while (path.length) {
			const top = path[path.length - 1];
			if (top.left) {
				top.left--;
				path.push(read(top.node));
			} else {
				path.pop();
				top.node.total = top.node.self + top.node.hidden;
				for (const kid of top.node.kids)
					top.node.total += kid.total;
				if (!path.length) {
					const [comm, pid, tid, count] = data.threads.slice(4 * index, 4 * index + 4);
					threads.push({ comm, pid, tid, count, root: top.node });
				}
			}
		}
	}
	return threads;
}

/* Adds `from` to `into`; both have the same frame, and kids sorted by frame. */
function mergeInto(into, from) {
	const work = [[into, from]];
	while (work.length) {
		const [a, b] = work.pop();
		const kids = [];
		let i = 0;
		a.self += b.self;
		a.hidden += b.hidden;
		a.total += b.total;
		for (const kid of b.kids) {
			while (i < a.kids.length && a.kids[i].frame < kid.frame)
				kids.push(a.kids[i++]);
			let mine;
			if (i < a.kids.length && a.kids[i].frame === kid.frame)
				mine = a.kids[i++];
			else
				mine = makeNode(kid.frame, a, 0, 0);
			kids.push(mine);
			work.push([mine, kid]);
		}
		while (i < a.kids.length)
			kids.push(a.kids[i++]);
		a.kids = kids;
	}
}

/* Sets the nodes' positions and numbers, the depth, and the weight of each kind of code. */
function finishView(root) {
	const nodes = [], work = [root], kinds = new Array(data.kinds.length).fill(0);
	let depth = 0;
	while (work.length) {
		const node = work.pop();
		let start = node.start;
		node.index = nodes.length;
		nodes.push(node);
		depth = Math.max(depth, node.depth);
		kinds[kindOf(node)] += node.self + node.hidden;
		for (const kid of node.kids) {
			kid.start = start;
			start += kid.total;
		}
		for (let i = node.kids.length - 1; i >= 0; i--)
			work.push(node.kids[i]);
	}
	return { root, nodes, kinds, depth };
}

/* `chosen`: '' for all, 'c' + a command, 't' + a thread's index. */
//if diff
function makeSide(chosen, threads) {
//else
function makeView(chosen) {
//end
	const root = makeNode(ALL, null, 0, 0), comms = new Map();
	threads.forEach((thread, i) => {
		if (chosen && chosen !== 'c' + thread.comm && chosen !== 't' + i)
			return;
		let node = comms.get(thread.comm);
		if (!node) {
			node = makeNode(thread.comm, root, 0, 0);
			comms.set(thread.comm, node);
			root.kids.push(node);
		}
		mergeInto(node, thread.root);
		root.total += thread.root.total;
	});
	return finishView(root);
}

//if diff
/* Pairs each node with the other tree's node of the same calls. */
function pairNodes(root, otherRoot) {
	const work = [[root, otherRoot]];
	while (work.length) {
		const [node, other] = work.pop();
		node.other = other;
		if (other)
			other.other = node;
		const kids = new Map((other ? other.kids : []).map(kid => [kid.frame, kid]));
		for (const kid of node.kids)
			work.push([kid, kids.get(kid.frame) || null]);
	}
}

/* Makes the drawn side's view, its nodes paired with the other side's. */
function makeView(chosen) {
	const views = { now: makeSide(chosen, threads), before: makeSide(chosen, oldThreads) };
	for (const view of [views.now, views.before])
		for (const node of view.nodes)
			node.other = null;
	pairNodes(views.now.root, views.before.root);
	const view = views[state.side];
	view.otherTotal = views[state.side === 'now' ? 'before' : 'now'].root.total;
	return view;
}

/* Returns the old and new share and the colour's step, like flamegraph/flamegraph_change.c. */
function changeOf(node) {
	const { steps, largest, oldSamples, newSamples } = data.change, all = { now: state.view.root.total, before: state.view.otherTotal };
	if (state.side === 'before')
		[all.now, all.before] = [all.before, all.now];
	const here = node.total, there = node.other ? node.other.total : 0;
	const now = state.side === 'now' ? here : there, before = state.side === 'now' ? there : here;
	const share = all.now ? now / all.now : 0, oldShare = all.before ? before / all.before : 0;
	const n = oldSamples * all.before / wholes.before + 2, m = newSamples * all.now / wholes.now + 2;
	const p = (oldShare * (n - 2) + 1) / n, q = (share * (m - 2) + 1) / m, change = share - oldShare;
	const error = Math.sqrt(p * (1 - p) / n + q * (1 - q) / m);
	let step = 0;
	if (Math.abs(q - p) > 1.959963984540054 * error && largest > 0 && change !== 0)
		step = Math.sign(change) * Math.min(steps, Math.max(1, Math.floor(steps * Math.sqrt(Math.abs(change) / largest) + 0.5)));
	return { now, before, share, oldShare, change, step };
}

function points(change) {
	return (change > 0 ? '+' : change < 0 ? '\u2212' : '') + Math.abs(100 * change).toFixed(2) + ' points';
}

//end
function isThread(node) { return node.depth < 2; }
function styleOf(node) { return isThread(node) ? 4 * THREAD_KIND + (node.depth ? 1 : 0) : data.frames[3 * node.frame + 2]; }
function kindOf(node) { return styleOf(node) >> 2; }
function nameOf(node) {
	if (node.frame === ALL)
		return 'all';
	return isThread(node) ? node.frame : data.names[data.frames[3 * node.frame]];
}
function objectOf(node) {
	const object = isThread(node) ? 0 : data.frames[3 * node.frame + 1];
	return object ? data.objects[object - 1] : '';
}

/* ---- Words ---- */

function scaled(value, unit) {
	return value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + ' ' + unit;
}

function count(number) {
	return String(Math.round(number)).replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

function weightText(weight) {
	const value = weight * data.scale;
	if (data.unit === 'ns') {
		for (const [least, scale, unit] of [[60e9, 60e9, 'min'], [0.9995e9, 1e9, 's'], [0.9995e6, 1e6, 'ms'],
						     [0.9995e3, 1e3, '\u00b5s']])
			if (value >= least)
				return scaled(value / scale, unit);
		return scaled(value, 'ns');
	}
	if (data.unit === 'millionths')
		return scaled(value / 1e6, '').trim();
	if (data.unit === 'samples')
		return count(value) + (value === 1 ? ' sample' : ' samples');
	const noun = data.unit === 'events' && data.event ? data.event : data.unit;
	for (const [least, scale, unit] of [[0.9995e12, 1e12, 'T '], [0.9995e9, 1e9, 'G '], [0.9995e6, 1e6, 'M '],
					     [1e5, 1e3, 'k ']])
		if (value >= least)
			return scaled(value / scale, unit + noun);
	return count(value) + ' ' + noun;
}

function percent(part, whole) {
	const value = whole ? 100 * part / whole : 0;
	return (value >= 99.995 ? '100' : value.toFixed(value && value < 0.1 ? 3 : 2)) + '\u00a0%';
}

/* ---- The page ---- */

function make(name, className, parent, text) {
	const element = document.createElementNS(XHTML, name);
	if (className)
		element.setAttribute('class', className);
	if (text !== undefined)
		element.textContent = text;
	if (parent)
		parent.appendChild(element);
	return element;
}

function makeIcon(parent, ...paths) {
	const icon = document.createElementNS(SVG, 'svg');
	icon.setAttribute('class', 'icon');
	icon.setAttribute('viewBox', '0 0 16 16');
	icon.setAttribute('aria-hidden', 'true');
	for (const d of paths) {
		const path = document.createElementNS(SVG, 'path');
		path.setAttribute('d', d);
		icon.appendChild(path);
	}
	parent.appendChild(icon);
	return icon;
}

function makeButton(parent, label, action, ...paths) {
	const button = make('button', '', parent);
	button.type = 'button';
	button.title = label;
	button.setAttribute('aria-label', label);
	if (paths.length)
		makeIcon(button, ...paths);
	button.addEventListener('click', action);
	return button;
}

/* In an SVG file the page is a foreignObject that covers the static picture. */
function makeRoot() {
	if (page.namespaceURI !== SVG)
		return make('div', 'flame', document.body);
	const cover = document.createElementNS(SVG, 'foreignObject');
	for (const element of [page, cover]) {
		element.setAttribute('width', '100%');
		element.setAttribute('height', '100%');
	}
	page.removeAttribute('viewBox');
	document.getElementById('tally-picture').style.display = 'none';
	page.appendChild(cover);
	return make('div', 'flame', cover);
}

//if diff
const threads = readThreads(data), oldThreads = readThreads(data.old);
const wholes = { now: 0, before: 0 };
for (const thread of threads)
	wholes.now += thread.root.total;
for (const thread of oldThreads) {
	wholes.before += thread.root.total;
	if (!threads.some(one => one.comm === thread.comm)) /* so that it can be selected */
		threads.push({ ...thread, root: makeNode(0, null, 0, 0) });
}
data.left.weight *= data.scale;
data.left.below *= data.scale;
data.scale = 1;
//else
const threads = readThreads();
//end
const ui = { root: makeRoot() };
const state = {
	chosen: '', view: null, zoom: null, from: 0, to: 1, icicle: data.icicle, search: '', matches: null, matchedWeight: 0,
	matchedFrames: 0, kind: -1, hover: null, cursor: null, theme: page.dataset.theme || '', boxes: [], narrowBoxes: [],
	animation: 0,
//if diff
	side: 'now',
//end
};

function buildHead() {
	const head = make('header', 'flame-head', ui.root);
	const titles = make('div', 'flame-titles', head);
	make('h1', '', titles, data.title);
	make('div', 'flame-subtitle', titles, data.subtitle);
	const tools = make('div', 'flame-tools', head);

	ui.threads = make('select', '', tools);
	ui.threads.setAttribute('aria-label', 'Threads');
	ui.threads.addEventListener('change', () => choose(ui.threads.value));
	fillThreads();

	const search = make('label', 'flame-search', tools);
	makeIcon(search, 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9z', 'M10.4 10.4 14 14');
	ui.search = make('input', '', search);
	ui.search.type = 'search';
	ui.search.placeholder = 'Search, or /regex/';
	ui.search.setAttribute('aria-label', 'Search names');
	ui.search.spellcheck = false;
	ui.search.addEventListener('input', () => searchFor(ui.search.value));
	ui.slash = make('kbd', '', search, '/');
	ui.matched = make('span', 'flame-matched', search);
	ui.matched.setAttribute('role', 'status');
	ui.clear = makeButton(search, 'Clear the search (Esc)', () => searchFor(''), 'M4 4l8 8', 'M12 4l-8 8');

	ui.reset = makeButton(tools, 'Zoom out to everything (Esc)', () => zoomTo(state.view.root),
			      'M2.5 6V2.5H6', 'M10 2.5h3.5V6', 'M13.5 10v3.5H10', 'M6 13.5H2.5V10');
//if diff
	ui.sides = makeButton(tools, 'Draw what was before, or what is now (W)', turnSide, 'M2.5 5.5h9', 'M9 3l2.5 2.5L9 8', 'M13.5 10.5h-9',
			      'M7 8l-2.5 2.5L7 13');
	ui.sides.setAttribute('class', 'flame-sides');
	ui.sideName = make('span', '', ui.sides);
	nameSide();
//end
	ui.flip = makeButton(tools, 'Turn upside down (I)', flip, 'M5 2.5v11', 'M2.5 5 5 2.5 7.5 5', 'M11 13.5v-11',
			     'M8.5 11 11 13.5 13.5 11');
	ui.theme = makeButton(tools, 'Light or dark (D)', turnTheme, 'M8 2.5a5.5 5.5 0 1 0 0 11z',
			      'M8 2.5a5.5 5.5 0 0 1 0 11');
}

function fillThreads() {
	const total = threads.reduce((sum, thread) => sum + thread.root.total, 0), comms = new Map();
	function option(parent, value, text, weight) {
		const element = make('option', '', parent, text + ' \u2014 ' + percent(weight, total));
		element.value = value;
	}
	threads.forEach((thread, i) => {
		const comm = comms.get(thread.comm) || { name: thread.comm, weight: 0, threads: [] };
		comms.set(thread.comm, comm);
		comm.weight += thread.root.total;
		comm.threads.push({ thread, i });
	});
	make('option', '', ui.threads, 'All threads').value = '';
	for (const comm of Array.from(comms.values()).sort((a, b) => b.weight - a.weight)) {
		option(ui.threads, 'c' + comm.name, comm.name, comm.weight);
		if (comm.threads.length < 2)
			continue;
		comm.threads.sort((a, b) => b.thread.root.total - a.thread.root.total);
		for (const { thread, i } of comm.threads) {
			const ids = thread.pid && thread.pid !== thread.tid ? thread.pid + '/' + thread.tid : thread.tid;
			const label = thread.tid ? comm.name + ' ' + ids : thread.count + ' more of ' + comm.name;
			option(ui.threads, 't' + i, '\u00a0\u00a0\u00a0' + label, thread.root.total);
		}
	}
	ui.threads.hidden = threads.length < 2;
}

function buildGraph() {
	ui.graph = make('main', 'flame-graph', ui.root);
	ui.canvas = make('canvas', '', ui.graph);
	ui.canvas.tabIndex = 0;
	ui.canvas.setAttribute('role', 'application');
	ui.canvas.setAttribute('aria-label', 'Flame graph: arrow keys walk, Enter zooms, Escape zooms out');
	ui.space = make('div', '', ui.graph);
	ui.context = ui.canvas.getContext('2d');
	ui.graph.addEventListener('scroll', draw);
	ui.canvas.addEventListener('mousemove', event => hoverAt(event.clientX, event.clientY));
	ui.canvas.addEventListener('mouseleave', () => hover(null));
	ui.canvas.addEventListener('click', event => {
		const box = boxAt(event.clientX, event.clientY);
		if (box)
			zoomTo(box.node);
	});
}

function buildFoot() {
	const foot = make('footer', 'flame-foot', ui.root);
	ui.details = make('div', 'flame-details', foot);
	ui.details.setAttribute('aria-live', 'polite');
	ui.legend = make('div', 'flame-legend', foot);
	ui.note = make('div', 'flame-note', foot);
	const left = data.left;
	ui.note.hidden = !left.frames;
	ui.note.textContent = count(left.frames) + ' frames lighter than ' + weightText(left.below) +
		' are not in this file: ' + percent(left.weight, threads.reduce((sum, t) => sum + t.root.total, 0)) +
		' of the weight lies in them';
	ui.tip = make('div', 'flame-tip', ui.root);
	ui.tip.setAttribute('role', 'tooltip');
	ui.tip.hidden = true;
}

//if diff
/* The colours from shrank most to grew most. */
function fillLegend() {
	const largest = (100 * data.change.largest).toFixed(1);
	ui.legend.textContent = '';
	const scale = make('div', 'flame-scale', ui.legend);
	make('span', '', scale, 'shrank \u2212' + largest);
	const steps = make('span', 'flame-steps', scale);
	for (const colour of changeColours())
		make('i', '', steps).style.background = colour;
	make('span', '', scale, 'grew +' + largest + ' points');
	scale.title = 'In the middle: noise, no more change than sampling alone makes';
}

function changeColours() { return isDark() ? data.change.dark : data.change.light; }

function nameSide() {
	ui.sideName.textContent = 'widths: ' + state.side;
}

/* Switches sides; keeps the zoom as far as the other side has those calls. */
function turnSide() {
	let node = state.zoom;
	while (node && !node.other)
		node = node.parent;
	const twin = node && node.other;
	const path = [];
	for (let at = twin; at && at.parent; at = at.parent)
		path.unshift(at.frame);
	state.side = state.side === 'now' ? 'before' : 'now';
	nameSide();
	choose(state.chosen);
	let there = state.view.root;
	for (const frame of path)
		there = there.kids.find(kid => kid.frame === frame) || there;
	zoomTo(there, true);
}
//else
/* Makes a button for each kind, with its share; pressing it fades other kinds. */
function fillLegend() {
	const fills = colours().fills;
	ui.legend.textContent = '';
	data.kinds.forEach((name, kind) => {
		const weight = state.view.kinds[kind];
		if (kind === THREAD_KIND ? !weight : !state.view.nodes.some(node => kindOf(node) === kind))
			return;
		const label = kind === THREAD_KIND ? 'no stack' : name === 'jit' ? 'JIT' : name;
		const button = makeButton(ui.legend, 'Show ' + label + ' alone', () => {
			state.kind = state.kind === kind ? -1 : kind;
			fillLegend();
			draw();
		});
		button.title = percent(weight, state.view.root.total) + ' of the weight was seen in ' + label;
		button.setAttribute('aria-pressed', state.kind === kind);
		make('i', '', button).style.background = fills[kind][0];
		button.appendChild(document.createTextNode(label));
		make('span', '', button, percent(weight, state.view.root.total));
	});
}
//end

/* ---- Themes ---- */

const darkQuery = window.matchMedia('(prefers-color-scheme: dark)');
function isDark() { return state.theme ? state.theme === 'dark' : darkQuery.matches; }
function colours() { return isDark() ? data.palette.dark : data.palette.light; }

function setTheme(theme) {
	state.theme = theme;
	if (theme)
		page.setAttribute('data-theme', theme);
	else
		page.removeAttribute('data-theme');
	fillLegend();
	draw();
}

function turnTheme() {
	setTheme(isDark() ? 'light' : 'dark');
	keepState();
}

/* ---- Drawing ---- */

function mix(colour, other, share) {
	const channel = (text, i) => parseInt(text.substr(1 + 2 * i, 2), 16);
	return '#' + [0, 1, 2].map(i => Math.round(channel(colour, i) * (1 - share) + channel(other, i) * share)
		.toString(16).padStart(2, '0')).join('');
}

/* Same as output/function_name.c. */
function withoutParameters(name) {
	let inner = 0;
	for (let at = 0; at < name.length; at++) {
		if (name.slice(Math.max(at - 8, 0), at) === 'operator') {
			at += /^(\(\)|[<>=-]*)/.exec(name.slice(at))[0].length;
			if (at >= name.length)
				break;
		}
		if ('<{'.includes(name[at]))
			inner++;
		else if ('>}'.includes(name[at]) && inner && name[at - 1] !== '-')
			inner--;
		if (name[at] !== '(' || inner)
			continue;
		let depth = 0, behind = at;
		do
			depth += (name[behind] === '(') - (name[behind] === ')');
		while (++behind < name.length && depth);
		if (at && name[at - 1] === '.' && name[behind] === '.')
			return name;
		const next = name.slice(behind).replace(
			/^( (const|volatile|noexcept|&&?|immutable|shared|inout|scope)(?=[ :.]))+/, '');
		if (at && name[at - 1] !== ' ' && next[0] !== '.' && !next.startsWith('::') &&
			!name.startsWith('(anonymous namespace)', at))
			return name.slice(0, at);
		at = behind - 1;
	}
	return name;
}

/* As output/brief_name.c has it: `fits` says what there is room for; arguments don't come back. */
function briefName(name, fits) {
	const operatorAt = at => name.slice(Math.max(at - 8, 0), at) === 'operator' ?
		/^(\(\)|[<>=-]*)/.exec(name.slice(at))[0].length : 0;
	let folded = '', depth = 0, opened = 0;
	for (let at = 0; at < name.length; at++) {
		const skip = operatorAt(at);
		if (skip) {
			folded += depth ? '' : name.slice(at, at + skip);
			at += skip - 1;
			continue;
		}
		if (name[at] === '>' && name[at - 1] !== '-' && --depth === 0)
			folded += at - opened > 4 ? '\u2026' : name.slice(opened + 1, at);
		if (depth < 0)
			return name;
		folded += depth ? '' : name[at];
		if (name[at] === '<' && !depth++)
			opened = at;
	}
	if (depth)
		return name;
	/* Drop leading parts while the rest has a meaning alone. */
	const parts = [0];
	for (let at = 0; at < folded.length; at++) {
		depth += '<({['.includes(folded[at]);
		depth -= '>)}]'.includes(folded[at]) && folded[at - 1] !== '-';
		if (!depth && folded.startsWith('::', at))
			parts.push(at + 2);
	}
	let brief = folded;
	for (let i = 1; i < parts.length && !fits(brief); i++) {
		const rest = folded.slice(parts[i]);
		if (rest[0] === '{' || rest.startsWith('operator()') || /^h[0-9a-f]{16}$/.test(rest))
			break;
		brief = rest;
	}
	return brief;
}

const fitted = new Map();

/* Returns the name that fits: whole, brief, without parameters, or cut. */
function fit(name, width) {
	const advance = ui.advance, room = Math.floor(width / advance);
	if (room < 4)
		return '';
	if (name.length <= room && /^[\x20-\x7e]*$/.test(name))
		return name;
	const key = room + ' ' + name;
	let text = fitted.get(key);
	if (text !== undefined)
		return text;
	const measure = t => ui.context.measureText(t).width <= width;
	text = name;
	if (!measure(text))
		text = briefName(name, measure);
	if (!measure(text))
		text = withoutParameters(text);
	if (!measure(text)) {
		const letters = Array.from(text.slice(0, 2 * room + 2));
		let length = Math.min(letters.length, room - 1);
		while (length > 0 && !measure(letters.slice(0, length).join('') + '\u2026'))
			length--;
		text = letters.slice(0, length).join('') + '\u2026';
	}
	if (fitted.size > 20000)
		fitted.clear();
	fitted.set(key, text);
	return text;
}

/* Returns the boxes to draw for the current range of weights. */
function layout(width) {
	const scale = width / (state.to - state.from), boxes = [], narrow = [], work = [state.view.root];
	while (work.length) {
		const node = work.pop();
		const left = (node.start - state.from) * scale, right = left + node.total * scale;
		const x = Math.max(left, 0), end = Math.min(right, width);
		boxes.push({ node, x, width: end - x, isOuter: left < -0.5 || right > width + 0.5 });
		let run = null;
		for (const kid of node.kids) {
			const kidLeft = (kid.start - state.from) * scale, kidWidth = kid.total * scale;
			if (kidLeft + kidWidth <= 0)
				continue;
			if (kidLeft >= width)
				break;
			if (kidWidth >= NARROW) {
				work.push(kid);
				run = null;
			} else if (run) {
				run.width = kidLeft + kidWidth - run.x;
				run.count++;
				run.weight += kid.total;
			} else {
				run = { node, x: Math.max(kidLeft, 0), width: kidWidth, count: 1, weight: kid.total };
				narrow.push(run);
			}
		}
	}
	state.boxes = boxes;
	state.narrowBoxes = narrow.filter(run => run.width >= NARROW);
}

/* Returns the rows of the zoomed node. */
function rows() {
	return Math.max(state.zoomDepth + 1, 1);
}

function deepest(node) {
	let depth = node.depth;
	const end = state.view.nodes.length;
	for (let i = node.index; i < end && (i === node.index || state.view.nodes[i].depth > node.depth); i++)
		depth = Math.max(depth, state.view.nodes[i].depth);
	return depth;
}

function top(depth) {
	const height = Math.max(rows() * ROW, ui.viewHeight);
	return state.icicle ? depth * ROW : height - (depth + 1) * ROW;
}

function fillOf(node, palette, cache) {
//if diff
	let key = 1000 + changeOf(node).step;
	const fill = changeColours()[key - 1000 + data.change.steps];
//else
	const style = styleOf(node), fill = palette.fills[style >> 2][style & 3];
	let key = style;
//end
	const isMatch = state.matches && state.matches(node);
	const isFaded = (state.matches && !isMatch) || (state.kind >= 0 && kindOf(node) !== state.kind);
	if (isMatch)
		return isDark() ? '#c4b5fd' : '#6d28d9';
	key += isFaded ? 100 : 0;
	if (!cache[key])
		cache[key] = isFaded ? mix(fill, palette.background, 0.62) : fill;
	return cache[key];
}

function inkOf(node, palette, isFaded) {
	if (state.matches && state.matches(node))
		return isDark() ? '#1d103a' : '#ffffff';
	return isFaded ? mix(palette.ink, palette.background, 0.3) : palette.ink;
}

function roundedBox(context, x, y, width, height) {
	if (width < 6 || !context.roundRect) {
		context.fillRect(x, y, width, height);
		return;
	}
	context.beginPath();
	context.roundRect(x, y, width, height, 1.5);
	context.fill();
}

function drawBox(context, box, y, palette, cache) {
	const gap = box.width > 2.5 ? 0.75 : 0;
	const isFaded = (state.matches && !state.matches(box.node)) ||
		(state.kind >= 0 && kindOf(box.node) !== state.kind);
	context.globalAlpha = box.isOuter && box.node !== state.zoom ? 0.55 : 1;
	context.fillStyle = fillOf(box.node, palette, cache);
	roundedBox(context, box.x, y, box.width - gap, BOX);
	const text = fit(nameOf(box.node), box.width - 7);
	if (text) {
		context.globalAlpha = 1;
		context.fillStyle = inkOf(box.node, palette, isFaded);
		context.fillText(text, box.x + 3.5, y + BOX / 2 + 0.5);
	}
	context.globalAlpha = 1;
}

function outline(context, node, colour) {
	const box = node && state.boxes.find(candidate => candidate.node === node);
	if (!box)
		return;
	context.strokeStyle = colour;
	context.lineWidth = 1.5;
	context.strokeRect(box.x + 0.75, top(node.depth) - ui.graph.scrollTop + 0.75, Math.max(box.width - 2, 1), BOX - 1.5);
}

function draw() {
	const context = ui.context, ratio = window.devicePixelRatio || 1;
	if (!state.view || !ui.viewWidth)
		return;
	const width = ui.viewWidth, height = ui.viewHeight, scroll = ui.graph.scrollTop;
	const palette = colours(), cache = {};
	layout(width);
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.fillStyle = palette.background;
	context.fillRect(0, 0, width, height);
	context.font = FONT;
	context.textBaseline = 'middle';
	for (const box of state.boxes) {
		const y = top(box.node.depth) - scroll;
		if (y > -ROW && y < height)
			drawBox(context, box, y, palette, cache);
	}
	context.fillStyle = palette.fills[THREAD_KIND][2];
	for (const run of state.narrowBoxes) {
		const y = top(run.node.depth + 1) - scroll;
		if (y > -ROW && y < height)
			context.fillRect(run.x, y, run.width, BOX);
	}
	outline(context, state.cursor, isDark() ? '#c4b5fd' : '#6d28d9');
	outline(context, state.hover && state.hover.node, palette.ink);
}

function resize() {
	const ratio = window.devicePixelRatio || 1;
	ui.viewWidth = ui.graph.clientWidth;
	ui.viewHeight = ui.graph.clientHeight;
	ui.canvas.width = Math.round(ui.viewWidth * ratio);
	ui.canvas.height = Math.round(ui.viewHeight * ratio);
	ui.canvas.style.width = ui.viewWidth + 'px';
	ui.canvas.style.height = ui.viewHeight + 'px';
	ui.context.font = FONT;
	ui.advance = ui.context.measureText('mmmmmmmmmm').width / 10;
	fitted.clear();
	place();
	draw();
}

/* Sets the scrolled height; the root stays visible. */
function place() {
	const height = rows() * ROW;
	ui.space.style.height = Math.max(0, height - ui.viewHeight) + 'px';
	ui.graph.scrollTop = state.icicle ? 0 : height;
	if (ui.graph.clientWidth !== ui.viewWidth && ui.viewWidth) {
		ui.viewWidth = 0; /* a scroll bar came or went */
		resize();
	}
}

/* ---- User input ---- */

const slow = window.matchMedia('(prefers-reduced-motion: reduce)');

function setRange(from, to, animate) {
	cancelAnimationFrame(state.animation);
	if (!animate || slow.matches || document.hidden) {
		state.from = from;
		state.to = to;
		draw();
		return;
	}
	const oldFrom = state.from, oldTo = state.to, began = performance.now();
	function step(now) {
		const t = Math.min(1, Math.max(0, (now - began) / ZOOM_MS)), eased = 1 - Math.pow(1 - t, 3);
		state.from = oldFrom + (from - oldFrom) * eased;
		state.to = oldTo + (to - oldTo) * eased;
		if (t >= 1) {
			state.from = from;
			state.to = to;
		}
		draw();
		if (t < 1)
			state.animation = requestAnimationFrame(step);
	}
	state.animation = requestAnimationFrame(step);
}

function zoomTo(node, isInstant) {
	state.zoom = node;
	state.zoomDepth = deepest(node);
	ui.reset.disabled = node === state.view.root;
	hover(null);
	place();
	setRange(node.start, node.start + node.total, !isInstant);
	describe(null);
	keepState();
}

function choose(chosen) {
	state.chosen = chosen;
	state.view = makeView(chosen);
	if (!state.view.root.total) {
		state.chosen = chosen = '';
		state.view = makeView('');
	}
	ui.threads.value = chosen;
	state.cursor = null;
	findMatches();
	fillLegend();
	zoomTo(state.view.root, true);
}

/* Returns a test of names: part of a name in any case, or a /regular expression/; null: it is invalid. */
function nameTest(text) {
	const slashes = /^\/(.+)\/([i]?)$/.exec(text);
	if (!slashes) {
		const lower = text.toLowerCase();
		return name => name.toLowerCase().includes(lower);
	}
	try {
		const regex = new RegExp(slashes[1], slashes[2]);
		return name => regex.test(name);
	} catch (error) {
		return null;
	}
}

/* The matched weight counts only the outermost match: a function that calls itself counts once. */
function findMatches() {
	const test = state.search ? nameTest(state.search) : null;
	state.matches = null;
	state.matchedWeight = state.matchedFrames = 0;
	if (test) {
		const byName = data.names.map(test), isComm = new Map();
		state.matches = node => {
			if (!isThread(node))
				return byName[data.frames[3 * node.frame]];
			if (!isComm.has(node.frame))
				isComm.set(node.frame, node.frame !== ALL && test(node.frame));
			return isComm.get(node.frame);
		};
		let under = -1;
		for (const node of state.view.nodes) {
			if (node.depth <= under)
				under = -1;
			if (!state.matches(node))
				continue;
			state.matchedFrames++;
			if (under < 0) {
				under = node.depth;
				state.matchedWeight += node.total;
			}
		}
	}
	showMatches(!state.search || Boolean(test));
}

function showMatches(isValid) {
	const is = state.matchedFrames > 0;
	ui.matched.hidden = ui.clear.hidden = !state.search;
	ui.slash.hidden = Boolean(state.search);
	ui.matched.setAttribute('class', is ? 'flame-matched' : 'flame-matched none');
	ui.matched.textContent = is ? percent(state.matchedWeight, state.view.root.total) : isValid ? 'no match' : 'not a regex';
	ui.matched.title = is ? weightText(state.matchedWeight) + ' in ' + count(state.matchedFrames) + ' boxes' : '';
}

function searchFor(text) {
	state.search = text;
	if (ui.search.value !== text)
		ui.search.value = text;
	findMatches();
	draw();
	keepState();
}

function flip() {
	state.icicle = !state.icicle;
	ui.flip.setAttribute('aria-pressed', state.icicle);
	place();
	draw();
	keepState();
}

function boxAt(clientX, clientY) {
	const canvas = ui.canvas.getBoundingClientRect(), x = clientX - canvas.left;
	const y = clientY - canvas.top + ui.graph.scrollTop;
	const inRow = depth => y >= top(depth) && y < top(depth) + ROW;
	return state.boxes.find(box => x >= box.x && x < box.x + box.width && inRow(box.node.depth)) ||
		state.narrowBoxes.find(run => x >= run.x && x < run.x + run.width && inRow(run.node.depth + 1)) || null;
}

//if diff
function figures(node) {
	const change = changeOf(node);
	const text = (share, weight) => percent(share, 1) + ' \u00b7 ' + weightText(weight);
	return [['now', text(change.share, change.now)], ['before', text(change.oldShare, change.before)],
		['change', points(change.change) + (change.step ? '' : ', noise')]];
}
//else
function figures(node) {
	const all = state.view.root.total, list = [['total', node.total]];
	if (node.self && node.self !== node.total)
		list.push(['self', node.self]);
	else if (node.self)
		list[0][0] = 'self';
	return list.map(([label, weight]) => {
		let text = percent(weight, all) + ' \u00b7 ' + weightText(weight);
		if (data.samples && data.unit !== 'samples')
			text += ' \u00b7 ' + count(weight) + (weight === 1 ? ' sample' : ' samples');
		return [label, text];
	});
}
//end

//if diff
//else
/* Sums, by name and object over all boxes, what a report has in the function's row.  A stack counts once for its total. */
function sumFunctions(view) {
	const keyOf = node => data.frames[3 * node.frame] + ' ' + data.frames[3 * node.frame + 1];
	const isSame = (a, b) => !isThread(a) && keyOf(a) === keyOf(b);
	const sums = new Map();
	for (const node of view.nodes) {
		if (isThread(node))
			continue;
		const key = keyOf(node), sum = sums.get(key) || { self: 0, total: 0 };
		let around = node.parent;
		while (around && !isSame(around, node))
			around = around.parent;
		sums.set(key, sum);
		sum.self += node.self;
		sum.total += around ? 0 : node.total;
	}
	view.functionSums = node => sums.get(keyOf(node));
}

/* Describes what a report says of the function, if its box alone differs. */
function describeFunction(element, node) {
	const view = state.view, all = view.root.total;
	if (isThread(node))
		return;
	if (!view.functionSums)
		sumFunctions(view);
	const sum = view.functionSums(node);
	if (sum.self === node.self && sum.total === node.total)
		return;
	const line = make('div', 'flame-figures', element);
	for (const [words, weight] of [['in all its boxes: SELF ', sum.self], [', TOTAL ', sum.total]]) {
		line.appendChild(document.createTextNode(words));
		make('b', '', line, percent(weight, all));
	}
}
//end

function describeIn(element, node) {
	element.textContent = '';
	make('div', 'flame-name', element, nameOf(node));
	const line = make('div', 'flame-figures', element), object = objectOf(node);
	let sep = '';
	if (!isThread(node)) {
		line.appendChild(document.createTextNode(data.kinds[kindOf(node)] + (object ? ' \u00b7 ' + object : '')));
		sep = ' \u00b7 ';
	}
	for (const [label, text] of figures(node)) {
		line.appendChild(document.createTextNode(sep + label + ' '));
		make('b', '', line, text);
		sep = ', ';
	}
	if (state.zoom.depth && node.depth > state.zoom.depth)
		line.appendChild(document.createTextNode(', ' + percent(node.total, state.zoom.total) + ' of the zoomed'));
	if (node.hidden)
		line.appendChild(document.createTextNode(', ' + weightText(node.hidden) + ' in frames left out'));
//if diff
//else
	if (element === ui.tip)
		describeFunction(element, node);
//end
}

/* Fills the line below the graph: the hovered or current node, else the zoomed one. */
function describe(node) {
	describeIn(ui.details, node || state.cursor || state.zoom);
}

function placeTip(x, y) {
	const width = ui.tip.offsetWidth, height = ui.tip.offsetHeight;
	const maxX = window.innerWidth - width - 8, below = y + 18;
	ui.tip.style.left = Math.max(8, Math.min(x + 14, maxX)) + 'px';
	ui.tip.style.top = (below + height > window.innerHeight - 8 ? Math.max(8, y - height - 12) : below) + 'px';
}

function hover(box) {
	const isSame = box && state.hover && box.node === state.hover.node && box.count === state.hover.count;
	state.hover = box;
	ui.canvas.style.cursor = box ? 'pointer' : '';
	ui.tip.hidden = !box;
	if (isSame)
		return;
	if (box && box.count) {
		ui.tip.textContent = count(box.count) + ' narrow boxes in ' + nameOf(box.node) + ' \u00b7 ' +
			percent(box.weight, state.view.root.total);
	} else if (box) {
		describeIn(ui.tip, box.node);
	}
	if (state.zoom)
		describe(box && !box.count ? box.node : null);
	draw();
}

function hoverAt(x, y) {
	hover(boxAt(x, y));
	if (state.hover)
		placeTip(x, y);
}

/* Arrow keys move towards the root or the leaf, and along siblings. */
function walk(key) {
	const node = state.cursor || state.zoom, outwards = (key === 'ArrowUp') === state.icicle;
	const siblings = node.parent ? node.parent.kids : [node], at = siblings.indexOf(node);
	let next;
	if (key === 'ArrowLeft' || key === 'ArrowRight')
		next = siblings[at + (key === 'ArrowLeft' ? -1 : 1)];
	else if (outwards)
		next = node.parent;
	else
		next = node.kids.reduce((best, kid) => !best || kid.total > best.total ? kid : best, null);
	if (!next)
		return;
	state.cursor = next;
	if (next.start < state.from || next.start + next.total > state.to)
		zoomTo(next.parent || next, true);
	const y = top(next.depth);
	if (y < ui.graph.scrollTop || y + ROW > ui.graph.scrollTop + ui.viewHeight)
		ui.graph.scrollTop = y - ui.viewHeight / 2;
	describe(null);
	draw();
}

function escape() {
	if (document.activeElement === ui.search)
		ui.canvas.focus();
	if (state.search)
		searchFor('');
	else if (state.cursor && state.zoom === state.view.root)
		state.cursor = null;
	else
		zoomTo(state.view.root);
	draw();
	describe(null);
}

function onKey(event) {
	const isTyping = document.activeElement === ui.search || document.activeElement === ui.threads;
	/* A second Ctrl-F is the browser's. */
	const isFind = (event.ctrlKey || event.metaKey) && event.key === 'f' && document.activeElement !== ui.search;
	if (isFind || (event.key === '/' && !isTyping)) {
		ui.search.focus();
		ui.search.select();
	} else if (event.key === 'Escape') {
		escape();
	} else if (isTyping || event.ctrlKey || event.metaKey || event.altKey) {
		return;
	} else if (event.key.startsWith('Arrow')) {
		walk(event.key);
	} else if (event.key === 'Enter' && document.activeElement === ui.canvas && state.cursor) {
		zoomTo(state.cursor);
	} else if (event.key === 'i') {
		flip();
//if diff
	} else if (event.key === 'd') {
		turnTheme();
	} else if (event.key === 'w') {
		turnSide();
//else
	} else if (event.key === 'd') {
		turnTheme();
//end
	} else {
		return;
	}
	event.preventDefault();
}

/* ---- The state in the address, so that a link shows the same view ---- */

function keepState() {
	const words = [];
	if (state.chosen)
		words.push('threads=' + encodeURIComponent(state.chosen));
//if diff
	if (state.side === 'before')
		words.push('side=before');
//end
	if (state.zoom !== state.view.root)
		words.push('zoom=' + state.zoom.index);
	if (state.search)
		words.push('search=' + encodeURIComponent(state.search));
	if (state.icicle !== data.icicle)
		words.push('flip=1');
	if (state.theme)
		words.push('theme=' + state.theme);
	const hash = words.length ? '#' + words.join('&') : '';
	if (hash === window.location.hash)
		return;
	try {
		window.history.replaceState(null, '', hash || window.location.href.split('#')[0]);
	} catch (error) {
		/* Some viewers forbid it; only the link is lost. */
	}
}

function takeState() {
	const words = {};
	for (const word of window.location.hash.slice(1).split('&')) {
		const [name, value] = word.split('=');
		try {
			words[name] = decodeURIComponent(value || '');
		} catch (error) {
			words[name] = '';
		}
	}
	if (words.theme === 'dark' || words.theme === 'light')
		setTheme(words.theme);
	if (words.flip)
		state.icicle = !data.icicle;
//if diff
	state.side = words.side === 'before' ? 'before' : 'now';
	nameSide();
//end
	state.search = words.search || '';
	ui.search.value = state.search;
	choose(words.threads || '');
	const node = state.view.nodes[Number(words.zoom)];
	if (node)
		zoomTo(node, true);
	keepState();
}

buildHead();
buildGraph();
buildFoot();
state.view = makeView('');
state.zoom = state.view.root;
state.zoomDepth = state.view.depth;
resize();
takeState();
resize();
window.addEventListener('resize', resize);
window.addEventListener('hashchange', takeState);
document.addEventListener('keydown', onKey);
darkQuery.addEventListener('change', () => setTheme(state.theme));
if (window.ResizeObserver)
	new ResizeObserver(resize).observe(ui.graph);

/* For scripts that drive the page, and its tests. */
window.tallyFlamegraph = {
	boxes: () => {
		const canvas = ui.canvas.getBoundingClientRect();
		return state.boxes.map(box => ({
//if diff
			name: nameOf(box.node), weight: box.node.total * data.scale, depth: box.node.depth, width: box.width,
			change: changeOf(box.node).change, step: changeOf(box.node).step,
//else
			name: nameOf(box.node), weight: box.node.total * data.scale, depth: box.node.depth, width: box.width,
//end
			x: canvas.left + box.x + box.width / 2, y: canvas.top + top(box.node.depth) - ui.graph.scrollTop + BOX / 2,
		}));
	},
	label: fit,
	state: () => ({
		zoom: nameOf(state.zoom), total: state.view.root.total * data.scale, matched: state.matchedWeight * data.scale,
//if diff
		icicle: state.icicle, dark: isDark(), threads: state.chosen, boxes: state.boxes.length, side: state.side,
//else
		icicle: state.icicle, dark: isDark(), threads: state.chosen, boxes: state.boxes.length,
//end
	}),
};
}());
