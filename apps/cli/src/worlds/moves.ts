import type { JsonObject } from '@bufbuild/protobuf';
import { CliError, EXIT } from '../errors.js';

/** The arguments of each move, in the order in which they are typed. The last one takes the rest of the line. */
const MOVES: Readonly<Record<string, readonly string[]>> = {
  observe_location: ['radius'],
  move_to: ['x', 'y'],
  gather_resource: ['resource'],
  interact_with_agent: ['name', 'action', 'message'],
};
const NUMBERS = new Set(['radius', 'x', 'y']);
const HINT = Object.entries(MOVES).map(([tool, names]) => [tool, ...names.map((name) => name.toUpperCase())].join(' '));

export interface TypedMove {
  readonly tool: string;
  readonly arguments: JsonObject;
}

/** Reads a move such as "move_to 3 4" or "interact_with_agent @guide-1 talk where is ore". @throws CliError */
export function moveOf(line: string): TypedMove {
  const [tool = '', ...words] = line.trim().split(/\s+/);
  const names = Object.hasOwn(MOVES, tool) ? MOVES[tool] : undefined;
  if (names === undefined) throw new CliError(EXIT.usage, `${JSON.stringify(tool)} is not a move`, HINT);
  const values = tool === 'interact_with_agent' ? [...words.slice(0, 2), words.slice(2).join(' ')].filter((one) => one !== '') : words;
  if (values.length > names.length) throw new CliError(EXIT.usage, `${tool} has too many arguments`, HINT);
  const typed = values.map((value, i) => [names[i] ?? '', NUMBERS.has(names[i] ?? '') ? numberOf(tool, value) : value] as const);
  return { tool, arguments: Object.fromEntries(typed) };
}

function numberOf(tool: string, text: string): number {
  if (/^-?\d{1,6}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `${tool}: ${JSON.stringify(text)} is not a whole number`, HINT);
}
