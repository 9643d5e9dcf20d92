// The address holds the layout, so that a page that is opened again, a bookmark and a link that is handed on show the same.
'use strict';

const layout = {
  // The layout that the address asked for, until it is applied.
  wanted: new URLSearchParams(location.hash.slice(1)),

  text() {
    const words = new URLSearchParams();
    if (current !== 'topics') words.set('view', current);
    if (document.documentElement.dataset.theme) words.set('theme', document.documentElement.dataset.theme);
    if (topicsView.filter) words.set('filter', topicsView.filter);
    if (inspector.topic) words.set('topic', inspector.topic);
    for (const chart of plotsView.charts) words.append('plot', chart.curves.map(({ topic, path }) => `${topic} ${path}`).join(','));
    return words.toString();
  },

  write() {
    if (this.wanted || location.hash.slice(1) === this.text()) return;
    history.replaceState(null, '', `${location.pathname}${location.search}#${this.text()}`);
  },

  // Once the first figures are there, and only then: later changes of the page are not undone when its server comes back.
  restore() {
    const wanted = this.wanted;
    if (!wanted) return;
    this.wanted = null;
    if (['light', 'dark'].includes(wanted.get('theme'))) { document.documentElement.dataset.theme = wanted.get('theme'); themed(); }
    element('filter').value = wanted.get('filter') || '';
    topicsView.filter = element('filter').value.toLowerCase();
    for (const curves of wanted.getAll('plot')) {
      const into = plotsView.charts.length;
      for (const curve of curves.split(',')) {
        const [, topic, path] = curve.match(/^(\S+) (\S.*)$/) || [];
        if (topic) plotsView.add(topic, path, into);
      }
    }
    if (VIEWS.includes(wanted.get('view'))) select(wanted.get('view'));
    if (wanted.get('topic')) topicsView.choose(wanted.get('topic'));
  },
};
