/* Drives a Chromium without a screen over its DevTools protocol: messages on descriptors 3 and 4,
 * each terminated by a NUL. */
'use strict';
const { spawn, spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'chrome'];

function find() {
	const wanted = process.env.CHROMIUM ? [process.env.CHROMIUM] : NAMES;
	return wanted.find(name => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0) || null;
}

class Browser {
	constructor(program) {
		this.profile = fs.mkdtempSync(path.join(os.tmpdir(), 'tally-browser-'));
		const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
			'--remote-debugging-pipe', '--user-data-dir=' + this.profile, '--window-size=1200,800', 'about:blank'];
		this.process = spawn(program, flags, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
		this.waiting = new Map();
		this.listeners = [];
		this.last = 0;
		this.text = '';
		this.process.stdio[4].setEncoding('utf8');
		this.process.stdio[4].on('data', text => this.take(text));
	}

	take(text) {
		const messages = (this.text + text).split('\0');
		this.text = messages.pop();
		for (const message of messages.map(one => JSON.parse(one))) {
			const waiting = this.waiting.get(message.id);
			this.waiting.delete(message.id);
			if (waiting && message.error)
				waiting.reject(new Error(message.error.message));
			else if (waiting)
				waiting.resolve(message.result);
			else
				this.listeners.forEach(listener => listener(message));
		}
	}

	send(method, params, sessionId) {
		const id = ++this.last;
		this.process.stdio[3].write(JSON.stringify({ id, method, params: params || {}, sessionId }) + '\0');
		return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
	}

	async close() {
		const ended = new Promise(resolve => this.process.once('exit', resolve));
		await this.send('Browser.close').catch(() => {});
		await ended;
		fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
	}
}

/* One tab.  `problems` collects exceptions and the page's network requests. */
class Page {
	static async open(browser) {
		const page = new Page();
		const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank' });
		const { sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true });
		Object.assign(page, { browser, sessionId, problems: [], loads: 0 });
		browser.listeners.push(message => {
			if (message.sessionId === sessionId)
				page.hear(message);
		});
		for (const domain of ['Page', 'Runtime', 'Network', 'Log'])
			await page.send(domain + '.enable');
		return page;
	}

	hear({ method, params }) {
		if (method === 'Page.loadEventFired' && this.loaded)
			this.loaded();
		if (method === 'Runtime.exceptionThrown')
			this.problems.push(params.exceptionDetails.exception.description);
		if (method === 'Log.entryAdded' && params.entry.level === 'error')
			this.problems.push(params.entry.text);
		if (method === 'Network.requestWillBeSent' && params.request.url.split('#')[0] !== this.url)
			this.problems.push('asked for ' + params.request.url);
	}

	send(method, params) {
		return this.browser.send(method, params, this.sessionId);
	}

	/* Opens a file or an address.  `fragment` does not prevent a reload: each call loads the
	 * page again. */
	async load(file, fragment) {
		this.url = 'about:blank';
		await this.send('Page.navigate', { url: 'about:blank' });
		this.url = /^http:/.test(file) ? file : 'file://' + path.resolve(file);
		const loaded = new Promise(resolve => { this.loaded = resolve; });
		await this.send('Page.navigate', { url: this.url + (fragment ? '#' + fragment : '') });
		await loaded;
		await this.run('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))');
	}

	async run(expression) {
		const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, returnByValue: true,
			awaitPromise: true });
		if (exceptionDetails)
			throw new Error(exceptionDetails.exception ? exceptionDetails.exception.description : exceptionDetails.text);
		return result.value;
	}

	async mouse(type, x, y) {
		const button = type === 'mouseMoved' ? 'none' : 'left';
		await this.send('Input.dispatchMouseEvent', { type, x, y, button, clickCount: button === 'left' ? 1 : 0 });
	}

	async click(x, y) {
		await this.mouse('mouseMoved', x, y);
		await this.mouse('mousePressed', x, y);
		await this.mouse('mouseReleased', x, y);
	}

	async key(key, modifiers) {
		const text = key.length === 1 && !modifiers ? key : undefined;
		await this.send('Input.dispatchKeyEvent', { type: 'keyDown', key, text, modifiers });
		await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key, modifiers });
	}

	type(text) {
		return this.send('Input.insertText', { text });
	}

	media(features) {
		return this.send('Emulation.setEmulatedMedia', { features });
	}
}

module.exports = { find, Browser, Page };
