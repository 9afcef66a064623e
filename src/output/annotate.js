/* The instructions of a source line, and the line of an instruction, light up together. */
(() => {
	'use strict';
	let lit = [];
	document.addEventListener('mouseover', event => {
		const row = event.target.closest('.r[data-l]');
		for (const one of lit)
			one.classList.remove('lit');
		lit = row ? [...row.closest('section').querySelectorAll(`.r[data-l="${CSS.escape(row.dataset.l)}"]`)] : [];
		for (const one of lit)
			one.classList.add('lit');
	});
})();
