import { EtudeError } from '@etude/contracts/errors';
import { UNNAMEABLE } from '@etude/contracts/json';
import type { Skill } from '@etude/contracts/memory';
import type { SkillContract } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import { nothingToCall } from '../life/call-graph.js';
import type { SandboxRun } from '@etude/contracts/sandbox';

type Arguments = Readonly<Record<string, unknown>>;
interface Violation {
  readonly field: string;
  readonly description: string;
}

const NO_NAME: Violation = { field: `parameters.${UNNAMEABLE}`, description: 'is no name of an argument' };

/** Parsers that are kept: making one takes longer than a small skill runs. */
const PARSERS_MAX = 64;
const parsers = new Map<string, z.ZodType>();

/** Values that are shown in a message. */
const SHOWN_MAX = 8;

/**
 * Arguments as the skill's contract takes them. What was left out stays so: Python has the default, exactly, and JSON may not (a tuple,
 * 1.0).
 *
 * @throws EtudeError INVALID_ARGUMENT with a line for each argument that is wrong, named "parameters.NAME"; FAILED_PRECONDITION for a
 *   skill that can't be called
 */
export function validateArguments(skill: Pick<Skill, 'name' | 'kind' | 'entryPoint' | 'contract'>, given: Arguments): Arguments {
  const contract = requireContract(skill);
  const known = contract.parameters.map(({ name }) => name);
  const own = ownArguments(given);
  const parsed = parserOf(contract.inputSchema).safeParse(own, { reportInput: true });
  const told = parsed.success ? [] : parsed.error.issues.flatMap((issue) => violationsOf(issue, own, known, contract));
  const violations = Object.hasOwn(own, UNNAMEABLE) && told.length === 0 ? [NO_NAME] : told;
  if (parsed.success && violations.length === 0) return own;
  const lines = violations.map(({ field, description }) => `${field} ${description.replace(/\.+$/, '')}`).join('; ');
  throw new EtudeError(
    'INVALID_ARGUMENT',
    `The arguments of ${skill.name} are wrong: ${lines}${lines.endsWith('?') ? '' : '.'} It is ${contract.signature || `called with ${known.join(', ') || 'nothing'}`}.`,
    { field: violations[0]?.field, violations },
  );
}

/** The same for the same schema, whoever's it is; of many, those that were used last. */
function parserOf(schema: SkillContract['inputSchema']): z.ZodType {
  const key = JSON.stringify(schema);
  const parser = parsers.get(key) ?? z.fromJSONSchema(schema);
  parsers.delete(key);
  parsers.set(key, parser);
  if (parsers.size > PARSERS_MAX) parsers.delete(parsers.keys().next().value ?? key);
  return parser;
}

/** Without the names that every object of JavaScript inherits, such as "constructor", and without what was left out. */
function ownArguments(given: Arguments): Record<string, unknown> {
  const own = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of Object.entries(given)) if (value !== undefined) own[name] = value;
  return own;
}

/** @throws EtudeError FAILED_PRECONDITION where there is nothing to call, and what to do with it */
export function requireCallable(skill: Pick<Skill, 'name' | 'kind' | 'entryPoint'>): void {
  if (skill.kind !== 'function') throw new EtudeError('FAILED_PRECONDITION', `${skill.name} ${nothingToCall(skill)}.`);
}

function requireContract(skill: Pick<Skill, 'name' | 'kind' | 'entryPoint' | 'contract'>): SkillContract {
  requireCallable(skill);
  if (skill.contract !== undefined) return skill.contract;
  throw new EtudeError('FAILED_PRECONDITION', `It is not known what ${skill.name} takes; verify it again, which reads it from its code.`);
}

function violationsOf(issue: z.core.$ZodIssue, given: Arguments, known: readonly string[], contract: SkillContract): Violation[] {
  if (issue.code === 'unrecognized_keys' && issue.path.length === 0)
    return issue.keys.map((name) => ({ field: `parameters.${name}`, description: unknownName(name, known) }));
  const [name] = issue.path;
  const field = ['parameters', ...issue.path].join('.');
  if (issue.path.length === 1 && typeof name === 'string' && !Object.hasOwn(given, name)) {
    const { type = '', description = '' } = contract.parameters.find((parameter) => parameter.name === name) ?? {};
    return [
      { field, description: `is missing${type === '' ? '' : ` (${type})`}${description === '' ? '' : `: ${description.slice(0, 200)}`}` },
    ];
  }
  return [{ field, description: whatIsWrong(issue) }];
}

