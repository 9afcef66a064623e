// JavaScript with known shares of the process's CPU time: code that V8 compiles, and V8's own
// functions.
'use strict';
const parts = { leaf: 0, sorting: 0, matching: 0 };

function now() {
	const used = process.cpuUsage();
	return used.user + used.system;
}

function leaf(value) {
	for (let i = 0; i < 1000000; i++)
		value = (Math.imul(value, 1664525) + 1013904223) | 0;
	return value;
}

function byText(a, b) {
	return a < b ? 1 : a > b ? -1 : 0;
}

function sorting(value) {
	const words = [];
	for (let i = 0; i < 5000; i++) {
		value = (Math.imul(value, 1664525) + 1013904223) | 0;
		words.push(String(value));
	}
	words.sort(byText);
	return value + words[0].length;
}

const text = 'x'.repeat(20000) + 'y';
function matching(value) {
	for (let i = 0; i < 50; i++)
		value += (/(x+)(z|y)$/.test(text) ? 1 : 0) + text.indexOf('z');
	return value;
}

function spend(part, milliseconds, call, value) {
	const start = now();
	let at = start;
	while (at - start < milliseconds * 1000) {
		value = call(value);
		at = now();
	}
	parts[part] += at - start;
	return value;
}

function drive(value) {
	for (let i = 0; i < 22; i++) {
		value = spend('leaf', 75, leaf, value);
		value = spend('sorting', 45, sorting, value);
		value = spend('matching', 30, matching, value);
	}
	return value;
}

drive(1);
const whole = now() / 100;
for (const [name, time] of Object.entries(parts))
	console.log(`${name} ${(time / whole).toFixed(2)}`);
