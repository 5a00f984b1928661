// Milliseconds since the epoch as the two texts the platforms use, from the sandbox's own clock.

const DAYS = ['Thu', 'Fri', 'Sat', 'Sun', 'Mon', 'Tue', 'Wed'] as const;
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');
const DAY_MS = 86_400_000;

interface Civil {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

/** Days since 1970-01-01 to a proleptic Gregorian date (eras of 400 years, years from March). */
function civilFromDays(days: number): Civil {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear =
    dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1,
  };
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

function timeOfDay(epochMs: number): string {
  const seconds = Math.floor((((epochMs % DAY_MS) + DAY_MS) % DAY_MS) / 1000);
  return `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

/** `2026-08-01T10:00:00.123000+00:00`, as Discord writes timestamps. */
export function isoTime(epochMs: number): string {
  const { year, month, day } = civilFromDays(Math.floor(epochMs / DAY_MS));
  const millis = String(((Math.floor(epochMs) % 1000) + 1000) % 1000).padStart(3, '0');
  return `${year}-${two(month)}-${two(day)}T${timeOfDay(epochMs)}.${millis}000+00:00`;
}

/** `Sat, 01 Aug 2026 10:00:00 GMT`, for the Date header. */
export function httpDate(epochMs: number): string {
  const days = Math.floor(epochMs / DAY_MS);
  const { year, month, day } = civilFromDays(days);
  const weekday = DAYS[((days % 7) + 7) % 7] ?? 'Thu';
  return `${weekday}, ${two(day)} ${MONTHS[month - 1] ?? 'Jan'} ${year} ${timeOfDay(epochMs)} GMT`;
}
