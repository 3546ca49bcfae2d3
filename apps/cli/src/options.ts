import { InvalidArgumentError } from 'commander';

/** For commander's argParser: a whole number between two bounds. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isInteger(value) || value < min || value > max) {
      throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}`);
    }
    return value;
  };
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** For commander's argParser: "500ms", "90s", "10m", "2h", or a number of seconds. Returns ms. */
export function duration(text: string): number {
  const [, number = '', unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text.trim()) ?? [];
  const ms = Math.round(Number(number || NaN) * (UNITS_MS[unit] ?? NaN));
  if (!(ms > 0)) throw new InvalidArgumentError('must be a time such as 500ms, 90s, 10m or 2h');
  return ms;
}

/** Collects repeated `key=value` flags. */
export function keyValue(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('must look like key=value');
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

export const repeated = (text: string, before: readonly string[] = []): string[] => [...before, text];

/** For commander's argParser: a number from 0 to 1. */
export function fraction(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 1)) throw new InvalidArgumentError('must be a number from 0 to 1');
  return value;
}
