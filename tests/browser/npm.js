/* Missing programs, and npm packages, which are installed once in $MODULES. */
'use strict';
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');

class Skip extends Error {}

const tried = new Map(); /* remembers failures, since each try without a network takes long */

/* Installs the packages.  Returns null, or npm's error message. */
function install(folder, names) {
	if (names.every(name => fs.existsSync(path.join(folder, name.replace(/(.)@.*/, '$1'), 'package.json'))))
		return null;
	fs.mkdirSync(process.env.MODULES, { recursive: true });
	const npm = spawnSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1',
		'--fetch-timeout=20000', '--prefix', process.env.MODULES, ...names], { encoding: 'utf8', timeout: 60000 });
	if (npm.status === 0)
		return null;
	if (npm.error)
		return npm.error.code === 'ENOENT' ? 'there is no npm: apt-get install npm' : npm.error.message;
	const said = (npm.stderr.match(/^npm (?:ERR!|error) (?!code |errno |syscall )(.*\S)/m) || [])[1];
	return said || `npm ended with ${npm.status}`;
}

/* Installs packages, `names` with versions.  Returns the folder that contains them. */
function packages(...names) {
	const folder = path.join(process.env.MODULES, 'node_modules'), all = names.join(' and ');
	if (!tried.has(all))
		tried.set(all, install(folder, names));
	const lack = tried.get(all);
	/* npm's proxy and registry are set in the environment or in ~/.npmrc, which an empty
	 * environment lacks. */
	if (lack)
		throw new Skip(`npm could not install ${all} (${lack.replace(/#/g, '')}). To get them, once, in a shell ` +
			'where npm reaches its registry (HTTPS_PROXY, npm_config_registry, ~/.npmrc): ' +
			`npm install --ignore-scripts --prefix ${process.env.MODULES} ${names.join(' ')}`);
	return folder;
}

module.exports = { Skip, packages };
