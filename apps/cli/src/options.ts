import { InvalidArgumentError } from 'commander';

const numberFrom = (min: number, max: number, what: string, isValid: (value: number) => boolean) => (text: string) => {
  const value = Number(text);
  if (text.trim() !== '' && isValid(value) && value >= min && value <= max) return value;
  throw new InvalidArgumentError(`must be a ${what} from ${min} to ${max}`);
};

export const integer = (min: number, max: number) => numberFrom(min, max, 'whole number', Number.isInteger);
export const fraction = numberFrom(0, 1, 'number', Number.isFinite);

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** For commander's argParser: "500ms", "90s", "10m", "2h", "30d", or a number of seconds. Returns ms. */
export function duration(text: string): number {
  const [, number = '', unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text.trim()) ?? [];
  const ms = Math.round(Number(number || NaN) * (UNITS_MS[unit] ?? NaN));
  if (!(ms > 0)) throw new InvalidArgumentError('must be a time such as 500ms, 90s, 10m, 2h or 30d');
  return ms;
}

export function keyValue(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('must look like key=value');
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

export const repeated = (text: string, before: readonly string[] = []): string[] => [...before, text];
