/* Opens exports with the programs that they are for: speedscope in a browser, a pprof decoder
 * generated from its .proto.  Checks the Firefox Profiler's tables by their schema.  perfetto.js
 * tests Perfetto.  TAP.  $TALLY is the program, $SHARES a workload, $MODULES a folder for npm
 * packages. */
'use strict';
const assert = require('assert');
const { execFileSync, spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const zlib = require('zlib');
const { find, Browser, Page } = require('./chromium.js');
const npm = require('./npm.js');
const { run } = require('./tap.js');

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'tally-export-'));
const recording = path.join(directory, 'tally.data');
let browser, page;

const { Skip } = npm;
const packages = () => npm.packages('speedscope@1.25.0', 'pprof-format@2.3.2');
const tally = (...words) => execFileSync(process.env.TALLY, words, { stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 });

/* Returns a map from function to its own samples, as report counts them. */
function self() {
	const entries = JSON.parse(tally('report', '-i', recording, '--no-inline', '--sort', 'sym', '--percent-limit', '0', '-j')).events[0].entries;
	const found = new Map();
	for (const { function: name, object, self_samples: samples } of entries) {
		const shown = name === null ? (object[0] === '[' ? object : `[${path.basename(object)}]`) : name.replace(/@.*/, '');
		if (samples)
			found.set(shown, (found.get(shown) || 0) + samples);
	}
	return found;
}

const same = (found, wanted) => assert.deepStrictEqual([...found].sort(), [...wanted].sort());
const count = (map, name) => map.set(name, (map.get(name) || 0) + 1);

function exported(format, name) {
	const file = path.join(directory, name);
	/* report counts without inlined functions here */
	tally('export', '-i', recording, '--no-inline', '--format', format, '-o', file);
	return file;
}

/* Returns functions with their own share of the whole in %, as speedscope's sandwich view lists
 * them. */
