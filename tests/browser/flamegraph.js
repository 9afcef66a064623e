/* The interactions of a flame graph, in SVG and in HTML: TAP.  $TALLY is the program. */
'use strict';
const assert = require('assert');
const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { find, Browser, Page } = require('./chromium.js');

const STACKS = [
	'web-10/11;main;serve;parse;malloc 30', 'web-10/11;main;serve;parse 10', 'web-10/12;main;serve;malloc;malloc 20',
	'web-10/12;main;idle;sys_wait_[k] 20', 'db-20/20;main;query(int, char const*);malloc 15', 'db-20/20;main;jit_[j] 5',
].join('\n') + '\n';
const HOSTILE = '"><img src=x onerror=window.pwned=1>;</script><script>window.pwned=1</script>;]]><x/>;&lt; 7\n' +
	'\u202eabc\u0001;${window.pwned=1};javascript:window.pwned=1 3\n';

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'tally-flame-'));
let page, extension;

function draw(name, stacks, ...options) {
	const file = path.join(directory, name + extension);
	execFileSync(process.env.TALLY, ['flamegraph', '-', '-o', file, ...options], { input: stacks, stdio: 'pipe' });
	return file;
}

/* Ten thousand samples each: parse grew from 40 to 70 %, idle shrank, one function went and one
 * came. */
function drawDiff(name) {
	const old = path.join(directory, 'old.folded');
	fs.writeFileSync(old, 'p;main;serve;parse 4000\np;main;idle 4000\np;main;gone 2000\n');
	return draw(name, 'p;main;serve;parse 7000\np;main;idle 2500\np;main;come 500\n', '--diff', old);
}

const state = () => page.run('tallyFlamegraph.state()');
const boxes = () => page.run('tallyFlamegraph.boxes()');
const text = selector => page.run(`document.querySelector(${JSON.stringify(selector)}).textContent`);

async function box(name, depth) {
	const found = (await boxes()).find(one => one.name === name && (depth === undefined || one.depth === depth));
	assert(found, 'there is a box ' + name);
	return found;
}

/* The zoom is animated: waits until the box keeps its width. */
async function settle() {
	let before = '';
	for (let i = 0; i < 200; i++) {
		await page.run('new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))');
		const now = JSON.stringify(await boxes());
		if (now === before)
			return;
		before = now;
	}
}

async function zoomOn(name, depth) {
	const { x, y } = await box(name, depth);
	await page.click(x, y);
	await settle();
}