function unknownName(name: string, known: readonly string[]): string {
  const near = nearestOf(name, known);
  if (near !== null) return `is not known; did you mean "${near}"?`;
  return known.length === 0 ? 'is not known; it takes no arguments' : `is not known; known are ${known.join(', ')}`;
}

function whatIsWrong(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_union') {
    const parts = issue.errors.flatMap((errors) => errors.slice(0, 1)).slice(0, SHOWN_MAX);
    return `fits none of what it may be: ${[...new Set(parts.map(fault))].join('; or ')}`;
  }
  if (issue.code === 'unrecognized_keys') return `has keys that are not known: ${issue.keys.slice(0, SHOWN_MAX).join(', ')}`;
  return `is wrong: ${fault(issue)}`;
}

/** What JSON Schema's types are to who writes Python. */
const WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'True or False',
  null: 'None',
  array: 'a list',
  tuple: 'a list',
  object: 'a dict',
  record: 'a dict',
};

function fault(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') return `expected ${WORDS[issue.expected] ?? issue.expected}, got ${wordOf(issue.input)}`;
  if (issue.code === 'invalid_value') return `expected ${issue.values.map((value) => JSON.stringify(value)).join(' or ')}`;
  return issue.message.replace(/^Invalid input: /, '').replace(/^[A-Z]/, (letter) => letter.toLowerCase());
}

function wordOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'None';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'number') return Number.isInteger(value) ? `the whole number ${value}` : `the number ${value}`;
  return WORDS[typeof value] ?? typeof value;
}

type Call = Extract<SandboxRun, { kind: 'call' }>;

/**
 * Arguments that were given by name, as Python takes them: a parameter before "/" by its place, the list of `*rest` behind all before it,
 * all others by name. A parameter that was left out has the function's own default.
 *
 * @param given as `validateArguments` answers them
 * @throws EtudeError INVALID_ARGUMENT where one was left out before another that is passed by its place
 */
export function placedArguments(
  { name, contract }: Pick<Skill, 'name' | 'contract'>,
  given: Readonly<Record<string, unknown>>,
): Pick<Call, 'args' | 'kwargs'> {
  const kwargs = { ...given } as Call['kwargs'];
  const parameters = contract?.parameters ?? [];
  const rest = parameters.find(({ passed }) => passed === 'rest');
  const follow = rest === undefined ? undefined : kwargs[rest.name];
  if (rest !== undefined) delete kwargs[rest.name];
  const behind = Array.isArray(follow) ? follow : [];
  const last = behind.length > 0 ? rest : parameters.findLast((one) => one.passed === 'position' && Object.hasOwn(kwargs, one.name));
  if (last === undefined) return { args: [], kwargs };
  const places = parameters.slice(0, parameters.indexOf(last) + (last === rest ? 0 : 1));
  const leftOut = places.find((place) => !Object.hasOwn(kwargs, place.name));
  if (leftOut !== undefined) {
    const field = `parameters.${leftOut.name}`;
    const message = `The arguments of ${name} are wrong: ${field} is missing; ${last.name} is passed by its place, behind it.`;
    throw new EtudeError('INVALID_ARGUMENT', message, { field });
  }
  const args = places.map((place) => kwargs[place.name]!);
  for (const place of places) delete kwargs[place.name];
  return { args: [...args, ...behind], kwargs };
}

const MISSPELLED_MAX = 2;

/** The name that was probably meant; null where none is near. Near: at most a third of its letters differ, and at least one may. */
function nearestOf(name: string, known: readonly string[]): string | null {
  const ranked = known.map((other) => ({ other, distance: editDistance(name.toLowerCase(), other.toLowerCase()) }));
  const [best] = ranked.toSorted((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= Math.max(1, Math.floor(best.other.length / 3)) ? best.other : null;
}

/** The name that was misspelled: near, and one or two letters away. null where none is. */
export function misspelledOf(name: string, known: readonly string[]): string | null {
  const others = known.filter((other) => other !== name && editDistance(name.toLowerCase(), other.toLowerCase()) <= MISSPELLED_MAX);
  return nearestOf(name, others);
}

/** Letters to put in, take out or change (Levenshtein 1966). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 0; i < a.length; i += 1) {
    let last = i + 1;
    const next = [last];
    for (let j = 0; j < b.length; j += 1) {
      last = Math.min((row[j] ?? 0) + (a[i] === b[j] ? 0 : 1), (row[j + 1] ?? 0) + 1, last + 1);
      next.push(last);
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
