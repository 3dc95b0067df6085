// The time and memory of each rank.

import * as format from './format.js';
import {KINDS, block, html, picture, showLegend, svg} from './svg.js';

const BAR = 20;
const CAUSES = ['activation', 'gradient', 'sum', 'vote'];

// The parts of a rank's step time, in drawing order. Messages and the update are separated from the
// computing time, which includes them in the document.
export function shares(rank) {
  const layers = rank.compute_s - (rank.codec_s ?? 0) - (rank.optimizer_s ?? 0);
  const parts = [['compute', layers], ['codec', rank.codec_s], ['update', rank.optimizer_s]];
  let others = 0;
  for (const [cause, seconds] of Object.entries(rank.wait_s ?? {})) {
    if (CAUSES.includes(cause)) parts.push([cause, seconds]);
    else others += seconds ?? 0;
  }
  parts.push(['wait', others]);
  return parts.filter(([, seconds]) => seconds > 0);
}

function named(rank, i, ...content) {
  return html('div', {class: 'rank'}, html('span', {class: 'rank-name'}, rank?.name ?? `rank ${i}`), ...content);
}

function legendKinds(rows) {
  return Object.keys(KINDS).filter((kind) => rows.some((row) => row.some(([other]) => other === kind)));
}

export function showTime(place, legend, description, state) {
  const rows = (state.ranks ?? []).map(shares);
  const longest = Math.max(...rows.map((row) => row.reduce((sum, [, s]) => sum + s, 0)), 0);
  if (!(longest > 0)) {
    place.replaceChildren(html('p', {class: 'quiet'}, 'not reported by this run'));
    return legend.replaceChildren();
  }
  const width = Math.max(place.clientWidth, 260);
  place.replaceChildren(...rows.map((row, i) => {
    const texts = row.map(([kind, s]) => `${KINDS[kind]} ${format.percent(s / longest)}`);
    let x = 0;
    const blocks = row.map(([kind, s], j) => {
      const wide = (s / longest) * width;
      const made = block(kind, x, 0, wide, BAR, `${texts[j]}, ${format.seconds(s)}`);
      x += wide;
      return made;
    });
    return named(description.ranks?.[i], i, picture(width, BAR, texts.join(', '), ...blocks),
                 html('span', {class: 'quiet'}, texts.join(' · ')));
  }));
  showLegend(legend, legendKinds(rows));
}

// A bar up to the predicted memory, extended beyond it if more is in use.
export function showMemory(place, description, state) {
  const width = Math.max(place.clientWidth, 260);
  const rows = (description.ranks ?? []).map((rank, i) => {
    const now = state.ranks?.[i]?.memory_bytes;
    const predicted = rank.predicted?.memory_bytes;
    const most = Math.max(now || 0, predicted || 0);
    const over = format.isNumber(now) && predicted > 0 && now > predicted;
    const text = `${over ? '! ' : ''}${format.bytes(now)} of ${format.bytes(predicted)} predicted`;
    const scale = most > 0 ? (width - 4) / most : 0;
    return named(rank, i, picture(width, BAR, text,
      svg('rect', {x: 0, y: 3, width: (predicted || 0) * scale, height: BAR - 6, class: 'predicted-memory'}),
      svg('rect', {x: 0, y: 6, width: (now || 0) * scale, height: BAR - 12, class: over ? 'memory over' : 'memory'}),
      svg('line', {x1: (predicted || 0) * scale, x2: (predicted || 0) * scale, y1: 0, y2: BAR, class: 'limit'})),
      html('span', {class: 'quiet'}, text));
  });
  place.replaceChildren(...rows);
}

const LOSSES = {
  imbalance: 'unequal stages', links_and_filling: 'links and filling', codec: 'messages, codecs', optimizer: 'update',
};

export function showLosses(place, state) {
  const measured = Object.entries(state.losses ?? {}).filter(([, share]) => format.isNumber(share));
  place.textContent = measured.length === 0 ? ''
    : `Of all ranks’ time: ${measured.map(([name, share]) => `${LOSSES[name] ?? name} ${format.percent(share)}`).join(' · ')}`;
}
