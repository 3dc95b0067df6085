// The page of a run: receives the server's data and passes it to the drawing modules. It stores
// nothing in the browser and contacts no other machine.

import * as format from './format.js';
import {Curves} from './curves.js';
import {follow, ask} from './live.js';
import {showMemory, showTime, showLosses} from './ranks.js';
import {addPatterns, html} from './svg.js';
import {showTimeline} from './timeline.js';
import {showGroup} from './topology.js';

const at = (id) => document.getElementById(id);
const run = {description: null, state: null, timeline: null, heard: Date.now()};

// A sign and a word for each level, so that colours alone carry no meaning.
const SIGNS = {good: '✓', watch: '!', bad: '✕', none: ''};
const UNDER_WAY = ['preparing', 'training', 'restarting'];
const STATES = {
  preparing: ['good', 'not started yet'],
  training: ['good', 'training'],
  restarting: ['watch', 'restarting'],
  ended: ['good', 'ended'],
  stopped: ['good', 'stopped'],
  failed: ['bad', 'ended with an error'],
  silent: ['watch', 'no reports'],
};

function say(place, level, text) {
  place.dataset.level = level;
  place.replaceChildren(html('span', {class: 'sign', 'aria-hidden': true}, SIGNS[level] ?? ''), text);
}

function showHead() {
  const {run: about, plan} = run.description;
  at('name').textContent = about.name;
  document.title = `${about.name} – Motley`;
  const [, word] = STATES[about.state] ?? ['watch', about.state];
  const schedule = plan?.schedule ? `${plan.schedule}, ${format.count(plan.micro_batches)} micro-batch${plan.micro_batches === 1 ? '' : 'es'}` : '';
  at('model').textContent = [about.model, schedule, about.virtual && 'virtual devices: nothing is computed', word].filter(Boolean).join(' · ');
  at('folder').textContent = [about.folder, plan?.hash && `plan ${plan.hash}`].filter(Boolean).join(' · ');
}

function showVerdict() {
  const verdict = run.state?.verdict;
  say(at('verdict'), verdict?.level ?? 'none', verdict?.text ?? '');
  if (verdict?.advice) at('verdict').append(html('small', {}, verdict.advice));
}

// The last evaluation, "held-out 2.401, perplexity 11.03, 45.3 % correct, 71.0 % in the top 5".
function heldOut(evaluation) {
  if (!format.isNumber(evaluation?.loss)) return '';
  const {perplexity, accuracy, top5_accuracy: top5} = evaluation;
  return [`held-out ${format.value(evaluation.loss)}`,
    format.isNumber(perplexity) && `perplexity ${format.value(perplexity)}`,
    format.isNumber(accuracy) && `${(accuracy * 100).toFixed(1)} % correct`,
    format.isNumber(top5) && `${(top5 * 100).toFixed(1)} % in the top 5`].filter(Boolean).join(', ');
}

function showNumbers() {
  const {state} = run;
  const ended = run.description && run.description.run.state !== 'training';
  at('step').textContent = `${format.count(state.step)} of ${format.count(state.steps)}`;
  at('progress').max = state.steps || 1;
  at('progress').value = state.step || 0;
  at('loss').textContent = format.value(state.loss);
  at('loss-note').textContent = [format.isNumber(state.loss) && 'of the last step', heldOut(state.eval)]
    .filter(Boolean).join('; ');
  at('step-s').textContent = format.seconds(state.step_s);
  const over = state.step_s / state.predicted_step_s - 1;
  at('step-note').textContent = Number.isFinite(over)
    ? `plan ${format.seconds(state.predicted_step_s)} (${over < 0 ? '−' : '+'}${Math.abs(over * 100).toFixed(0)} %)` : '';
  at('tokens').textContent = format.count(state.tokens_per_s);
  at('eta').textContent = ended ? '–' : format.span(state.eta_s);
  at('eta-note').textContent = !ended && format.isNumber(state.eta_s)
    ? `until about ${format.clock(Date.now() / 1000 + state.eta_s)}` : '';
}

function showEvents(events) {
  const rows = [...events].reverse().map((event) => html(
    'li', {'data-kind': event.kind},
    html('time', {}, format.clock(event.time)),
    html('span', {class: 'kind'}, String(event.kind).replaceAll('_', ' ')),
    html('span', {}, [format.isNumber(event.step) && `step ${format.count(event.step)}: `, event.text]
      .filter(Boolean).join(''))));
  at('events').replaceChildren(...(rows.length ? rows : [html('li', {class: 'quiet'}, 'none so far')]));
}

// Draws everything that depends on the page's width.
function draw() {
  const {description, state, timeline} = run;
  if (!description || !state) return;
  showGroup(at('topology'), at('links').tBodies[0], description, state);
  showTime(at('time'), at('time-legend'), description, state);
  showMemory(at('memory'), description, state);
  showLosses(at('losses'), state);
  showTimeline(at('timeline'), at('timeline-note'), at('timeline-legend'), timeline, description);
}

function showConnection(connection) {
  const since = format.clock(run.heard / 1000);
  document.body.dataset.connection = connection;
  if (connection === 'live') {
    const goesOn = UNDER_WAY.includes(run.description?.run.state ?? 'training');
    return say(at('connection'), 'good', goesOn ? 'live' : 'connected');
  }
  if (connection === 'lost') {
    return say(at('connection'), 'watch', `connection lost, reconnecting; data from ${since}`);
  }
  say(at('connection'), 'bad', `motley watch has ended or was restarted: open the address that it prints; data from ${since}`);
}

const curves = new Curves({
  chart: at('curve'), choice: at('curve-choice'), tools: at('curve-tools'), point: at('curve-point'),
});

async function askTimeline() {
  run.timeline = await ask('api/timeline').catch(() => null);
  draw();
}

// The run's folder is gone or unreadable: the page shows the last data.
function showUnreadable({error, cause}) {
  say(at('connection'), 'bad', `${[error, cause].filter(Boolean).join(': ')}; data from ${format.clock(run.heard / 1000)}`);
}

function heard(show) {
  return (data) => {
    run.heard = Date.now();
    show(data);
  };
}

addPatterns();
// The token is now in the cookie, so it is removed from the address and the browser's history.
history.replaceState(null, '', location.pathname);
follow({
  connection: showConnection,
  description: heard((data) => {
    run.description = data;
    if (document.body.dataset.connection !== 'lost') showConnection('live');
    curves.setSimulated(Boolean(data.run.virtual));
    showHead();
    showVerdict();
    draw();
  }),
  unreadable: showUnreadable,
  state: heard((data) => {
    run.state = data;
    showNumbers();
    showVerdict();
    draw();
  }),
  steps: heard((columns) => curves.add(columns)),
  events: heard(showEvents),
  timeline: heard(askTimeline),
});

let resized = 0;
new ResizeObserver(() => {
  cancelAnimationFrame(resized);
  resized = requestAnimationFrame(draw);
}).observe(document.body);
