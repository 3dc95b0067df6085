// Numbers formatted for display. An unknown value is a dash.

const DASH = '–';

export function isNumber(x) {
  return typeof x === 'number' && Number.isFinite(x);
}

export function count(x) {
  return isNumber(x) ? Math.round(x).toLocaleString('en') : DASH;
}

// About four digits, with an exponent only if necessary.
export function value(x) {
  if (!isNumber(x)) return DASH;
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return x.toExponential(2);
  return x.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
}

// For axes, whose marks are round numbers.
export function short(x) {
  return isNumber(x) ? String(Number(x.toPrecision(5))) : DASH;
}

export function seconds(s) {
  if (!isNumber(s)) return DASH;
  if (s < 0.9995e-3) return `${(s * 1e6).toPrecision(3)} µs`;
  if (s < 0.9995) return `${(s * 1e3).toPrecision(3)} ms`;
  return `${s.toPrecision(3)} s`;
}

// A remaining time: "2 h 05 min".
export function span(s) {
  if (!isNumber(s)) return DASH;
  const minutes = Math.round(s / 60);
  if (s < 90) return `${Math.round(s)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, '0')} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function scaled(x, step, units) {
  let unit = 0;
  while (x >= step && unit + 1 < units.length) {
    x /= step;
    unit += 1;
  }
  return `${x >= 100 || unit === 0 ? x.toFixed(0) : x.toPrecision(3)} ${units[unit]}`;
}

export function bytes(b) {
  return isNumber(b) ? scaled(b, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']) : DASH;
}

// Link bandwidths in bits per second, with the units of cluster files.
export function rate(bytesPerSecond) {
  return isNumber(bytesPerSecond)
    ? scaled(bytesPerSecond * 8, 1000, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s']) : DASH;
}

export function percent(share) {
  if (!isNumber(share)) return DASH;
  return `${(share * 100).toFixed(share < 0.0995 && share > 0 ? 1 : 0)} %`;
}

export function clock(secondsSince1970) {
  if (!isNumber(secondsSince1970)) return DASH;
  const at = new Date(secondsSince1970 * 1000);
  const today = at.toDateString() === new Date().toDateString();
  const time = at.toLocaleTimeString('en-GB');
  return today ? time : `${at.toLocaleDateString('en-CA')} ${time}`;
}
