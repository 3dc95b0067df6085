// The machines of a group and the traffic of each link: a picture for the overview and a table with
// all numbers. Bandwidths are those that were probed, or those of the cluster file.

import * as format from './format.js';
import {html, picture, svg} from './svg.js';

const BOX_WIDTH = 128;
const BEND = 34;
const NARROW = 520;  // below this width in pixels the machines form a column
const COLUMN_STEP = 124;
const LINE_HEIGHT = 16;
// Label positions along the line: the first free one is used. Without one, only the table has the
// numbers.
const LABEL_PLACES = [0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78];
const LABELS_MAX = 12;  // beyond this number only the busiest links have labels

function layers(rank) {
  if (!format.isNumber(rank.first_layer)) return '';
  return rank.first_layer === rank.last_layer
    ? ` · layer ${rank.first_layer}` : ` · layers ${rank.first_layer}–${rank.last_layer}`;
}

// The pairs of machines with traffic, the busiest first. Links between ranks of one pair are added
// up.
export function pairs(description, state) {
  const found = new Map();
  const sent = new Map((state.links ?? []).map((link) => [`${link.from} ${link.to}`, link.bytes_s]));
  for (const link of description.links ?? []) {
    if (link.from_machine === link.to_machine) continue;
    const name = `${link.from_machine} → ${link.to_machine}`;
    const pair = found.get(name) ?? {
      name, from: link.from_machine, to: link.to_machine, codecs: new Set(), known: link.bandwidth_bytes_s, sent: null,
    };
    pair.codecs.add(link.codec ?? 'none');
    const now = sent.get(`${link.from} ${link.to}`);
    if (format.isNumber(now)) pair.sent = (pair.sent ?? 0) + now;
    found.set(name, pair);
  }
  return [...found.values()].map((pair) => ({
    ...pair,
    codec: [...pair.codecs].join(', '),
    used: format.isNumber(pair.sent) && pair.known > 0 ? pair.sent / pair.known : null,
  })).sort((a, b) => (b.used ?? -1) - (a.used ?? -1));
}

// "full" is drawn thick and with a sign, "busy" thicker than the rest.
function level(used) {
  if (!format.isNumber(used)) return 'unknown';
  return used >= 0.8 ? 'full' : used >= 0.4 ? 'busy' : 'easy';
}

function places(machines, width, height) {
  if (machines.length === 1) return [{x: width / 2, y: height / 2}];
  if (width < NARROW) return machines.map((machine, i) => ({x: width / 2, y: (i + 0.5) * COLUMN_STEP}));
  if (machines.length === 2) return [{x: width * 0.16, y: height / 2}, {x: width * 0.84, y: height / 2}];
  return machines.map((machine, i) => {
    const angle = -Math.PI / 2 + (2 * Math.PI * i) / machines.length;
    return {
      x: width / 2 + (width / 2 - BOX_WIDTH / 2 - 6) * Math.cos(angle),
      y: height / 2 + (height / 2 - 44) * Math.sin(angle),
    };
  });
}

function heightFor(machines, width) {
  if (machines.length <= 1) return 100;
  if (width < NARROW) return machines.length * COLUMN_STEP;
  return machines.length === 2 ? 170 : Math.max(340, machines.length * 44);
}

function box(machine, ranks, {x, y}) {
  const rows = machine.ranks.slice(0, 3).map((rank) => ranks[rank]).filter(Boolean);
  const left = machine.ranks.length - rows.length;
  const texts = rows.map((rank) => rank.name.replace(/ \(.*\)$/, '') + layers(rank));
  if (left > 0) texts.push(`and ${left} more`);
  const height = LINE_HEIGHT * (texts.length + 1) + 10;
  const top = y - height / 2;
  const lines = [machine.name, ...texts].map((text, i) => svg(
    'text', {x, y: top + LINE_HEIGHT * (i + 1), class: i === 0 ? 'strong' : 'small', 'text-anchor': 'middle'},
    text.length > 22 ? `${text.slice(0, 21)}…` : text));
  return svg('g', {class: 'machine'},
             svg('title', {}, [machine.name, ...rows.map((rank) => `${rank.name}, ${rank.device}${layers(rank)}`)].join('\n')),
             svg('rect', {x: x - BOX_WIDTH / 2, y: top, width: BOX_WIDTH, height, rx: 6}), ...lines);
}

