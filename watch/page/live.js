// The connection to motley watch. Says what comes, and whether anything can come: a page that looks
// alive and is not would be worse than none.

const PARTS = ['description', 'unreadable', 'state', 'steps', 'events', 'timeline'];

// `on` has a function for each part, and `connection(state)`: "live", "lost" (it tries again by
// itself) or "refused" (it will not come back).
export function follow(on) {
  const source = new EventSource('api/live');
  source.onopen = () => on.connection('live');
  source.onerror = () => on.connection(source.readyState === EventSource.CLOSED ? 'refused' : 'lost');
  for (const part of PARTS) {
    source.addEventListener(part, (message) => on[part](JSON.parse(message.data)));
  }
  // A tab that is put aside and shown again, as phones do it, must not wait for the browser's turn.
  addEventListener('pagehide', () => source.close());
  addEventListener('pageshow', (shown) => shown.persisted && location.reload());
}

export async function ask(path) {
  const answer = await fetch(path, {cache: 'no-store'});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}
