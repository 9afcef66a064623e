/* Uses an annotated page in a headless Chromium: looks, follows links, hovers; also without
 * scripts.  TAP.  $TALLY is the program, $ANNOTATED the annotated one. */
'use strict';
const assert = require('assert');
const { execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { find, Browser, Page } = require('./chromium.js');

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'tally-annotate-'));
const recording = path.join(directory, 'tally.data'), file = path.join(directory, 'page.html');
let page;

const tally = (...words) => execFileSync(process.env.TALLY, words, { stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 });

const tests = {
	async 'the page loads without a complaint and asks nothing of the network'() {
		await page.load(file);
		assert.deepStrictEqual(page.problems, []);
		assert.strictEqual(await page.run('document.title'), 'crunch');
	},
	async 'instructions have the shares that JSON has'() {
		const wanted = JSON.parse(tally('annotate', '-j', '-i', recording, 'crunch')).functions[0].instructions
			.map(one => one.samples ? one.percent.toFixed(2) : '');
		assert.deepStrictEqual(await page.run('[...document.querySelectorAll(".code .r > i")].map(one => one.textContent)'), wanted);
	},
	async 'each arrow ends beside the instruction that its jump goes to'() {
		const missed = await page.run(`(() => {
			const tips = [...document.querySelectorAll('.code svg polygon')].map(one => one.getBoundingClientRect());
			const labelled = [...document.querySelectorAll('.code .r')].filter(row => row.querySelector('.b').textContent);
			return tips.length < 3 ? 'few arrows' : tips.filter(tip => !labelled.some(row => {
				const place = row.getBoundingClientRect(), middle = (tip.top + tip.bottom) / 2;
				return Math.abs((place.top + place.bottom) / 2 - middle) <= 2 &&
					tip.right <= row.querySelector('.x').getBoundingClientRect().right - row.querySelector('.x').textContent.length;
			})).length;
		})()`);
		assert.strictEqual(missed, 0);
	},
	async 'a hot line leads to its source, and a line to its hottest instruction'() {
		await page.run('document.querySelector(".hot a").click()');
		const line = await page.run('document.querySelector(":target").textContent');
		assert.match(line, /^[\d.]+ *\d+/);
		await page.run('document.querySelector(":target .n a").click()');
		assert.strictEqual(await page.run('document.querySelector(":target").closest(".code") !== null'), true);
	},
	async 'what belongs to a line lights up'() {
		await page.run(`document.querySelector('.pane .r[data-l] .n').dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))`);
		assert.ok(await page.run('document.querySelectorAll(".code .r.lit").length') > 0);
	},
	async 'it is readable in the dark'() {
		await page.media([{ name: 'prefers-color-scheme', value: 'dark' }]);
		const [text, ground] = await page.run(`(() => {
			const style = getComputedStyle(document.body);
			return [style.color, style.backgroundColor].map(one => one.match(/\\d+/g).map(Number).reduce((a, b) => a + b));
		})()`);
		assert.ok(text - ground > 400, `${text} on ${ground}`);
	},
	async 'without scripts all of it is there'() {
		const bare = path.join(directory, 'bare.html');
		fs.writeFileSync(bare, fs.readFileSync(file, 'utf8').replace(/<script>[^]*<\/script>/, ''));
		await page.load(bare);
		const [rows, arrows, lines] = await page.run(`['.code .r', '.code svg path', '.hot li']
			.map(one => document.querySelectorAll(one).length)`);
		assert.ok(rows > 20 && arrows > 2 && lines > 2, `${rows} ${arrows} ${lines}`);
	},
};

async function run() {
	const program = find();
	const skipped = !program ? 'there is no chromium: apt-get install chromium, or name one in CHROMIUM' : null;
	if (skipped)
		return console.log(`1..0 # SKIP ${skipped}`);
	try {
		tally('record', '-q', '-e', 'cpu-clock', '-o', recording, '--', process.env.ANNOTATED);
	} catch (error) {
		return console.log('1..0 # SKIP nothing can be recorded here');
	}
	if (JSON.parse(tally('annotate', '-j', '-i', recording, 'crunch')).functions[0].missing)
		return console.log('1..0 # SKIP there is no libLLVM');
	tally('annotate', '-i', recording, '-o', file, 'crunch');
	const browser = new Browser(program);
	let number = 0;
	page = await Page.open(browser);
	for (const [name, test] of Object.entries(tests)) {
		try {
			await test();
			console.log(`ok ${++number} - ${name}`);
		} catch (error) {
			console.log(`not ok ${++number} - ${name}\n# ${String(error.stack).replace(/\n/g, '\n# ')}`);
		}
	}
	console.log(`1..${number}`);
	await browser.close();
}

run().finally(() => fs.rmSync(directory, { recursive: true, force: true }));
