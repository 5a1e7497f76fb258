// The data of a documentation site's page: an index of the words, a table of contents, search results, a chart.
'use strict';
const eke = window.eke = { state: null, passages: [], index: new Map(), words: [], ready: false };

function read(main) {
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const text = node.data.replace(/\s+/g, ' ').trim();
    if (text.length > 1) keep(text, node.parentElement);
  }
  eke.words = [...eke.index].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1)).map(e => e[0]);
}

function keep(text, element) {
  const passage = eke.passages.length;
  eke.passages.push({ passage, text, element, visits: 0 });
  for (const match of text.toLowerCase().matchAll(/[a-z0-9_]{2,}/g)) {
    let places = eke.index.get(match[0]);
    if (!places) eke.index.set(match[0], places = []);
    places.push({ passage, offset: match.index, length: match[0].length });
  }
}

function contents(nav) {
  for (const heading of document.querySelectorAll('main h1, main h2, main h3, main h4')) {
    const item = nav.appendChild(document.createElement('li'));
    item.textContent = heading.textContent;
    item.onclick = () => heading.scrollIntoView();
  }
}

function chart(canvas) {
  const pen = canvas.getContext('2d');
  eke.words.slice(0, 60).forEach((word, n) => {
    const share = eke.index.get(word).length / eke.index.get(eke.words[0]).length;
    pen.fillStyle = `hsl(${n * 6} 60% 50%)`;
    pen.fillRect(n * canvas.width / 60, canvas.height * (1 - share), canvas.width / 70, canvas.height * share);
  });
}

// Searches the n-th most frequent word, as a reader does. Shows its passages; returns the page's state.
eke.find = n => {
  const word = eke.words[n % eke.words.length];
  const list = document.querySelector('#results');
  list.replaceChildren(...eke.index.get(word).slice(0, 60).map(place => {
    const passage = eke.passages[place.passage];
    passage.visits += 1;
    const item = document.createElement('li');
    const mark = document.createElement('mark');
    mark.textContent = word;
    item.append(passage.text.slice(Math.max(0, place.offset - 40), place.offset), mark,
      passage.text.slice(place.offset + place.length, place.offset + 60));
    return item;
  }));
  document.querySelector('header output').textContent = `${word}: ${eke.index.get(word).length} places`;
  return eke.state;
};

eke.scroll = (part, of) => window.scrollTo(0, (document.documentElement.scrollHeight - innerHeight) * part / of);

// Waits for two frames: a change before the first is in the second.
eke.drawn = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));

eke.open = async state => {
  while (!eke.ready) await new Promise(done => setTimeout(done, 20));
  eke.state = state;
  await eke.drawn();
  return eke.find(40);
};

window.addEventListener('load', () => {
  read(document.querySelector('main'));
  contents(document.querySelector('nav'));
  chart(document.querySelector('canvas'));
  eke.ready = true;
});
