// The curves of a run over its steps, drawn by dygraphs (dygraph.min.js, which defines Dygraph).
// Holds a bounded number of points; the server thins them so that peaks remain.

import * as format from './format.js';
import {html} from './svg.js';
import {ask} from './live.js';

const POINTS = 2000;
const POINTS_MAX = 2 * POINTS;

// The selectable curves: column, name, format of a value, format at the axis, and the name of a
// second line.
const CHOICES = [
  {key: 'loss', name: 'loss', text: format.value, axis: format.short, other: 'held-out loss'},
  {key: 'step_s', name: 'seconds a step', text: format.seconds, other: 'predicted'},
  {key: 'tokens_per_s', name: 'tokens a second', text: format.count},
  {key: 'bubble', name: 'time not computed', text: format.percent},
  {key: 'lr', name: 'learning rate', text: format.value, axis: format.short},
];
const COLUMNS = ['loss', 'step_s', 'tokens_per_s', 'bubble', 'lr'];

// The library's legend writes styles into markup, which the page's security policy forbids. The
// text beside the curve shows the values of a point instead.
const PLUGINS = window.Dygraph.PLUGINS.filter((plugin) => !/legend/i.test(plugin.prototype.toString()));
window.Dygraph.PLUGINS = PLUGINS;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export class Curves {
  constructor({chart, choice, tools, point}) {
    this.chart = chart;
    this.point = point;
    this.choice = CHOICES[0];
    this.selected = -1;
    this.clear();
    this.offerChoices(choice);
    this.offerTools(tools);
    chart.addEventListener('keydown', (event) => this.key(event));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.restyle());
  }

  clear() {
    this.columns = {step: []};
    for (const name of COLUMNS) this.columns[name] = [];
    this.evals = new Map();
    this.predicted = null;
  }

  // The server's columns replace all points from their first step on.
  add(columns) {
    if (columns.whole) this.clear();
    const {step} = this.columns;
    const first = columns.step[0] ?? Infinity;
    let kept = step.length;
    while (kept > 0 && step[kept - 1] >= first) kept -= 1;
    for (const name of ['step', ...COLUMNS]) {
      this.columns[name].length = kept;
      // An unknown column is a gap in its curve.
      const more = columns[name] ?? columns.step.map(() => null);
      for (const x of more) this.columns[name].push(x);
    }
    for (const [at, loss] of columns.eval ?? []) this.evals.set(at, loss);
    if (format.isNumber(columns.predicted_step_s)) this.predicted = columns.predicted_step_s;
    if (step.length > POINTS_MAX && !this.asking) this.thin();
    this.draw();
  }

  async thin() {
    this.asking = true;
    try {
      const columns = await ask(`api/history?points=${POINTS}`);
      this.add({...columns, whole: true});
    } catch {
      // The next steps retry; until then the curves only have more points than necessary.
    } finally {
      this.asking = false;
    }
  }

  rows() {
    const {step} = this.columns;
    const values = this.columns[this.choice.key];
    const other = this.other();
    const rows = step.map((at, i) => [at, values[i], other(at)]);
    // Evaluations at steps that were thinned out have their own row.
    if (this.choice.key === 'loss') {
      const known = new Set(step);
      for (const [at, loss] of this.evals) if (!known.has(at)) rows.push([at, null, loss]);
      rows.sort((a, b) => a[0] - b[0]);
    }
    return rows;
  }

  other() {
    if (this.choice.key === 'loss') return (at) => this.evals.get(at) ?? null;
    if (this.choice.key === 'step_s') return () => this.predicted;
    return () => null;
  }

  options() {
    const {choice} = this;
    return {
      labels: ['step', choice.name, choice.other ?? ' '],
      visibility: [true, Boolean(choice.other)],
      logscale: choice.key === 'loss' && this.log,
      colors: [colour('--curve'), colour('--other')],
      axisLineColor: colour('--line'),
      gridLineColor: colour('--line'),
      series: {
        [choice.other ?? ' ']: choice.key === 'loss'
          ? {drawPoints: true, pointSize: 3, strokePattern: [6, 3]} : {strokePattern: [6, 3]},
      },
      axes: {
        x: {axisLabelFormatter: (x) => (Number.isInteger(x) ? format.count(x) : '')},
        y: {axisLabelFormatter: (y) => (choice.axis ?? choice.text)(y), axisLabelWidth: 72},
      },
    };
  }

  draw() {
    const rows = this.rows();
    if (rows.length === 0) return;
    if (this.graph) {
      this.graph.updateOptions({file: rows, ...this.options()});
    } else {
      this.graph = new window.Dygraph(this.chart, rows, {
        ...this.options(),
        connectSeparatedPoints: true,
        xRangePad: 8,
        strokeWidth: 1.5,
        highlightCircleSize: 4,
        highlightCallback: (event, x, points, row) => this.showPoint(row),
        unhighlightCallback: () => this.showPoint(-1),
      });
    }
    this.describe(rows);
  }

  // A description of the curve for screen readers.
  describe(rows) {
    const values = rows.map((row) => row[1]).filter(format.isNumber);
    const {name, text} = this.choice;
    const last = values.at(-1);
    const least = values.reduce((a, b) => Math.min(a, b), Infinity);
    this.chart.setAttribute('aria-label', values.length === 0 ? `${name}: no values` :
      `${name} of steps ${rows[0][0]} to ${rows.at(-1)[0]}: last ${text(last)}, least ${text(least)}`);
    if (this.selected < 0) this.showPoint(-1);
  }

  showPoint(row) {
    const shown = row >= 0 ? row : this.graph.numRows() - 1;
    const [step, value, other] = [0, 1, 2].map((column) => this.graph.getValue(shown, column));
    const parts = [`step ${format.count(step)}`, `${this.choice.name} ${this.choice.text(value)}`];
    if (this.choice.other && format.isNumber(other)) parts.push(`${this.choice.other} ${this.choice.text(other)}`);
    this.point.textContent = parts.join(' · ');
  }

  restyle() {
    if (this.graph) this.graph.updateOptions(this.options());
  }

  // On simulated devices there is no loss: another curve is shown first.
  setSimulated(yes) {
    const loss = this.inputs.get('loss');
    if (loss.disabled === yes) return;
    loss.disabled = yes;
    if (yes && this.choice.key === 'loss') this.inputs.get('step_s').click();
  }

  offerChoices(form) {
    this.inputs = new Map();
    for (const choice of CHOICES) {
      const input = html('input', {type: 'radio', name: 'curve', value: choice.key, checked: choice === this.choice && ''});
      this.inputs.set(choice.key, input);
      form.append(html('label', {}, input, choice.name));
      input.addEventListener('change', () => {
        this.choice = choice;
        this.draw();
      });
    }
    const log = html('input', {type: 'checkbox'});
    form.append(html('label', {}, log, 'logarithmic loss'));
    log.addEventListener('change', () => {
      this.log = log.checked;
      this.draw();
    });
    form.addEventListener('submit', (event) => event.preventDefault());
  }

  offerTools(group) {
    const tools = [
      ['−', 'reduce', () => this.zoom(2)], ['+', 'enlarge', () => this.zoom(0.5)],
      ['←', 'earlier', () => this.move(-0.25)], ['→', 'later', () => this.move(0.25)],
      ['all', 'all steps', () => this.all()],
    ];
    for (const [sign, name, act] of tools) {
      const button = html('button', {type: 'button', 'aria-label': name, title: name}, sign);
      button.addEventListener('click', () => this.graph && act());
      group.append(button);
    }
  }

  key(event) {
    if (!this.graph || event.ctrlKey || event.altKey || event.metaKey) return;
    const keys = {
      '+': () => this.zoom(0.5), '-': () => this.zoom(2), '0': () => this.all(),
      ArrowLeft: () => this.select(-1), ArrowRight: () => this.select(1),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  select(by) {
    const rows = this.graph.numRows();
    const from = this.selected < 0 ? rows : this.selected;
    this.selected = Math.min(Math.max(from + by, 0), rows - 1);
    this.graph.setSelection(this.selected);
    this.showPoint(this.selected);
  }

  window(low, high) {
    const [first, last] = this.graph.xAxisExtremes();
    const width = Math.min(high - low, last - first);
    const from = Math.min(Math.max(low, first), last - width);
    if (width > 0) this.graph.updateOptions({dateWindow: [from, from + width]});
  }

  zoom(by) {
    const [low, high] = this.graph.xAxisRange();
    const [middle, half] = [(low + high) / 2, Math.max((high - low) * by / 2, 1)];
    this.window(middle - half, middle + half);
  }

  move(by) {
    const [low, high] = this.graph.xAxisRange();
    const width = (high - low) * by;
    this.window(low + width, high + width);
  }

  all() {
    this.selected = -1;
    this.graph.clearSelection();
    this.graph.resetZoom();
  }
}
