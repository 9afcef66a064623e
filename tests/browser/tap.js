/* Runs a file's tests and reports them in TAP. */
'use strict';
const { Skip } = require('./npm.js');

/* Runs each of { name: function }.  If `lack` is set, it is the reason to skip all. */
exports.run = async (tests, lack) => {
	let number = 0;
	for (const [name, test] of Object.entries(tests)) {
		number++;
		try {
			if (lack)
				throw new Skip(lack);
			await test();
			console.log(`ok ${number} - ${name}`);
		} catch (error) {
			if (error instanceof Skip)
				console.log(`ok ${number} - ${name} # SKIP ${error.message}`);
			else
				console.log(`not ok ${number} - ${name}\n${String(error.stack).replace(/^/gm, '# ')}`);
		}
	}
	console.log(`1..${number}`);
};
