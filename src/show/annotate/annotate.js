/* Panes scroll to the line that leads to most samples, or the instruction with most.  A source line and its instructions are highlighted together. */
(() => {
	'use strict';
	for (const pane of location.hash ? [] : document.querySelectorAll('.pane')) {
		let hottest = pane.querySelector('.hottest > i'), most = hottest ? Infinity : 0;
		for (const share of pane.querySelectorAll('.r > i:not(:empty)'))
			if (parseFloat(share.textContent) > most) {
				most = parseFloat(share.textContent);
				hottest = share;
			}
		if (hottest && hottest.getBoundingClientRect().bottom > pane.getBoundingClientRect().bottom)
			pane.scrollTop += hottest.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
	}
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
