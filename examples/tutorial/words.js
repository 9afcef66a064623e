// Counts words, and finds the most common one.  It is slow on purpose: `node words.js quick` is the better way.
'use strict';

const SYLLABLES = ['ta', 'lly', 're', 'cord', 'sam', 'ple', 'stack', 'ring'];

function makeWords(count) {
	const words = [];
	let state = 12345;
	for (let i = 0; i < count; i++) {
		let word = '';
		for (let j = 0; j < 4; j++) {
			state = (state * 1664525 + 1013904223) % 4294967296;
			word += SYLLABLES[(state >>> 16) % SYLLABLES.length];
		}
		words.push(word);
	}
	return words;
}

// Searches all words found so far, for each word.
function countSlowly(words) {
	const found = [];
	for (const word of words) {
		let i = 0;
		while (i < found.length && found[i].word !== word)
			i++;
		if (i === found.length)
			found.push({ word, count: 0 });
		found[i].count++;
	}
	return found;
}

function countQuickly(words) {
	const found = new Map();
	for (const word of words) {
		const entry = found.get(word) || { word, count: 0 };
		entry.count++;
		found.set(word, entry);
	}
	return [...found.values()];
}

const count = process.argv[2] === 'quick' ? countQuickly : countSlowly;
const commonest = count(makeWords(100000)).sort((a, b) => b.count - a.count)[0];
console.log(`${commonest.word}: ${commonest.count} times`);
