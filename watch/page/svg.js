// Elements for HTML and SVG, and the appearance of the kinds of work. Texts from a run are inserted
// as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// An SVG image; `label` is its text for screen readers.
export function picture(width, height, label, ...children) {
  return svg('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label},
             ...children);
}

// The kinds of a rank's time. Each has a pattern in addition to its colour, and its name is written
// wherever it is drawn.
export const KINDS = {
  forward: 'forward',
  backward: 'backward',
  weights: 'weight part',
  compute: 'computing',
  update: 'update, vote',
  codec: 'messages, codecs',
  link: 'link, sum',
  activation: 'waits for activations',
  gradient: 'waits for gradients',
  sum: 'waits for all-reduces',
  vote: 'waits for the vote',
  wait: 'waits',
};

// The lines of each pattern, in a square of 8 pixels.
const LINES = {
  backward: 'M0 8L8 0',
  weights: 'M0 4H8',
  update: 'M0 0L8 8M0 8L8 0',
  codec: 'M4 0V8',
  link: 'M2 2h1M6 6h1',
  activation: 'M0 8L8 0',
  gradient: 'M0 0L8 8',
  sum: 'M0 4H8',
  vote: 'M4 0V8',
  wait: 'M4 4h1',
};

// Defines the patterns, once per page.
export function addPatterns() {
  const patterns = Object.keys(KINDS).map((kind) => svg(
    'pattern', {id: `fill-${kind}`, width: 8, height: 8, patternUnits: 'userSpaceOnUse'},
    svg('rect', {width: 8, height: 8, class: `base-${kind}`}),
    svg('path', {d: LINES[kind] ?? '', class: `lines-${kind}`})));
  document.body.append(svg('svg', {width: 0, height: 0, class: 'patterns', 'aria-hidden': true},
                           svg('defs', {}, ...patterns)));
}

export function block(kind, x, y, width, height, title) {
  return svg('rect', {x, y, width: Math.max(width, 0.5), height, fill: `url(#fill-${kind})`, class: 'block'},
             svg('title', {}, title));
}

export function showLegend(place, kinds) {
  place.replaceChildren(...kinds.map((kind) => html(
    'span', {}, svg('svg', {width: 16, height: 12}, block(kind, 0, 0, 16, 12, KINDS[kind])), KINDS[kind])));
}
