// The last traced step above the same step as planned, on one time scale. Each rank has a row:
// computing and waits in its upper part, links and all-reduces below.

import * as format from './format.js';
import {KINDS, block, html, picture, showLegend, svg} from './svg.js';

const ROW = 40;
const MAIN = 22;
const THIN = 7;
const TOP = 22;
const SPANS_MAX = 6000;
const WAITS = {RA: 'activation', RG: 'gradient', RT: 'activation'};

// Lanes and names are defined in docs/formats/trace.md.
export function kindOf({lane, name}) {
  if (lane.startsWith('link') || lane === 'sum') return 'link';
  if (lane === 'codec') return 'codec';
  if (lane === 'wait') {
    if (/^[FBRTV]/.test(name)) {
      return {F: 'activation', B: 'gradient', R: WAITS[name.slice(0, 2)] ?? 'sum', T: 'sum', V: 'vote'}[name[0]];
    }
    return 'wait';
  }
  if (name.startsWith('F')) return 'forward';
  if (name.startsWith('BW')) return 'weights';
  if (name.startsWith('B')) return 'backward';
  if (/^(SA|SG|ST|RA|RG)/.test(name)) return 'codec';
  return 'update';
}

function length(step) {
  return step ? step.spans.reduce((end, span) => Math.max(end, span.start_s + span.duration_s), 0) : 0;
}

// A round distance in seconds between two marks, for about five marks.
function markDistance(whole) {
  const rough = whole / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((m) => m >= rough);
}

function drawn(step, ranks, whole, width, title) {
  const left = width < 520 ? 62 : 150;
  const scale = (width - left - 10) / whole;
  const count = step.spans.reduce((n, span) => Math.max(n, span.rank + 1), ranks.length);
  const parts = [];
  for (let at = 0, distance = markDistance(whole); at <= whole * 1.0001; at += distance) {
    const x = left + at * scale;
    parts.push(svg('line', {x1: x, x2: x, y1: TOP - 4, y2: TOP + count * ROW, class: 'mark'}),
               svg('text', {x, y: TOP - 8, class: 'small', 'text-anchor': at === 0 ? 'start' : 'middle'},
                   at === 0 ? '0' : format.seconds(at)));
  }
  for (let rank = 0; rank < count; rank += 1) {
    const name = ranks[rank]?.name ?? `rank ${rank}`;
    const short = width < 520 ? name.replace(/ \(.*\)$/, '') : name;
    parts.push(svg('text', {x: 0, y: TOP + rank * ROW + 16, class: 'small'}, short));
  }
  const spans = step.spans.length <= SPANS_MAX ? step.spans
    : [...step.spans].sort((a, b) => b.duration_s - a.duration_s).slice(0, SPANS_MAX);
  const kinds = new Set();
  for (const span of spans) {
    const kind = kindOf(span);
    const thin = kind === 'link';
    const y = TOP + span.rank * ROW + (thin ? MAIN + 3 : 0);
    kinds.add(kind);
    parts.push(block(kind, left + span.start_s * scale, y, span.duration_s * scale, thin ? THIN : MAIN,
                     `${span.name}, ${KINDS[kind]}: ${format.seconds(span.duration_s)} from ${format.seconds(span.start_s)}`));
  }
  const end = length(step);
  const label = `${title}: ${format.seconds(end)}, ${count} ranks`;
  return {kinds, element: html('figure', {}, html('figcaption', {}, `${title}: ${format.seconds(end)}`),
                               picture(width, TOP + count * ROW + 2, label, ...parts))};
}

// The reason why no measured step is drawn.
function untraced(state) {
  if (['preparing', 'training', 'restarting'].includes(state)) return 'The last traced step is drawn here after the first steps; none is traced with run.trace_steps = 0.';
  return 'No step of this plan was traced: the first two are for warming up, and run.trace_steps = 0 traces none.';
}

export function showTimeline(place, note, legend, timeline, description) {
  const {measured, simulated} = timeline ?? {};
  const why = untraced(description.run?.state);
  const whole = Math.max(length(measured), length(simulated));
  if (!(whole > 0)) {
    note.textContent = why;
    place.hidden = true;
    legend.replaceChildren();
    return place.replaceChildren();
  }
  place.hidden = false;
  const ratio = length(measured) / length(simulated);
  note.textContent = !measured ? `${why} This is the plan.`
    : Number.isFinite(ratio) ? `Both have the same scale: step ${format.count(measured.step)} took ${format.percent(ratio)} of its planned time.` : '';
  const width = Math.max(place.clientWidth, 300);
  const pictures = [];
  if (measured) pictures.push(drawn(measured, description.ranks ?? [], whole, width, `step ${format.count(measured.step)}, as measured`));
  if (simulated) pictures.push(drawn(simulated, description.ranks ?? [], whole, width, 'as planned'));
  place.replaceChildren(...pictures.map((p) => p.element));
  const kinds = Object.keys(KINDS).filter((kind) => pictures.some((p) => p.kinds.has(kind)));
  showLegend(legend, kinds);
}