// The two directions bend away from each other, so each has its own line, with its text on the
// outer side. In a column a line passes around the machines between its ends.
function line(pair, a, b, width, taken) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = Math.hypot(dx, dy) || 1;
  const [nx, ny] = [-dy / length, dx / length];
  const bend = width < NARROW && length > COLUMN_STEP * 1.5 ? BOX_WIDTH + 24 : BEND;
  const [cx, cy] = [(a.x + b.x) / 2 + nx * bend, (a.y + b.y) / 2 + ny * bend];
  const along = (t) => ({
    x: (1 - t) ** 2 * a.x + 2 * t * (1 - t) * cx + t ** 2 * b.x,
    y: (1 - t) ** 2 * a.y + 2 * t * (1 - t) * cy + t ** 2 * b.y,
  });
  const how = level(pair.used);
  const sign = how === 'full' ? '! ' : '';
  const parts = [
    svg('path', {d: `M${a.x} ${a.y}Q${cx} ${cy} ${b.x} ${b.y}`, class: `link ${how}`}),
    arrow(along(0.62), along(0.66)),
  ];
  const out = Math.abs(nx) * 52 + Math.abs(ny) * 18;
  const spots = LABEL_PLACES.map(along).map((spot) => ({
    x: Math.min(Math.max(spot.x + nx * out, 52), width - 52), y: spot.y + ny * out,
  }));
  const isFree = (spot) => taken.every((other) => Math.abs(other.x - spot.x) > 100 || Math.abs(other.y - spot.y) > 32);
  const place = taken.length < LABELS_MAX && spots.find(isFree);
  if (place) {
    const {x, y} = place;
    taken.push(place);
    const texts = [format.isNumber(pair.sent) && sign + format.rate(pair.sent),
                   [format.isNumber(pair.used) && format.percent(pair.used), pair.codec !== 'none' && pair.codec]
                     .filter(Boolean).join(' · ')].filter(Boolean);
    parts.push(...texts.map((text, i) => svg(
      'text', {x, y: y - 3 + 14 * i, class: 'small halo', 'text-anchor': 'middle'}, text)));
  }
  return svg('g', {}, svg('title', {}, sentence(pair)), ...parts);
}

function arrow(from, to) {
  const angle = (Math.atan2(to.y - from.y, to.x - from.x) * 180) / Math.PI;
  return svg('path', {d: 'M-5 -5L5 0L-5 5Z', class: 'arrow', transform: `translate(${to.x} ${to.y}) rotate(${angle})`});
}

function sentence(pair) {
  return `${pair.name}: ${format.rate(pair.sent)} of ${format.rate(pair.known)}, ${format.percent(pair.used)}, codec ${pair.codec}`;
}

export function showGroup(place, table, description, state) {
  const machines = description.machines ?? [];
  const all = pairs(description, state);
  const width = Math.max(place.clientWidth, 280);
  const height = heightFor(machines, width);
  const at = places(machines, width, height);
  const where = new Map(machines.map((machine, i) => [machine.name, at[i]]));
  const taken = [];
  const lines = all.filter((pair) => where.has(pair.from) && where.has(pair.to))
    .map((pair) => line(pair, where.get(pair.from), where.get(pair.to), width, taken));
  const boxes = machines.map((machine, i) => box(machine, description.ranks ?? [], at[i]));
  const label = `${machines.length} machine${machines.length === 1 ? '' : 's'}: ${machines.map((m) => m.name).join(', ')}. `
    + all.map(sentence).join('. ');
  place.replaceChildren(picture(width, height, label, ...lines, ...boxes));
  table.replaceChildren(...(all.length ? all.map(row) : [html('tr', {}, html('td', {colspan: 5, class: 'quiet'},
    'nothing is sent between machines'))]));
}

function row(pair) {
  const how = level(pair.used);
  return html('tr', {},
              html('th', {scope: 'row'}, pair.name), html('td', {}, pair.codec),
              html('td', {}, format.rate(pair.sent)), html('td', {}, format.rate(pair.known)),
              html('td', {'data-level': how}, how === 'full' ? `! ${format.percent(pair.used)}` : format.percent(pair.used)));
}