const tests = {
	async 'it draws every box, as wide as it weighs'() {
		await page.load(draw('plain', STACKS));
		const all = await boxes(), root = all.find(one => one.name === 'all');
		assert.strictEqual(root.weight, 100);
		assert.strictEqual(all.length, 15);
		for (const one of all)
			assert(Math.abs(one.width - root.width * one.weight / 100) < 0.01, one.name);
	},
	async 'the static picture makes way'() {
		const shown = await page.run(`(document.getElementById('tally-picture') || { style: { display: 'none' } })
			.style.display`);
		assert.strictEqual(shown, 'none');
	},
	async 'a click zooms, its callers stay, Escape zooms out'() {
		await zoomOn('serve');
		assert.strictEqual((await state()).zoom, 'serve');
		const names = (await boxes()).map(one => one.name), full = await box('serve');
		assert(['all', 'web', 'main'].every(name => names.includes(name)) && !names.includes('db'));
		assert(Math.abs(full.width - (await box('all')).width) < 0.01);
		assert(Math.abs((await box('parse')).width - full.width * 40 / 60) < 0.01);
		await page.key('Escape');
		await settle();
		assert.strictEqual((await state()).zoom, 'all');
		assert((await boxes()).some(one => one.name === 'db'));
	},
	async 'a click on a caller zooms out to it, the button to everything'() {
		await zoomOn('parse');
		await zoomOn('web');
		assert.strictEqual((await state()).zoom, 'web');
		await page.run(`document.querySelector('[aria-label^="Zoom out"]').click()`);
		await settle();
		assert.strictEqual((await state()).zoom, 'all');
	},
	async 'search counts the outermost match once'() {
		await page.key('/');
		await page.type('MALLOC');
		assert.strictEqual((await state()).matched, 65);
		assert.strictEqual(await text('.flame-matched'), '65.00\u00a0%');
		await page.key('Escape');
		assert.strictEqual((await state()).matched, 0);
	},
	async 'search takes regular expressions, and says when they are none'() {
		await page.key('f', 2);
		await page.type('/^(parse|idle)$/');
		assert.strictEqual((await state()).matched, 60);
		await page.run(`{ const input = document.querySelector('.flame-search input'); input.value = '/(/';
			input.dispatchEvent(new Event('input')); }`);
		assert.strictEqual(await text('.flame-matched'), 'not a regex');
		await page.key('Escape');
		await page.key('Escape');
	},
	async 'narrow boxes keep the end of a name'() {
		await page.load(draw('plain', STACKS));
		const label = (name, letters) => page.run(`tallyFlamegraph.label(${JSON.stringify(name)}, ${letters} * 6.7 + 1)`);
		const name = 'engine::Sorter<std::pair<int, std::__cxx11::basic_string<char>>>::bubble';
		assert.strictEqual(await label(name, 80), name);
		assert.strictEqual(await label(name, 30), 'engine::Sorter<\u2026>::bubble');
		assert.strictEqual(await label(name, 19), 'Sorter<\u2026>::bubble');
		assert.strictEqual(await label(name, 7), 'bubble');
		assert.strictEqual(await label('r::work::{{closure}}', 17), 'work::{{closure}}');
		assert.strictEqual(await label('ns::T::operator()(int, char)', 16), 'T::operator()');
		assert.strictEqual(await label('ns::operator<< <char, int>(long)', 20), 'operator<< <\u2026>(long)');
	},
	async 'hovering tells name, kind and weight'() {
		const { x, y } = await box('sys_wait');
		await page.mouse('mouseMoved', x, y);
		assert.match(await text('.flame-tip'), /sys_wait.*kernel.*20\.00\u00a0%.*20 samples/);
		assert.match(await text('.flame-details'), /sys_wait/);
		await page.mouse('mouseMoved', 5, 5);
		assert.strictEqual(await page.run(`document.querySelector('.flame-tip').hidden`), true);
	},
	async 'it turns upside down'() {
		const below = await box('all'), above = await box('web');
		assert(above.y < below.y);
		await page.key('i');
		assert((await box('web')).y > (await box('all')).y);
		assert((await state()).icicle);
		await page.key('i');
		assert(!(await state()).icicle);
	},
	async 'threads are filtered by command and one by one'() {
		const choose = value => page.run(`{ const list = document.querySelector('.flame select'); list.value =
			[...list.options].find(o => o.textContent.includes(${JSON.stringify(value)})).value;
			list.dispatchEvent(new Event('change')); }`);
		await choose('db');
		assert.strictEqual((await state()).total, 20);
		await choose('web 10/12');
		assert.strictEqual((await state()).total, 40);
		assert(!(await boxes()).some(one => one.name === 'parse'));
		await choose('All threads');
		assert.strictEqual((await state()).total, 100);
	},
	async 'the keyboard walks and zooms'() {
		await page.run(`document.querySelector('.flame canvas').focus()`);
		for (const key of ['ArrowUp', 'ArrowUp', 'ArrowUp', 'Enter'])
			await page.key(key);
		await settle();
		assert.strictEqual((await state()).zoom, 'serve');
		await page.key('Escape');
		await settle();
	},
	async 'a kind is shown alone'() {
		assert.match(await text('.flame-legend'), /program.*75\.00.*kernel.*20\.00.*JIT.*5\.00/);
		await page.run(`document.querySelectorAll('.flame-legend button')[1].click()`);
		assert.strictEqual(await page.run(
			`document.querySelectorAll('.flame-legend button')[1].getAttribute('aria-pressed')`), 'true');
	},
	async 'the address keeps what one sees'() {
		await page.load(draw('plain', STACKS));
		await zoomOn('serve');
		await page.key('/');
		await page.type('a&b=c');
		const hash = await page.run('location.hash');
		await page.load(draw('plain', STACKS), hash.slice(1));
		assert.strictEqual((await state()).zoom, 'serve');
		assert.strictEqual(await page.run(`document.querySelector('.flame-search input').value`), 'a&b=c');
	},
	async 'dark follows the system, and can be turned'() {
		await page.media([{ name: 'prefers-color-scheme', value: 'dark' }]);
		await page.load(draw('plain', STACKS));
		const background = () => page.run(`getComputedStyle(document.querySelector('.flame')).backgroundColor`);
		assert.strictEqual((await state()).dark, true);
		assert.strictEqual(await background(), 'rgb(23, 21, 19)');
		await page.key('d');
		assert.strictEqual((await state()).dark, false);
		assert.strictEqual(await background(), 'rgb(251, 249, 246)');
		await page.media([{ name: 'prefers-color-scheme', value: 'light' }]);
		await page.load(draw('dark', STACKS, '--theme', 'dark'));
		assert.strictEqual((await state()).dark, true);
	},
	async 'zooming takes narrow frames apart'() {
		const many = Array.from({ length: 1500 }, (_, i) => `a;wide;narrow;f${i} 1`).join('\n') + '\na;big 100000\n';
		await page.load(draw('many', many));
		assert((await boxes()).length < 20);
		await zoomOn('narrow');
		assert((await boxes()).length > 1500);
	},
	async 'a differential graph: colours by change, widths of either side'() {
		await page.load(drawDiff('diff'));
		const step = async name => (await box(name)).step;
		assert(await step('parse') > 0 && await step('idle') < 0);
		assert.strictEqual(await step('main'), 0);
		assert(Math.abs((await box('parse')).change - (70 / 100 - 40 / 100)) < 1e-9);
		assert(!(await boxes()).some(one => one.name === 'gone'));
		const { x, y } = await box('parse');
		await page.mouse('mouseMoved', x, y);
		assert.match(await text('.flame-tip'), /now 70\.00.%.*before 40\.00.%.*change \+30\.00 points/);
		await page.key('w');
		await settle();
		assert.strictEqual((await state()).side, 'before');
		assert(Math.abs((await box('gone')).width - (await box('all')).width * 0.2) < 0.01);
		assert(await step('gone') < 0 && await step('parse') > 0);
		assert(!(await boxes()).some(one => one.name === 'come'));
	},
	async 'a differential graph zooms, searches and turns its sides where it is'() {
		await zoomOn('parse');
		assert.strictEqual((await state()).zoom, 'parse');
		await page.key('w');
		await settle();
		assert.deepStrictEqual([(await state()).zoom, (await state()).side], ['parse', 'now']);
		await page.key('Escape');
		await settle();
		await page.key('/');
		await page.type('come');
		assert.strictEqual((await state()).matched, 500);
		await page.load(drawDiff('diff'), 'side=before');
		assert.strictEqual((await state()).side, 'before');
	},
	async 'hostile names stay text'() {
		await page.load(draw('hostile', HOSTILE, '--title', '</title><script>window.pwned=1</script>'));
		await page.key('/');
		await page.type('window.pwned');
		for (const one of await boxes())
			await page.mouse('mouseMoved', one.x, one.y);
		assert.strictEqual(await page.run('typeof window.pwned'), 'undefined');
		assert(await box('</script><script>window.pwned=1</script>'));
		assert.strictEqual(await text('.flame h1'), '</title><script>window.pwned=1</script>');
	},
	async 'a tooltip says what a report says of the function'() {
		await page.load(draw('inlined', 'p;main;work 4\np;main;work;spin_[i] 28\np;main;other;spin_[i] 8\n' +
			'p;main;spin 10\np;main;work;spin_[i];deep_[i] 10\np;main;plain 40\n'));
		const tip = async (name, depth) => {
			const { x, y } = await box(name, depth);
			await page.mouse('mouseMoved', x, y);
			return (await text('.flame-tip')).replace(/\u00a0/g, ' ');
		};
		assert.doesNotMatch(await tip('work'), /SELF/);
		const spin = (await boxes()).find(one => one.name === 'spin' && one.depth === 3);
		await page.mouse('mouseMoved', spin.x, spin.y);
		assert.match((await text('.flame-tip')).replace(/\u00a0/g, ' '),
			/in all its boxes: SELF 46\.00 %, TOTAL 56\.00 %$/);
		assert.doesNotMatch(await tip('plain'), /SELF/);
	},
	async 'nothing went wrong, and nothing was asked of the network'() {
		assert.deepStrictEqual(page.problems, []);
	},
};

async function main() {
	const program = find();
	if (!program) {
		console.log('1..0 # SKIP no Chromium is installed');
		return;
	}
	const browser = new Browser(program);
	let number = 0;
	console.log('1..' + 2 * Object.keys(tests).length);
	for (extension of ['.svg', '.html']) {
		page = await Page.open(browser);
		for (const [name, test] of Object.entries(tests)) {
			const failure = await test().then(() => null, error => error);
			console.log(`${failure ? 'not ok' : 'ok'} ${++number} - ${extension}: ${name}`);
			if (failure)
				console.log(String(failure.stack).replace(/^/gm, '# '));
			process.exitCode = process.exitCode || (failure ? 1 : 0);
		}
	}
	await browser.close();
	fs.rmSync(directory, { recursive: true, force: true });
}

main();