async function sandwich(file) {
	if (!page)
		throw new Skip('there is no chromium: apt-get install chromium, or name one in CHROMIUM');
	const release = path.join(packages(), 'speedscope/dist/release');
	const loader = file + '.js';
	fs.writeFileSync(loader, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, ` +
		`${JSON.stringify(fs.readFileSync(file).toString('base64'))})`);
	await page.load(path.join(release, 'index.html'), 'localProfilePath=' + loader);
	for (let i = 0; i < 100; i++) {
		await page.key('3');
		await page.run('new Promise(done => setTimeout(done, 100))');
		const rows = await page.run(`[...document.querySelectorAll('table tr')].map(row => row.innerText)`);
		const shares = rows.map(row => /\(([\d.]+)%\)[^(]*\(([\d.]+)%\)\s*([\s\S]*)/.exec(row)).filter(Boolean)
			.map(([, , share, name]) => [name.trim(), Number(share)]);
		if (shares.length)
			return new Map(shares);
	}
	throw new Error('speedscope shows no functions');
}

async function opensInSpeedscope(file, tolerance) {
	const shown = await sandwich(file), wanted = self();
	const total = [...wanted.values()].reduce((sum, one) => sum + one);
	const heavy = [...wanted].filter(([, samples]) => samples / total > 0.1);
	assert(heavy.length >= 3, 'the workload has three heavy functions');
	/* Some drawn time belongs to no function: while the thread waited for a CPU. */
	const all = heavy.reduce((sum, [name]) => sum + shown.get(name), 0) * total / heavy.reduce((sum, [, one]) => sum + one, 0);
	for (const [name, samples] of heavy) {
		const share = 100 * shown.get(name) / all, wanted = 100 * samples / total;
		assert(Math.abs(share - wanted) < tolerance, `${name}: ${share} % of ${wanted}`);
	}
}

const tests = {
	async 'speedscope opens what is made for it'() {
		await opensInSpeedscope(exported('speedscope', 'a.speedscope.json'), 2);
	},
	async 'speedscope opens pprof'() {
		await opensInSpeedscope(exported('pprof', 'a.pb.gz'), 2);
	},
	async 'speedscope opens trace events'() {
		await opensInSpeedscope(exported('chrome', 'a.trace.json'), 8);
	},
	async 'a pprof decoder finds every sample in its function'() {
		const { Profile } = require(path.join(packages(), 'pprof-format'));
		const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(exported('pprof', 'b.pb.gz'))));
		const text = index => profile.stringTable.strings[Number(index)];
		const functions = new Map(profile.function.map(one => [String(one.id), text(one.name)]));
		const leaves = new Map(profile.location.map(one => [String(one.id), functions.get(String(one.line[0].functionId))]));
		const mappings = new Set(profile.mapping.map(one => String(one.id)));
		const found = new Map();
		assert.strictEqual(path.basename(text(profile.mapping[0].filename)), 'shares', 'the program stands first');
		assert.strictEqual(text(profile.sampleType[0].type), 'samples');
		assert.strictEqual(text(profile.sampleType[1].unit), 'nanoseconds');
		for (const sample of profile.sample) {
			const name = leaves.get(String(sample.locationId[0]));
			found.set(name, (found.get(name) || 0) + Number(sample.value[0]));
			assert(Number(sample.value[1]) > 0);
			assert.deepStrictEqual(sample.label.map(one => text(one.key)), ['thread', 'pid', 'tid']);
		}
		for (const location of profile.location)
			assert(!Number(location.mappingId) || mappings.has(String(location.mappingId)));
		same(found, self());
	},
	async 'the Firefox Profiler\'s tables refer to what is there'() {
		const profile = JSON.parse(zlib.gunzipSync(fs.readFileSync(exported('firefox', 'c.json.gz'))));
		const found = new Map();
		assert.strictEqual(profile.meta.preprocessedProfileVersion, 48);
		assert.strictEqual(profile.meta.categories[0].color, 'grey');
		for (const thread of profile.threads) {
			const { frameTable: frames, funcTable: functions, stackTable: stacks, resourceTable: resources, samples } = thread;
			for (const table of [frames, functions, stacks, resources, samples, thread.markers, thread.nativeSymbols])
				for (const [name, column] of Object.entries(table))
					if (Array.isArray(column))
						assert.strictEqual(column.length, table.length, name);
			const below = (column, limit) => column.every(one => one === null || (Number.isInteger(one) && one >= 0 && one < limit));
			assert(below(frames.func, functions.length) && below(frames.category, profile.meta.categories.length));
			assert(below(functions.name, thread.stringArray.length) && below(functions.resource, resources.length));
			assert(below(functions.fileName, thread.stringArray.length) && below(resources.name, thread.stringArray.length));
			assert(below(stacks.frame, frames.length) && below(samples.stack, stacks.length));
			assert(stacks.prefix.every((prefix, row) => prefix === null || prefix < row), 'callers stand first');
			assert(thread.stringArray.every(one => typeof one === 'string'));
			assert(samples.time.every((time, i) => i === 0 || time >= samples.time[i - 1]));
			assert.strictEqual(typeof thread.pid, 'string');
			for (const stack of samples.stack)
				count(found, thread.stringArray[functions.name[frames.func[stacks.frame[stack]]]].replace(/^[^[]*\.so[.\d]*$/, '[$&]'));
		}
		same(found, self());
	},
	async 'trace events nest, and name their threads'() {
		const { traceEvents } = JSON.parse(fs.readFileSync(exported('chrome', 'd.trace.json')));
		const threads = new Map();
		const named = new Set(traceEvents.filter(one => one.ph === 'M' && one.name === 'thread_name').map(one => one.tid));
		for (const event of traceEvents.filter(one => one.ph === 'B' || one.ph === 'E')) {
			const thread = threads.get(event.tid) || { open: [], last: 0 };
			threads.set(event.tid, thread);
			assert(named.has(event.tid) && event.ts >= thread.last);
			thread.last = event.ts;
			if (event.ph === 'B')
				thread.open.push(event.name);
			else
				assert.strictEqual(thread.open.pop(), event.name);
		}
		assert(threads.size > 0 && [...threads.values()].every(one => one.open.length === 0));
	},
	async 'a pipe gets what -o gets, and a wrong format is refused'() {
		const file = fs.readFileSync(exported('speedscope', 'e.speedscope.json'));
		assert(tally('export', '-i', recording, '--no-inline', '--format', 'speedscope').equals(file));
		assert(tally('export', '-i', recording, '-o', path.join(directory, 'f.pb')).length === 0);
		assert.notStrictEqual(fs.readFileSync(path.join(directory, 'f.pb'))[0], 0x1f);
		const wrong = spawnSync(process.env.TALLY, ['export', '-i', recording, '--format', 'callgrind'], { encoding: 'utf8' });
		assert.strictEqual(wrong.status, 2);
		assert(/pprof, firefox, speedscope, chrome/.test(wrong.stderr));
		const unclear = spawnSync(process.env.TALLY, ['export', '-i', recording, '-o', 'x.json'], { encoding: 'utf8' });
		assert.strictEqual(unclear.status, 2);
	},
};

async function main() {
	const chromium = find();
	const made = spawnSync(process.env.TALLY, ['record', '-q', '-o', recording, '-e', 'cpu-clock:u', '-F', '999', '--',
		process.env.SHARES, '1000'], { encoding: 'utf8' });
	if (chromium) {
		browser = new Browser(chromium);
		page = await Page.open(browser);
	}
	await run(tests, made.status !== 0 ? 'no sampling here: ' + made.stderr.split('\n')[0] : null);
	if (browser)
		await browser.close();
	fs.rmSync(directory, { recursive: true, force: true });
}
main();
