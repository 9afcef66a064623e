/* The pages of a recording whose names are hostile, in a headless Chromium: nothing of them runs, and
 * text shows in the order in which it stands. */
'use strict';
const { execFileSync } = require('child_process');
const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { find, Browser, Page } = require('./chromium.js');
const { run } = require('./tap.js');

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'tally-names-'));
const recording = path.join(directory, 'names.data');
const python = (...parts) => execFileSync('python3', parts, { stdio: 'pipe' });
const tally = (...parts) => execFileSync(process.env.TALLY, parts, { stdio: 'pipe', cwd: directory });
let page;

/* Moves over all boxes and links, clicks each, and searches for what the names contain. */
const USE = `(async () => {
	for (const one of document.querySelectorAll('a, summary, rect, text, li, td, .r')) {
		const { left, top, width, height } = one.getBoundingClientRect();
		for (const type of ['mouseover', 'mousemove', 'mousedown', 'mouseup', 'click', 'mouseout'])
			one.dispatchEvent(new MouseEvent(type, { bubbles: true, clientX: left + width / 2, clientY: top + height / 2 }));
	}
	await new Promise(done => setTimeout(done, 50));
})()`;

/* Returns pieces of text that are drawn in another order than they stand. */
const TURNED = `(() => {
	const turned = [], walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
	for (let node; (node = walk.nextNode());) {
		if (['SCRIPT', 'STYLE', 'style', 'script', 'title', 'TITLE'].includes(node.parentNode.nodeName))
			continue;
		const range = document.createRange();
		let last = null;
		for (let i = 0; i < node.length; i++) {
			range.setStart(node, i);
			range.setEnd(node, i + 1);
			const rect = range.getBoundingClientRect();
			if (!rect.width)
				continue;
			if (last && Math.abs(rect.top - last.top) < 2 && rect.left < last.left - 1)
				turned.push(node.data.slice(0, 80));
			last = rect;
		}
	}
	return turned;
})()`;

/* Characters that text must not contain. */
const ODD = '/[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u206f\\ufeff\\ufffe\\uffff]/';

async function look(file) {
	await page.load(file);
	await page.run(USE);
	assert.strictEqual(await page.run('typeof forged'), 'undefined');
	assert.strictEqual(await page.run('document.querySelectorAll("img").length'), 0);
	assert.deepStrictEqual(await page.run(TURNED), []);
	assert.strictEqual(await page.run(`${ODD}.test(document.documentElement.textContent)`), false);
	assert(await page.run('document.documentElement.textContent.includes("forged()")'), 'the page shows the names');
	assert.deepStrictEqual(page.problems, []);
}

const tests = {
	async 'a flame graph as a picture'() {
		tally('flamegraph', '-o', 'f.svg', recording);
		await look(path.join(directory, 'f.svg'));
	},
	async 'a flame graph as a page'() {
		tally('flamegraph', '-o', 'f.html', recording);
		await look(path.join(directory, 'f.html'));
	},
	async 'a flame graph of a difference'() {
		tally('flamegraph', '-o', 'd.html', '--diff', recording, recording);
		await look(path.join(directory, 'd.html'));
	},
	async 'annotated functions'() {
		tally('annotate', '-o', 'a.html', '-i', recording);
		await look(path.join(directory, 'a.html'));
	},
	async 'an annotated source file with such a name and such lines'() {
		const name = 's\n\u001b]0;x\u0007\u202ecba<script>forged()</script>';
		const source = path.join(directory, encodeURIComponent(name).slice(0, 40) + '\u202ecba.c');
		fs.writeFileSync(source, '/* \u202e\u2066 \u001b[2J </script><script>forged()</script> */ #include <time.h>\n'.replace('*/ #', '*/\n#') +
			'unsigned hot(unsigned n) { for (unsigned i = 0; i < 1000; i++) n = n * 5 + i; return n; } /* \u202e forged() cba </span><img src=x> */\n' +
			'int main(void) { unsigned n = 1; while (clock() < CLOCKS_PER_SEC / 4) n = hot(n); return n == 7; }\n');
		execFileSync('gcc', ['-g', '-O1', '-fno-inline', '-o', 'hot', source], { stdio: 'pipe', cwd: directory });
		tally('record', '-q', '-e', 'cpu-clock', '-F', '999', '-o', 's.data', '--', './hot');
		tally('annotate', '-o', 's.html', '-i', 's.data', 'hot');
		await look(path.join(directory, 's.html'));
	},
};

async function main() {
	const program = find();
	const browser = program ? new Browser(program) : null;
	if (browser) {
		page = await Page.open(browser);
		python(path.join(__dirname, '../cli/make_recording.py'), 'hostile_names', recording);
	}
	await run(tests, browser ? null : 'no Chromium is installed');
	if (browser)
		await browser.close();
	fs.rmSync(directory, { recursive: true, force: true });
}

main();
