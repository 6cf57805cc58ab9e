// Numbers and times as text.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
});
const NOTHING = "–";
const DAY = 86_400;

const date = (seconds) => new Date(seconds * 1000);
const known = (value) => value !== null && value !== undefined;

export const timeOfDay = (seconds) => clock.format(date(seconds));
export const fullTime = (seconds) => dayAndClock.format(date(seconds));
export const isoTime = (seconds) => date(seconds).toISOString();

/** The time alone within a day of `now`, else with its date. */
export const readableTime = (seconds, now) =>
  Math.abs(now - seconds) < DAY ? timeOfDay(seconds) : fullTime(seconds);

export function span(seconds) {
  const length = Math.abs(seconds);
  if (length < 1) return "now";
  if (length < 90) return `${Math.round(length)} s`;
  if (length < 5400) return `${Math.round(length / 60)} min`;
  if (length < 2 * DAY) return `${Math.round(length / 3600)} h`;
  return `${Math.round(length / DAY)} d`;
}

export function ago(seconds, now) {
  const text = span(now - seconds);
  if (text === "now") return "just now";
  return seconds <= now ? `${text} ago` : `in ${text}`;
}

export const probability = (value) => (known(value) ? value.toFixed(2) : NOTHING);

export function percent(share, digits = 0) {
  return known(share) ? `${(share * 100).toFixed(digits)} %` : NOTHING;
}

/** More digits where they matter: 99.95 % is not 100 %. */
export const availability = (share) => percent(share, share > 0.995 && share < 1 ? 2 : 1);

export function duration(seconds) {
  if (!known(seconds)) return NOTHING;
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(2)} s`;
}

export function amount(value, unit) {
  if (!known(value)) return NOTHING;
  return unit === "bytes" ? bytes(value) : plain(value);
}

export const watts = (value) => (value < 10_000 ? `${plain(Math.round(value))} W` : `${plain(value / 1000)} kW`);

export const withUnit = (value, unit) => (known(value) && unit !== "bytes" ? `${plain(value)} ${unit}` : amount(value, unit));

export const plain = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : 1));

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = value < 1024 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), units.length - 1);
  const scaled = value / 1024 ** step;
  return `${scaled.toFixed(scaled < 10 && step > 0 ? 1 : 0)} ${units[step]}`;
}

export const counted = (count, one, many = `${one}s`) => `${count.toLocaleString()} ${count === 1 ? one : many}`;
