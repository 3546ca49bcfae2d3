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

/** Collects repeated `key=value` flags. */
export function keyValue(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('must look like key=value');
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

export const repeated = (text: string, before: readonly string[] = []): string[] => [...before, text];
