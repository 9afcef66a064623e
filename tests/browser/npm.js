/* What is not there, and packages of npm's: installed once, where $MODULES says. */
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');

class Skip extends Error {}

const tried = new Map(); /* without a network each try would take its time */

function install(folder, names) {
	if (names.every(name => fs.existsSync(path.join(folder, name.replace(/(.)@.*/, '$1'), 'package.json'))))
		return true;
	fs.mkdirSync(process.env.MODULES, { recursive: true });
	return spawnSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1',
		'--fetch-timeout=20000', '--prefix', process.env.MODULES, ...names], { encoding: 'utf8', timeout: 60000 }).status === 0;
}

/* `names` with their versions → the folder that they are in. */
function packages(...names) {
	const folder = path.join(process.env.MODULES, 'node_modules'), all = names.join(' and ');
	if (!tried.has(all))
		tried.set(all, install(folder, names));
	if (!tried.get(all))
		throw new Skip('npm could not install ' + all);
	return folder;
}

module.exports = { Skip, packages };
