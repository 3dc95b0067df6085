// The connection to motley watch. Reports its data and the connection's state, so that a stale page
// is visible as such.

const PARTS = ['description', 'unreadable', 'state', 'steps', 'events', 'timeline'];

// `on` has a function for each part, and `connection(state)`: "live", "lost" (it reconnects
// automatically) or "refused" (it does not reconnect).
export function follow(on) {
  const source = new EventSource('api/live');
  source.onopen = () => on.connection('live');
  source.onerror = () => on.connection(source.readyState === EventSource.CLOSED ? 'refused' : 'lost');
  for (const part of PARTS) {
    source.addEventListener(part, (message) => on[part](JSON.parse(message.data)));
  }
  // A tab restored from the back/forward cache, as on phones, reconnects at once.
  addEventListener('pagehide', () => source.close());
  addEventListener('pageshow', (shown) => shown.persisted && location.reload());
}

export async function ask(path) {
  const answer = await fetch(path, {cache: 'no-store'});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}
